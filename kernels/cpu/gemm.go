package cpu

import (
	"unsafe"

	"github.com/restar-rl/restar/kernels"
)

// Blocking of matrix products. Chains continue through memory, so none of these numbers can change a bit.
const (
	panel      = 32  // columns of a panel: two 512-bit registers
	tileRows   = 12  // rows of a register tile: 12*2 accumulators of 32 registers
	rowChunk   = 96  // rows of A that stay in the second-level cache while panels pass
	colChunk   = 48  // the same for a transposed A
	innerRows  = 512 // inner block: a panel of B of 64 KiB
	innerCols  = 128 // inner block over tokens: a block of A of 24 KiB and a panel of B of 16 KiB
	smallFlops = 1 << 17
)

// tile is the argument of a panel micro-kernel: c[m,n] = (acc ? c : 0) + a b with n <= panel columns, k ascending in one chain of
// fused multiply-adds an element. Strides are in bytes. For panelRows a[i,p] lies at a+i*lda+4p, for panelCols at a+p*lda+4i;
// b[p,j] lies at b+p*ldb+4j.
type tile struct {
	a, b, c       unsafe.Pointer
	lda, ldb, ldc uintptr
	m, k, n       int
	acc           int
}

// PackedLen rounds n up to whole panels.
func (b *Backend) PackedLen(n, k int) int { return (n + panel - 1) / panel * panel * k }

// Pack stores w[n,k] as panels of 32 rows of w, each [k][32], zero beyond n.
func (b *Backend) Pack(s kernels.Stream, packed, w kernels.View, n, k int) {
	st := s.(*stream)
	dst := st.floats("Pack", "packed", packed, b.PackedLen(n, k))
	src := st.floats("Pack", "w", w, n*k)
	if st.err != nil {
		return
	}
	st.parallel((n+panel-1)/panel, func(_ *worker, j int) {
		rows := min(panel, n-j*panel)
		packPanel(dst[j*panel*k:(j+1)*panel*k], src[j*panel*k:j*panel*k+rows*k], rows, k)
	})
}

func packPanel(dst, src []float32, rows, k int) {
	clear(dst)
	for q := range rows {
		for p, v := range src[q*k : (q+1)*k] {
			dst[p*panel+q] = v
		}
	}
}

// product is a matrix product after its views have been resolved.
type product struct {
	c, a, b    []float32
	size       kernels.Shape
	lda, ldb   int  // floats
	jump       int  // floats between panels of b
	transposed bool // a is stored [K,M]
	accumulate bool
}

// GemmNT multiplies by a packed matrix.
func (b *Backend) GemmNT(s kernels.Stream, c, a, packed kernels.View, z kernels.Shape, accumulate bool) {
	st := s.(*stream)
	p := product{size: z, lda: z.K, ldb: panel, jump: panel * z.K, accumulate: accumulate}
	p.c, p.a = st.floats("GemmNT", "c", c, z.M*z.N), st.floats("GemmNT", "a", a, z.M*z.K)
	p.b = st.floats("GemmNT", "packed", packed, b.PackedLen(z.N, z.K))
	b.run(st, p)
}

// GemmNN multiplies by a plain matrix.
func (b *Backend) GemmNN(s kernels.Stream, c, a, m kernels.View, z kernels.Shape, accumulate bool) {
	st := s.(*stream)
	p := product{size: z, lda: z.K, ldb: z.N, jump: panel, accumulate: accumulate}
	p.c, p.a, p.b = st.floats("GemmNN", "c", c, z.M*z.N), st.floats("GemmNN", "a", a, z.M*z.K), st.floats("GemmNN", "b", m, z.K*z.N)
	b.run(st, p)
}

// GemmTN multiplies a transposed matrix by a plain one.
func (b *Backend) GemmTN(s kernels.Stream, c, a, m kernels.View, z kernels.Shape, accumulate bool) {
	st := s.(*stream)
	p := product{size: z, lda: z.M, ldb: z.N, jump: panel, transposed: true, accumulate: accumulate}
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
	chunk := rowChunk
	if p.transposed {
		chunk = colChunk
	}
	panels := (p.size.N + panel - 1) / panel
	group := panels
	rows := (p.size.M + chunk - 1) / chunk
	if want := 4 * s.threads(); rows < want {
		group = max(1, panels*rows/want)
	}
	if p.size.M*p.size.N*p.size.K < smallFlops {
		chunk, group, rows = p.size.M, panels, 1
	}
	groups := (panels + group - 1) / group
	s.parallel(rows*groups, func(_ *worker, i int) {
		r, g := i/groups*chunk, i%groups*group
		b.block(&p, r, min(p.size.M, r+chunk), g, min(panels, g+group))
	})
}

// block computes rows [m0, m1) of panels [j0, j1).
func (b *Backend) block(p *product, m0, m1, j0, j1 int) {
	inner := innerRows
	if p.transposed {
		inner = innerCols
	}
	n := p.size.N
	for k0 := 0; k0 < p.size.K; k0 += inner {
		t := tile{lda: 4 * uintptr(p.lda), ldb: 4 * uintptr(p.ldb), ldc: 4 * uintptr(n), m: m1 - m0, k: min(inner, p.size.K-k0)}
		if k0 > 0 || p.accumulate {
			t.acc = 1
		}
		if p.transposed {
			t.a = unsafe.Pointer(&p.a[k0*p.lda+m0])
		} else {
			t.a = unsafe.Pointer(&p.a[m0*p.lda+k0])
		}
		for j := j0; j < j1; j++ {
			t.n = min(panel, n-j*panel)
			t.b = unsafe.Pointer(&p.b[j*p.jump+k0*p.ldb])
			t.c = unsafe.Pointer(&p.c[m0*n+j*panel])
			if p.transposed {
				b.panelCols(&t)
			} else {
				b.panelRows(&t)
			}
		}
	}
}
