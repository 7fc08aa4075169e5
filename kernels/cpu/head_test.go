package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/restar-rl/restar/kernels"
)

// logSoftmaxOracle returns the log-probabilities of a row of logits.
func logSoftmaxOracle(x []float64) []float64 {
	top, total := math.Inf(-1), 0.0
	for _, v := range x {
		top = max(top, v)
	}
	for _, v := range x {
		total += math.Exp(v - top)
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v - top - math.Log(total)
	}
	return y
}

func TestHeadLogProbsAndTheirGradientMatchTheOracle(t *testing.T) {
	const dim = 9
	onEveryPath(t, func(b *bench) {
		for _, c := range []struct{ rows, vocab int }{{1, 2}, {7, 45}, {700, 61}, {2, 2048}, {3, 2049}, {520, 4099}} {
			hidden, head := b.random(c.rows*dim), b.random(c.vocab*dim)
			targets, coef := make([]int32, c.rows), b.random(c.rows)
			for r := range targets {
				targets[r] = int32(b.r.IntN(c.vocab+1)) - 1
			}
			for r := 0; r < c.rows; r += 3 {
				coef[r] = 0
			}
			packed := poison(b.PackedLen(kernels.F32, c.vocab, dim))
			b.Pack(b.s, b.view(packed), b.view(head), c.vocab, dim)
			logp, entropy := poison(c.rows), poison(c.rows)
			a := kernels.HeadArgs{Rows: c.rows, Dim: dim, Vocab: c.vocab, Hidden: b.view(hidden), Packed: b.view(packed), Targets: b.intView(targets),
				LogP: b.view(logp), Entropy: b.view(entropy), LSE: b.view(poison(c.rows)), Scratch: b.view(poison(b.HeadScratch(dim, c.vocab)))}
			b.HeadLogProbs(b.s, a)
			dh, dw := poison(c.rows*dim), make([]float32, c.vocab*dim)
			b.HeadGrad(b.s, kernels.HeadGradArgs{HeadArgs: a, Weights: b.view(head), Coef: b.view(coef), DHidden: b.view(dh), DWeights: b.view(dw)})
			b.sync()
			lp, ent, wantH, wantW := headOracle(c.rows, c.vocab, dim, wide(hidden), wide(head), targets, coef)
			b.near("logp", logp, lp, 1e-6)
			b.near("entropy", entropy, ent, 2e-6)
			b.near("dhidden", dh, wantH, 3e-6)
			b.near("dweights", dw, wantW, 3e-6)
		}
	})
}

// TestAHeadOfBfloat16HasTheBitsOfItsWidenedWeights: the oracle of float32 weights is then that of rounded ones too.
func TestAHeadOfBfloat16HasTheBitsOfItsWidenedWeights(t *testing.T) {
	const dim = 33
	onEveryPath(t, func(b *bench) {
		for _, c := range []struct{ rows, vocab int }{{1, 2}, {7, 45}, {530, 61}, {1, 4099}, {3, 4099}} {
			hidden, head, coef := b.random(c.rows*dim), b.random(c.vocab*dim), b.random(c.rows)
			for i, w := range head {
				head[i] = widenBF16(roundBF16(w))
			}
			targets := make([]int32, c.rows)
			for r := range targets {
				targets[r] = int32(b.r.IntN(c.vocab+1)) - 1
			}
			rounded, _ := b.Halves(b.PackedLen(kernels.BF16, dim, c.vocab))
			b.PackNN(b.s, rounded, b.view(head), dim, c.vocab)
			run := func(t kernels.DType, weights kernels.View) (out []float32) {
				logp, entropy, dh, dw := poison(c.rows), poison(c.rows), poison(c.rows*dim), make([]float32, c.vocab*dim)
				a := kernels.HeadArgs{Rows: c.rows, Dim: dim, Vocab: c.vocab, Hidden: b.view(hidden), Packed: b.right(t, head, c.vocab, dim),
					Targets: b.intView(targets), LogP: b.view(logp), Entropy: b.view(entropy), LSE: b.view(poison(c.rows)),
					Scratch: b.view(poison(b.HeadScratch(dim, c.vocab)))}
				b.HeadLogProbs(b.s, a)
				b.HeadGrad(b.s, kernels.HeadGradArgs{HeadArgs: a, Weights: weights, Coef: b.view(coef), DHidden: b.view(dh), DWeights: b.view(dw)})
				b.sync()
				return slices.Concat(logp, entropy, dh, dw)
			}
			if !sameBits(run(kernels.BF16, rounded), run(kernels.F32, b.view(head))) {
				b.t.Errorf("%d rows, vocabulary %d: the bits differ", c.rows, c.vocab)
			}
		}
	})
}

