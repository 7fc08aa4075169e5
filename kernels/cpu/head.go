package cpu

import (
	"slices"

	"github.com/restar-rl/restar/kernels"
)

// Logits exist for headRows rows and headCols columns at once: 4 MiB, which the third-level cache holds beside the weights of the columns.
// headCols is part of the order of summation; headRows is not.
const (
	headRows = 512
	headCols = 2048
)

// headChunks is the number of chunks of columns of a vocabulary.
func headChunks(vocab int) int { return (vocab + headCols - 1) / headCols }

// logitRows is the number of rows whose logits one item computes: whole register tiles, several items a thread, and not so many rows
// that their logits leave the second-level cache.
func logitRows(s *stream, rows, chunks int) int {
	return min(8, max(1, rows*chunks/(4*s.threads()*tileRows))) * tileRows
}

// HeadScratch is room for the logits of a chunk, the hidden rows and their gradients, and the partial sums of the rows.
func (b *Backend) HeadScratch(dim, vocab int) int {
	return headRows * (min(vocab, headCols) + line + 2*dim + headChunks(vocab)*len(rowPart{}))
}

type lossViews struct {
	hidden, logp, entropy, lse, scratch []float32
	logits                              product // of all rows
	targets                             []int32
	kept                                keptLogits
}

// keptLogits are the logits of the first rows, a chunk of columns after the other: [rows, columns of the chunk].
type keptLogits struct {
	logits      []float32
	rows, vocab int
}

// chunk is the logits of rows [from, to) in a chunk of columns, of those that are kept.
func (k *keptLogits) chunk(from, to, chunk int) []float32 {
	from, to = min(from, k.rows), min(to, k.rows)
	first := chunk * headCols
	at, cols := k.rows*first, min(headCols, k.vocab-first)
	return k.logits[at+from*cols : at+to*cols]
}

func (s *stream) head(op string, b *Backend, a *kernels.HeadArgs) lossViews {
	v := lossViews{
		hidden:  s.floats(op, "Hidden", a.Hidden, a.Rows*a.Dim),
		logits:  s.rightOperand(op, b, a.Hidden, a.Packed, kernels.Shape{M: a.Rows, N: a.Vocab, K: a.Dim}),
		lse:     s.floats(op, "LSE", a.LSE, a.Rows),
		targets: s.ints(op, "Targets", a.Targets, a.Rows),
		scratch: s.atLeast(op, "Scratch", a.Scratch, b.HeadScratch(a.Dim, a.Vocab)),
	}
	if !a.Kept.Absent() {
		v.kept = keptLogits{s.floats(op, "Kept", a.Kept, a.Kept.Len), min(a.Rows, a.Kept.Len/max(1, a.Vocab)), a.Vocab}
	}
	for r, t := range v.targets {
		if int(t) >= a.Vocab {
			s.fail("%s: Targets[%d] is %d, want below %d", op, r, t, a.Vocab)
			break
		}
	}
	return v
}

// columns is the product of logits restricted to a chunk of columns.
func (v *lossViews) columns(chunk int) product {
	p := v.logits
	from := chunk * headCols
	p.size.N = min(headCols, p.size.N-from)
	p.b = p.b[from/panel*p.jump:]
	return p
}

// rowLogits computes the logits of rows of hidden states.
func (b *Backend) rowLogits(w *worker, p product, hidden, logits []float32) {
	p.c, p.a, p.size.M = logits, hidden, len(hidden)/p.size.K
	b.block(w, &p, 0, p.size.M, 0, panels(p.size.N))
}

// HeadLogProbs runs over blocks of rows. An item is some rows and one chunk of columns: logits, and what they come to while they are in
// cache. Items of one chunk follow each other, so that its weights are read from memory once.
func (b *Backend) HeadLogProbs(s kernels.Stream, a kernels.HeadArgs) {
	st := s.(*stream)
	v := st.head("HeadLogProbs", b, &a)
	v.logp, v.entropy = st.floats("HeadLogProbs", "LogP", a.LogP, a.Rows), st.floats("HeadLogProbs", "Entropy", a.Entropy, a.Rows)
	if st.err != nil {
		return
	}
	chunks := headChunks(a.Vocab)
	for at := 0; at < a.Rows; at += headRows {
		n := min(headRows, a.Rows-at)
		rows := logitRows(st, n, chunks)
		tiles := (n + rows - 1) / rows
		st.parallel(tiles*chunks, func(w *worker, i int) {
			from := at + i%tiles*rows
			b.headItem(w, &v, from, min(from+rows, at+n), i/tiles, at)
		})
		st.rows(n, rowsOf(chunks), func(_ *worker, from, to int) {
			for r := at + from; r < at+to; r++ {
				v.finish(r, chunks, v.parts(r-at, chunks))
			}
		})
	}
}

// parts is the room for the chunks of row r of a block of rows.
func (v *lossViews) parts(r, chunks int) []float32 {
	n := chunks * len(rowPart{})
	return v.scratch[r*n : (r+1)*n]
}

