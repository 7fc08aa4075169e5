package cpu

import "unsafe"

// gemvItem is the memory that one item reads, some microseconds' worth: small enough that two threads end together, and large enough
// that taking an item costs nothing beside it.
const gemvItem = 1 << 16

// gemvArgs is the argument of a gemv kernel, for one row and whole panels: c[32*panels] = (acc ? c : 0) + a b. Panels lie jump bytes apart;
// k counts words of b's inner index.
type gemvArgs struct {
	a, b, c unsafe.Pointer
	k       int
	panels  int
	jump    int
	acc     int
}

// gemv computes a product of one row with a packed matrix and reports whether it did. It is the same chains as those of the panel
// micro-kernels, so the bits are theirs; it only reads several panels at once and continues no chain through memory.
func (b *Backend) gemv(s *stream, p *product) bool {
	whole := p.size.N / panel
	if !b.hasGemv(p) || whole == 0 {
		return false
	}
	s.row = rowProduct{product: *p, whole: whole, group: max(gemvStreams, gemvItem/(4*p.jump))}
	s.do(job{items: (whole + s.row.group - 1) / s.row.group, op: &s.row})
	if whole*panel < p.size.N {
		b.block(s.worker(), p, 0, 1, whole, whole+1)
	}
	return true
}

// rowProduct is a product of one row cut into items of group of its whole panels.
type rowProduct struct {
	product
	whole, group int
}

func (p *rowProduct) run(_ *worker, i int) {
	j := i * p.group
	v := gemvArgs{a: unsafe.Pointer(&p.a[0]), b: unsafe.Pointer(&p.b[j*p.jump]), c: unsafe.Pointer(&p.c[j*panel]),
		k: p.wordsB(p.size.K), panels: min(p.group, p.whole-j), jump: 4 * p.jump}
	if p.accumulate {
		v.acc = 1
	}
	asmGemv(p.kind, &v)
}

// gemvStreams is the number of panels that a gemv kernel reads at once.
const gemvStreams = 2

// hasGemv reports whether a kernel takes the product. A widened one of odd length would read beyond its row.
func (b *Backend) hasGemv(p *product) bool {
	return b.isa == avx512 && !b.emulates(p.kind) && p.size.M == 1 && !p.transposed && p.ldb == panel &&
		(p.kind != widened || p.size.K%2 == 0)
}