// TestTheFusedHeadHasTheBitsOfStoredLogits: a sampler reduces rows of logits, a trainer never stores them.
func TestTheFusedHeadHasTheBitsOfStoredLogits(t *testing.T) {
	const dim = 33
	onEveryPath(t, func(b *bench) {
		for _, o := range []operands{everyKind[0], everyKind[2]} {
			for _, c := range []struct{ rows, vocab int }{{5, 61}, {530, 100}, {3, 2048}, {2, 2050}, {13, 6145}} {
				hidden, packed := b.random(c.rows*dim), b.right(o.packed, b.random(c.vocab*dim), c.vocab, dim)
				targets := make([]int32, c.rows)
				for r := range targets {
					targets[r] = int32(b.r.IntN(c.vocab))
				}
				logp, entropy, lse, logits := poison(c.rows), poison(c.rows), poison(c.rows), poison(c.rows*c.vocab)
				b.HeadLogProbs(b.s, kernels.HeadArgs{Rows: c.rows, Dim: dim, Vocab: c.vocab, Hidden: b.view(hidden), Packed: packed,
					Targets: b.intView(targets), LogP: b.view(logp), Entropy: b.view(entropy), LSE: b.view(lse),
					Scratch: b.view(poison(b.HeadScratch(dim, c.vocab)))})
				b.GemmNT(b.s, b.view(logits), b.view(hidden), packed, kernels.Shape{M: c.rows, N: c.vocab, K: dim}, false)
				b.sync()
				for r, target := range targets {
					row := logits[r*c.vocab : (r+1)*c.vocab]
					l, e := b.LogSoftmaxRow(row)
					if !sameBits([]float32{logp[r], entropy[r], lse[r]}, []float32{row[target] - l, e, l}) {
						b.t.Fatalf("%s, vocabulary %d, row %d: %v, %v, %v from the fused head, %v, %v, %v from stored logits",
							o.name, c.vocab, r, logp[r], entropy[r], lse[r], row[target]-l, e, l)
					}
				}
			}
		}
	})
}

