package cpu

import (
	"unsafe"

	"github.com/restar-rl/restar/kernels"
)

// Blocking of matrix products. Chains continue through memory, so none of these numbers can change a bit.
const (
	panel      = 32      // columns of a panel: two 512-bit registers
	tileRows   = 12      // rows of a register tile: 12*2 accumulators of 32 registers
	rowChunk   = 96      // rows of A that stay in the second-level cache while panels pass
	colChunk   = 48      // columns of a transposed A that are packed side by side: four register tiles
	inner      = 1024    // inner block, in words: a block of A of 384 KiB and a panel of B of 128 KiB
	smallFlops = 1 << 17 // what one thread does alone

	itemsPerThread = 8  // at least, so that threads end together
	packFrom       = 48 // rows of A from which packing a plain B pays
	spreadFrom     = 4  // panels from which moving rows of A apart pays
)

// Scratch slots of a worker that this file and its neighbours use.
const (
	rowScratch   = 8 // a row before it is rounded, or a panel of them
	packedA      = 9
	packedB      = 10
	widenedA     = 11
	widenedB     = 12
	scratchSlots = 13
)

// tile is the argument of a panel micro-kernel: c[m,n] = (acc ? c : 0) + a b with n <= panel columns, k ascending in one chain of
// fused multiply-adds an element. Strides are in bytes. For panelRows a[i,p] lies at a+i*lda+4p, for panelCols at a+p*lda+4i;
// b[p,j] lies at b+p*ldb+4j. In a product of pairs a[i,p] and b[p,j] are words of two bfloat16, and in a widened one b[p,j] is.
type tile struct {
	a, b, c       unsafe.Pointer
	lda, ldb, ldc uintptr
	m, k, n       int
	acc           int
	next          uintptr // address from which whole tiles of a packed b fetch in advance; it need not be one of memory
}

// kind is what the elements of a product's operands are.
type kind int

const (
	plain   kind = iota // float32
	paired              // both are words of two bfloat16, and the inner index counts words
	widened             // a is float32, b words of two bfloat16, and the inner index counts elements
)

// product is a matrix product after its views have been resolved. Words of two bfloat16 pass as floats.
type product struct {
	kind       kind
	c, a, b    []float32
	size       kernels.Shape
	lda, ldb   int  // words
	ldc        int  // floats between rows of c; 0 means size.N
	jump       int  // words between panels of b
	jumpA      int  // words between groups of colChunk columns of a transposed a
	transposed bool // a is stored [K,M]
	accumulate bool
}

// rightOperand resolves a packed right operand and the kind of its product with a.
func (s *stream) rightOperand(op string, b *Backend, a, packed kernels.View, z kernels.Shape) product {
	p := product{size: z, lda: z.K, ldb: panel, jump: panel * z.K}
	if dtype(packed) != kernels.BF16 {
		p.a, p.b = s.floats(op, "a", a, z.M*z.K), s.floats(op, "packed", packed, b.PackedLen(kernels.F32, z.N, z.K))
		return p
	}
	p.b = words(s.halves(op, "packed", packed, b.PackedLen(kernels.BF16, z.N, z.K)))
	p.jump = panel * even(z.K) / 2
	if dtype(a) == kernels.BF16 {
		p.kind, p.size.K, p.lda = paired, even(z.K)/2, even(z.K)/2
		p.a = words(s.halves(op, "a", a, b.RoundedLen(z.M, z.K)))
		return p
	}
	p.kind, p.a = widened, s.floats(op, "a", a, z.M*z.K)
	return p
}

// GemmNT multiplies by a packed matrix.
func (b *Backend) GemmNT(s kernels.Stream, c, a, packed kernels.View, z kernels.Shape, accumulate bool) {
	st := s.(*stream)
	p := st.rightOperand("GemmNT", b, a, packed, z)
	p.c, p.accumulate = st.floats("GemmNT", "c", c, z.M*z.N), accumulate
	b.run(st, p)
}

// GemmNN multiplies by a plain matrix, or one that PackNN packed in bfloat16.
func (b *Backend) GemmNN(s kernels.Stream, c, a, m kernels.View, z kernels.Shape, accumulate bool) {
	st := s.(*stream)
	var p product
	if dtype(m) == kernels.BF16 {
		p = st.rightOperand("GemmNN", b, a, m, z)
	} else {
		p = product{size: z, lda: z.K, ldb: z.N, jump: panel}
		p.a, p.b = st.floats("GemmNN", "a", a, z.M*z.K), st.floats("GemmNN", "b", m, z.K*z.N)
	}
	p.c, p.accumulate = st.floats("GemmNN", "c", c, z.M*z.N), accumulate
	b.run(st, p)
}

