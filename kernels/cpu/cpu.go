// Package cpu is the kernels backend of the central processor: Go around generated assembly, no C.
//
// Invariants:
//
//   - Memory is host memory: Wrap shares it, and copying a shared view to itself costs nothing.
//   - Operations run at once, in the caller's goroutine and in helpers that have left the operation when it returns. A helper looks for the
//     stream's next operation for some 60 us and then ends: an idle stream costs nothing and needs no closing.
//   - Work is cut into items that own their outputs. Which thread runs an item never reaches a bit of the result.
//   - An instruction path (avx512bf16, avx512, avx2, generic) is part of the numerics id. Within one path all promises of package kernels
//     hold, in both precisions. avx512bf16 differs from avx512 in products of bfloat16 operands only.
package cpu

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/klauspost/cpuid/v2"

	"github.com/restar-rl/restar/kernels"
)

// Version counts changes of the numerics: any change of a polynomial, an order of summation or a rounding raises it.
const Version = 3

// EnvISA names the environment variable that forces an instruction path.
const EnvISA = "RESTAR_CPU_ISA"

// isa is an instruction path.
type isa int

const (
	generic isa = iota
	avx2
	avx512
)

var isaNames = [...]string{"generic", "avx2", "avx512"}

// nativeBF16 is the path avx512 with the products of AVX512_BF16.
const nativeBF16 = "avx512bf16"

// Backend implements kernels.Backend on one instruction path. It has no state and may be shared.
type Backend struct {
	isa  isa
	bf16 bool // the processor multiplies pairs of bfloat16
}

var _ kernels.Backend = (*Backend)(nil)

// Paths lists the instruction paths that this processor can run, best first.
func Paths() []string {
	var names []string
	if hasBF16() {
		names = append(names, nativeBF16)
	}
	for i := best(); i >= generic; i-- {
		names = append(names, isaNames[i])
	}
	return names
}

func best() isa {
	switch {
	case hasAssembly && cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL):
		return avx512
	case hasAssembly && cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3):
		return avx2
	}
	return generic
}

// New returns the backend of a named path, or of the best one when name is empty.
func New(name string) (*Backend, error) {
	paths := Paths()
	if name == "" {
		name = paths[0]
	}
	if !slices.Contains(paths, name) {
		return nil, fmt.Errorf("cpu instruction path %q: this processor runs %s; unset or change %s", name, strings.Join(paths, ", "), EnvISA)
	}
	if name == nativeBF16 {
		return &Backend{isa: avx512, bf16: true}, nil
	}
	return &Backend{isa: isa(slices.Index(isaNames[:], name))}, nil
}

// FromEnv is New with the path named by the environment.
func FromEnv() (*Backend, error) { return New(os.Getenv(EnvISA)) }

// NumericsID names path, precision and version, and the architecture when it is not the usual one. In fp32 the paths with and without
// AVX512_BF16 are one.
func (b *Backend) NumericsID(p kernels.Precision) string {
	path := isaNames[b.isa]
	if p == kernels.PrecisionBF16 && b.bf16 {
		path = nativeBF16
	}
	id := fmt.Sprintf("cpu-%s-%s-v%d", path, p, Version)
	if runtime.GOARCH != "amd64" {
		id += "-" + runtime.GOARCH
	}
	return id
}

// memory is host memory of one element type.
type memory struct {
	floats []float32
	halves []uint16
	ints   []int32
}

func (m *memory) Len() int { return max(len(m.floats), len(m.halves), len(m.ints)) }

func (m *memory) DType() kernels.DType {
	switch {
	case m.halves != nil:
		return kernels.BF16
	case m.ints != nil:
		return kernels.I32
	}
	return kernels.F32
}

// Floats allocates n zeroed floats.
func (b *Backend) Floats(n int) (kernels.View, error) {
	x := make([]float32, n)
	adviseHuge(x)
	return b.Wrap(x)
}

// Ints allocates n zeroed ints.
func (b *Backend) Ints(n int) (kernels.View, error) {
	return kernels.View{Mem: &memory{ints: make([]int32, n)}, Len: n}, nil
}

// Wrap shares host memory.
func (b *Backend) Wrap(host []float32) (kernels.View, error) {
	return kernels.View{Mem: &memory{floats: host}, Len: len(host)}, nil
}

// Upload copies host into dst; it costs nothing when they are the same memory.
func (b *Backend) Upload(s kernels.Stream, dst kernels.View, host []float32) {
	st := s.(*stream)
	if d := st.floats("Upload", "dst", dst, len(host)); st.err == nil {
		move(d, host)
	}
}

// UploadInts copies host into dst.
func (b *Backend) UploadInts(s kernels.Stream, dst kernels.View, host []int32) {
	st := s.(*stream)
	if d := st.ints("UploadInts", "dst", dst, len(host)); st.err == nil {
		copy(d, host)
	}
}

// Download copies src into host.
func (b *Backend) Download(s kernels.Stream, host []float32, src kernels.View) {
	st := s.(*stream)
	if d := st.floats("Download", "src", src, len(host)); st.err == nil {
		move(host, d)
	}
}

// Copy copies floats, or bfloat16.
func (b *Backend) Copy(s kernels.Stream, dst, src kernels.View) {
	st := s.(*stream)
	if dtype(dst) == kernels.BF16 {
		d, x := st.halves("Copy", "dst", dst, dst.Len), st.halves("Copy", "src", src, dst.Len)
		if st.err == nil {
			st.rows(len(d), elementsPerItem, func(_ *worker, i, j int) { copy(d[i:j], x[i:j]) })
		}
		return
	}
	d, x := st.floats("Copy", "dst", dst, dst.Len), st.floats("Copy", "src", src, dst.Len)
	if st.err == nil {
		st.rows(len(d), elementsPerItem, func(_ *worker, i, j int) { move(d[i:j], x[i:j]) })
	}
}

// Clear zeroes floats.
func (b *Backend) Clear(s kernels.Stream, dst kernels.View) {
	st := s.(*stream)
	if d := st.floats("Clear", "dst", dst, dst.Len); st.err == nil {
		st.rows(len(d), elementsPerItem, func(_ *worker, i, j int) { clear(d[i:j]) })
	}
}

func move(dst, src []float32) {
	if len(dst) > 0 && &dst[0] != &src[0] {
		copy(dst, src)
	}
}

// NewStream returns a stream that uses at most o.Parallelism threads, or GOMAXPROCS.
func (b *Backend) NewStream(o kernels.StreamOptions) kernels.Stream {
	return &stream{limit: o.Parallelism}
}

// Sync reports the first error; operations have already run.
func (s *stream) Sync(ctx context.Context) error {
	if s.err != nil {
		return s.err
	}
	return ctx.Err()
}