// TestKeptLogitsChangeNoBitOfTheGradient: however many rows fit, and which rows count.
func TestKeptLogitsChangeNoBitOfTheGradient(t *testing.T) {
	const dim = 10
	onEveryPath(t, func(b *bench) {
		for _, o := range []operands{everyKind[0], everyKind[2]} {
			for _, c := range []struct{ rows, vocab int }{{1, 4099}, {7, 45}, {30, 2049}, {513, 61}} {
				hidden, head, coef := b.random(c.rows*dim), b.random(c.vocab*dim), b.random(c.rows)
				targets := make([]int32, c.rows)
				for r := range targets {
					targets[r] = int32(b.r.IntN(c.vocab+1)) - 1
				}
				for r := 0; r < c.rows; r += 5 {
					coef[r], targets[r] = 1, 0
				}
				for r := 3; r < c.rows; r += 4 {
					coef[r] = 0
				}
				weights := b.view(head)
				if o.packed == kernels.BF16 {
					weights, _ = b.Halves(b.PackedLen(kernels.BF16, dim, c.vocab))
					b.PackNN(b.s, weights, b.view(head), dim, c.vocab)
				}
				run := func(kept kernels.View) (out []float32) {
					logp, entropy, dh, dw := poison(c.rows), poison(c.rows), poison(c.rows*dim), make([]float32, c.vocab*dim)
					a := kernels.HeadArgs{Rows: c.rows, Dim: dim, Vocab: c.vocab, Hidden: b.view(hidden), Packed: b.right(o.packed, head, c.vocab, dim),
						Targets: b.intView(targets), LogP: b.view(logp), Entropy: b.view(entropy), LSE: b.view(poison(c.rows)),
						Scratch: b.view(poison(b.HeadScratch(dim, c.vocab))), Kept: kept}
					b.HeadLogProbs(b.s, a)
					b.HeadGrad(b.s, kernels.HeadGradArgs{HeadArgs: a, Weights: weights, Coef: b.view(coef), DHidden: b.view(dh), DWeights: b.view(dw)})
					b.sync()
					return slices.Concat(logp, entropy, dh, dw)
				}
				want := run(kernels.View{})
				for _, rows := range []int{0, c.rows/2 + 1, c.rows, c.rows + 3} {
					if !sameBits(run(b.view(poison(rows*c.vocab+c.vocab/2))), want) {
						b.t.Errorf("%s, %d rows, vocabulary %d: the bits differ with room for the logits of %d rows", o.name, c.rows, c.vocab, rows)
					}
				}
			}
		}
	})
}

// TestRowsOfTheHeadKeepTheirBitsInAnyCompany: the gradient of a hidden row is its own, and that of the weights is one sum over rows.
func TestRowsOfTheHeadKeepTheirBitsInAnyCompany(t *testing.T) {
	const dim, vocab, rows = 20, 2100, 531
	onEveryPath(t, func(b *bench) {
		hidden, head, coef := b.random(rows*dim), b.random(vocab*dim), b.random(rows)
		packed := b.right(kernels.F32, head, vocab, dim)
		targets := make([]int32, rows)
		for r := range targets {
			targets[r] = int32(b.r.IntN(vocab))
		}
		run := func(from, to int, dw []float32, begin bool) []float32 {
			n := to - from
			a := kernels.HeadArgs{Rows: n, Dim: dim, Vocab: vocab, Hidden: b.view(hidden[from*dim : to*dim]), Packed: packed, Targets: b.intView(targets[from:to]),
				LogP: b.view(poison(n)), Entropy: b.view(poison(n)), LSE: b.view(poison(n)), Scratch: b.view(poison(b.HeadScratch(dim, vocab)))}
			b.HeadLogProbs(b.s, a)
			dh := poison(n * dim)
			b.HeadGrad(b.s, kernels.HeadGradArgs{HeadArgs: a, Weights: b.view(head), Coef: b.view(coef[from:to]), DHidden: b.view(dh), DWeights: b.view(dw), Begin: begin})
			b.sync()
			return dh
		}
		all, parts := make([]float32, vocab*dim), poison(vocab*dim)
		want := run(0, rows, all, false)
		got := append(append(run(0, 1, parts, true), run(1, 513, parts, false)...), run(513, rows, parts, false)...)
		if !sameBits(got, want) || !sameBits(parts, all) {
			b.t.Error("three calls over consecutive rows differ from one call over all")
		}
	})
}

func TestTheHeadNeedsNoRoomForTheLogitsOfAWholeVocabulary(t *testing.T) {
	b := &Backend{}
	const dim = 576
	if small, large := b.HeadScratch(dim, 2048), b.HeadScratch(dim, 151936); large > small*5/4 {
		t.Errorf("the head of 151936 ids needs %d floats, that of 2048 ids %d: want a quarter more at most", large, small)
	}
}