// GemmTN multiplies a transposed matrix by a plain one.
func (b *Backend) GemmTN(s kernels.Stream, c, a, m kernels.View, z kernels.Shape, accumulate bool) {
	st := s.(*stream)
	p := product{size: z, lda: z.M, ldb: z.N, jump: panel, jumpA: colChunk, transposed: true, accumulate: accumulate}
	p.c, p.a, p.b = st.floats("GemmTN", "c", c, z.M*z.N), st.floats("GemmTN", "a", a, z.K*z.M), st.floats("GemmTN", "b", m, z.K*z.N)
	b.run(st, p)
}

// run cuts a product into items of rows and panels.
func (b *Backend) run(s *stream, p product) {
	if s.err != nil || p.size.M == 0 || p.size.N == 0 {
		return
	}
	if p.size.K == 0 {
		if !p.accumulate {
			clear(p.c)
		}
		return
	}
	if b.gemv(s, &p) {
		return
	}
	b.packOperands(s, &p)
	chunk := rowChunk
	if p.transposed {
		chunk = colChunk
	}
	count := panels(p.size.N)
	group := count
	rows := (p.size.M + chunk - 1) / chunk
	if want := itemsPerThread * s.threads(); rows < want {
		pieces := (want + rows - 1) / rows
		group = max(1, (count+pieces-1)/pieces)
	}
	if p.size.M*p.size.N*p.size.K < smallFlops && !p.transposed {
		chunk, group, rows = p.size.M, count, 1
	}
	s.tiles = tileProduct{product: p, backend: b, chunk: chunk, group: group, count: count}
	s.do(job{items: rows * s.tiles.groups(), op: &s.tiles})
}

// tileProduct is a product cut into items of chunk rows and group of its count panels.
type tileProduct struct {
	product
	backend             *Backend
	chunk, group, count int
}

func (t *tileProduct) groups() int { return (t.count + t.group - 1) / t.group }

func (t *tileProduct) run(w *worker, i int) {
	r, g := i/t.groups()*t.chunk, i%t.groups()*t.group
	t.backend.block(w, &t.product, r, min(t.size.M, r+t.chunk), g, min(t.count, g+t.group))
}

// block computes rows [m0, m1) of panels [j0, j1). Rows of a transposed product are columns of one group.
func (b *Backend) block(w *worker, p *product, m0, m1, j0, j1 int) {
	if b.emulates(p.kind) {
		b.blockEmulated(w, p, m0, m1, j0, j1)
		return
	}
	n, ldc := p.size.N, p.rowC()
	for k0 := 0; k0 < p.size.K; k0 += inner {
		t := p.tile(m0, m1, k0)
		for j := j0; j < j1; j++ {
			t.n = min(panel, n-j*panel)
			t.b = unsafe.Pointer(&p.b[j*p.jump+p.innerB(k0)])
			t.next = uintptr(t.b) + 4*uintptr(p.jump)
			t.c = unsafe.Pointer(&p.c[m0*ldc+j*panel])
			b.panel(p, &t, k0)
		}
	}
}

// rowC is the number of floats between rows of c.
func (p *product) rowC() int {
	if p.ldc > 0 {
		return p.ldc
	}
	return p.size.N
}

// tile is what the panels of rows [m0, m1) and the inner block at k0 have in common.
func (p *product) tile(m0, m1, k0 int) tile {
	t := tile{lda: 4 * uintptr(p.lda), ldb: 4 * uintptr(p.ldb), ldc: 4 * uintptr(p.rowC()), m: m1 - m0, k: min(inner, p.size.K-k0)}
	if k0 > 0 || p.accumulate {
		t.acc = 1
	}
	if p.transposed {
		t.a = unsafe.Pointer(&p.a[m0/colChunk*p.jumpA+m0%colChunk+k0*p.lda])
	} else {
		t.a = unsafe.Pointer(&p.a[m0*p.lda+k0])
	}
	return t
}

// innerB is how far into a panel of b the inner index k0, a multiple of inner, lies.
func (p *product) innerB(k0 int) int { return p.wordsB(k0) * p.ldb }

// wordsB is the number of words of a column of b that the inner index k, even in a widened product, has passed.
func (p *product) wordsB(k int) int {
	if p.kind == widened {
		return k / 2
	}
	return k
}

// panel runs the micro-kernel of a tile.
func (b *Backend) panel(p *product, t *tile, k0 int) {
	switch {
	case p.kind == widened:
		b.widenedPanel(p, *t, k0)
	case p.kind == paired && p.transposed:
		avx512PairsCols(t)
	case p.kind == paired:
		avx512PairsRows(t)
	case p.transposed:
		b.panelCols(t)
	default:
		b.panelRows(t)
	}
}