// headItem computes the parts of rows [from, to) in one chunk, and leaves the logit of a target in LogP.
func (b *Backend) headItem(w *worker, v *lossViews, from, to, chunk, block int) {
	p, k, chunks := v.columns(chunk), v.logits.size.K, headChunks(v.logits.size.N)
	cols := p.size.N
	kept := v.kept.chunk(from, to, chunk)
	logits := kept
	if len(kept) < (to-from)*cols {
		logits = w.buffer(0, (to-from)*cols)
	}
	b.rowLogits(w, p, v.hidden[from*k:to*k], logits)
	move(kept, logits)
	for r := from; r < to; r++ {
		row := logits[(r-from)*cols : (r-from+1)*cols]
		part := b.rowPart(row)
		copy(v.parts(r-block, chunks)[chunk*len(part):], part[:])
		if t := int(v.targets[r]) - chunk*headCols; t >= 0 && t < cols {
			v.logp[r] = row[t]
		}
	}
}

// finish adds the parts of a row.
func (v *lossViews) finish(r, chunks int, parts []float32) {
	if v.targets[r] < 0 {
		v.logp[r], v.entropy[r], v.lse[r] = 0, 0, 0
		return
	}
	var t rowSum
	for c := range chunks {
		t.add(rowPart(parts[c*len(rowPart{}):]))
	}
	v.lse[r], v.entropy[r] = t.result()
	v.logp[r] -= v.lse[r]
}

// HeadGrad gathers the rows that count and runs over blocks of them, and for each over the chunks of columns: logits and dlogits, then
// DHidden and DWeights from these.
func (b *Backend) HeadGrad(s kernels.Stream, a kernels.HeadGradArgs) {
	st := s.(*stream)
	v := st.head("HeadGrad", b, &a.HeadArgs)
	coef := st.floats("HeadGrad", "Coef", a.Coef, a.Rows)
	back := st.headWeights(b, &a)
	dh := st.floats("HeadGrad", "DHidden", a.DHidden, a.Rows*a.Dim)
	dw := st.floats("HeadGrad", "DWeights", a.DWeights, a.Vocab*a.Dim)
	if st.err != nil {
		return
	}
	clear(dh)
	var rows []int
	for r, t := range v.targets {
		if t >= 0 && coef[r] != 0 {
			rows = append(rows, r)
		}
	}
	if len(rows) == 0 && a.Begin {
		clear(dw)
	}
	for block := range slices.Chunk(rows, headRows) {
		n, first := len(block), block[0] == rows[0]
		hidden, rest := v.scratch[:n*a.Dim], v.scratch[headRows*a.Dim:]
		grad, d := rest[:n*a.Dim], rest[headRows*a.Dim:]
		for i, r := range block {
			copy(hidden[i*a.Dim:(i+1)*a.Dim], v.hidden[r*a.Dim:])
		}
		for chunk := range headChunks(a.Vocab) {
			p := v.columns(chunk)
			cols, from := p.size.N, chunk*headCols
			p.ldc = cols + line // no multiple of 4 KiB, for the product that has these rows as its left operand
			b.dLogits(st, p, &v, coef, block, hidden, d, chunk)
			b.run(st, back.inner(grad, d, n, from, cols, p.ldc))
			b.run(st, product{c: dw[from*a.Dim : (from+cols)*a.Dim], a: d, b: hidden, lda: p.ldc, ldb: a.Dim, jump: panel, jumpA: colChunk,
				transposed: true, accumulate: !a.Begin || !first, size: kernels.Shape{M: cols, N: a.Dim, K: n}})
		}
		for i, r := range block {
			copy(dh[r*a.Dim:(r+1)*a.Dim], grad[i*a.Dim:])
		}
	}
}

// headWeights is the product of dlogits with the head's weights; its left operand and result are set later.
func (s *stream) headWeights(b *Backend, a *kernels.HeadGradArgs) product {
	p := product{size: kernels.Shape{N: a.Dim, K: a.Vocab}}
	if dtype(a.Weights) == kernels.BF16 {
		p.kind, p.ldb, p.jump = widened, panel, panel*even(a.Vocab)/2
		p.b = words(s.halves("HeadGrad", "Weights", a.Weights, b.PackedLen(kernels.BF16, a.Dim, a.Vocab)))
		return p
	}
	p.ldb, p.jump = a.Dim, panel
	p.b = s.floats("HeadGrad", "Weights", a.Weights, a.Vocab*a.Dim)
	return p
}

// inner is the part of a product of n rows, lda apart, whose inner index runs over [from, from+k); from is even. It continues the part before.
func (p product) inner(c, a []float32, n, from, k, lda int) product {
	p.c, p.a, p.b = c, a, p.b[p.innerB(from):]
	p.size.M, p.size.K, p.lda, p.accumulate = n, k, lda, from > 0
	return p
}

// dLogits is coef (onehot - softmax) of gathered rows, for a chunk of columns, whose product is p.
func (b *Backend) dLogits(st *stream, p product, v *lossViews, coef []float32, block []int, hidden, d []float32, chunk int) {
	cols, ld, k, first := p.size.N, p.ldc, p.size.K, chunk*headCols
	st.rows(len(block), logitRows(st, len(block), 1), func(w *worker, i, to int) {
		again := i
		for again < to && block[again] < v.kept.rows {
			again++
		}
		if again < to {
			b.rowLogits(w, p, hidden[again*k:to*k], d[again*ld:(to-1)*ld+cols])
		}
		for ; i < to; i++ {
			row, r := d[i*ld:i*ld+cols], block[i]
			if i < again {
				copy(row, v.kept.chunk(r, r+1, chunk))
			}
			b.probsGrad(row, v.lse[r], coef[r])
			if t := int(v.targets[r]) - first; t >= 0 && t < cols {
				row[t] += coef[r]
			}
		}
	})
}