func headOracle(rows, vocab, dim int, hidden, head []float64, targets []int32, coef []float32) (lp, ent, dh, dw []float64) {
	lp, ent, dh, dw = make([]float64, rows), make([]float64, rows), make([]float64, rows*dim), make([]float64, vocab*dim)
	for r := range rows {
		if targets[r] < 0 {
			continue
		}
		x := make([]float64, vocab)
		for v := range vocab {
			for d := range dim {
				x[v] += hidden[r*dim+d] * head[v*dim+d]
			}
		}
		y := logSoftmaxOracle(x)
		lp[r] = y[targets[r]]
		for v := range vocab {
			p := math.Exp(y[v])
			ent[r] -= p * y[v]
			g := -p
			if int32(v) == targets[r] {
				g++
			}
			for d := range dim {
				dh[r*dim+d] += float64(coef[r]) * g * head[v*dim+d]
				dw[v*dim+d] += float64(coef[r]) * g * hidden[r*dim+d]
			}
		}
	}
	return lp, ent, dh, dw
}

func TestLogSoftmaxOfARowIsThatOfTheOperation(t *testing.T) {
	onEveryPath(t, func(b *bench) {
		const rows, vocab = 3, 77
		x := b.random(rows * vocab)
		x[5] = 60 // a nearly certain row
		lse, entropy := poison(rows), poison(rows)
		b.LogSoftmax(b.s, b.view(lse), b.view(entropy), b.view(x), rows, vocab)
		for r := range rows {
			l, e := b.LogSoftmaxRow(x[r*vocab : (r+1)*vocab])
			if l != lse[r] || e != entropy[r] {
				b.t.Errorf("row %d: %g, %g from LogSoftmaxRow, %g, %g from LogSoftmax", r, l, e, lse[r], entropy[r])
			}
			y := logSoftmaxOracle(wide(x[r*vocab : (r+1)*vocab]))
			b.near("logp", []float32{x[r*vocab] - l}, y[:1], 1e-6)
		}
	})
}

// BenchmarkHead is forward and backward of the head of a model of about 1M weights over a batch, and of one of 135M over a sequence.
func BenchmarkHead(b *testing.B) {
	bk, err := FromEnv()
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct{ rows, dim, vocab int }{{4096, 128, 1024}, {512, 576, 49152}} {
		for _, o := range []operands{everyKind[0], everyKind[2]} {
			x := &bench{Backend: bk, s: bk.NewStream(kernels.StreamOptions{}), r: rand.New(rand.NewPCG(1, 2))}
			head := x.random(c.vocab * c.dim)
			floats := func(n int) kernels.View { v, _ := bk.Floats(n); return v }
			a := kernels.HeadArgs{Rows: c.rows, Dim: c.dim, Vocab: c.vocab, Hidden: x.view(x.random(c.rows * c.dim)), Packed: x.right(o.packed, head, c.vocab, c.dim),
				Targets: x.intView(make([]int32, c.rows)), LogP: floats(c.rows), Entropy: floats(c.rows), LSE: floats(c.rows), Scratch: floats(bk.HeadScratch(c.dim, c.vocab))}
			g := kernels.HeadGradArgs{HeadArgs: a, Weights: x.view(head), Coef: x.view(x.random(c.rows)), DHidden: floats(c.rows * c.dim), DWeights: floats(c.vocab * c.dim)}
			if o.packed == kernels.BF16 {
				g.Weights, _ = bk.Halves(bk.PackedLen(kernels.BF16, c.dim, c.vocab))
				bk.PackNN(x.s, g.Weights, x.view(head), c.dim, c.vocab)
			}
			rate := func(what string, products int, f func()) {
				b.Run(fmt.Sprintf("%s/%s/%dx%dx%d", what, o.name, c.rows, c.vocab, c.dim), func(b *testing.B) {
					start := cpuTime()
					for b.Loop() {
						f()
					}
					b.ReportMetric(float64(b.N)*2*float64(products*c.rows*c.dim*c.vocab)/float64(cpuTime()-start), "GFLOP/cpu-s")
				})
			}
			rate("logprobs", 1, func() { bk.HeadLogProbs(x.s, a) })
			rate("grad", 3, func() { bk.HeadGrad(x.s, g) })
		}
	}
}
