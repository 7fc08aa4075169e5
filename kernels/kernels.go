// Package kernels is the contract between the model and the machine that computes it.
//
// A Backend owns device memory and executes operations on a Stream, in the order in which they were given. The contract holds no
// assumption about where memory lives: sizes are explicit, an operation that is given scratch memory says how much it needs (what else
// an operation works on is its stream's), and the host reads results only after Stream.Sync.
//
// Invariants every backend keeps:
//
//   - All arrays are dense and row-major, but for packed weights and rounded rows, whose layout is the backend's own. Floats are float32
//     unless an operation allows bfloat16; token ids, positions and tables are int32.
//   - In exact numerics every element of a matrix product is one chain of fused multiply-adds with the inner index
//     ascending, starting at +0, or at the element's old value when the product accumulates; a path without the instruction may
//     round the sum to float64 before float32, under a numerics id of its own. So neither tile shape, nor a cut
//     of the inner dimension, nor the number of rows, nor the degree of parallelism can change a bit. With bfloat16 operands the
//     links of the chain are pairs of inner indices (2p, 2p+1), accumulated in float32; an odd end is paired with zero.
//   - Every other operation computes a row from that row alone, in an order that depends on the row's length only. Sums over rows
//     (gradients of weights) run over rows ascending and continue from the old value.
//   - Attention visits a sequence's keys in blocks of BlockTokens absolute positions from 0, ascending. Keys and values are rounded to the
//     type of their cache before it, whoever asks: a sampler, a teacher-forced pass or a gradient.
//
// Results agree to the bit between two backends only if their numerics ids are equal.
package kernels

import "context"

// BlockTokens is the number of positions in a block of keys and values. Attention combines its partial sums block by
// block, so the number is part of the numerics and not a tuning knob. 64 columns fill four 512-bit registers or one wavefront.
const BlockTokens = 64

// Memory is an allocation on a backend's device. Only the backend that made it can look inside. It lives as long as something refers to
// it, operations that have not run yet included; a device takes its part back after that (runtime.AddCleanup).
type Memory interface {
	// Len is the number of elements.
	Len() int
	// DType is the type of the elements.
	DType() DType
}

// View is a range of a Memory: Len elements from element Off. The zero View is absent, which some operations allow.
type View struct {
	Mem      Memory
	Off, Len int
}

// Slice returns elements [from, to) of v.
func (v View) Slice(from, to int) View { return View{v.Mem, v.Off + from, to - from} }

// Absent reports whether v is the zero View.
func (v View) Absent() bool { return v.Mem == nil }

// Stream executes operations in order. It is used by one goroutine at a time. An operation that is refused (a view of the wrong
// length, an id out of range) or that fails breaks the stream: later operations do nothing and Sync returns the first error.
type Stream interface {
	// Sync waits until all operations have run, or ctx ends, and returns the stream's first error.
	Sync(ctx context.Context) error
}

// StreamOptions tunes a stream. No option changes a bit of any result.
type StreamOptions struct {
	// Parallelism bounds how many compute units work for the stream at once; 0 means all of them.
	Parallelism int
}

// Device is a backend's memory and streams.
type Device interface {
	// NumericsID names backend, instruction path, precision and kernel version: equal ids promise equal bits.
	NumericsID(p Precision) string
	NewStream(o StreamOptions) Stream
	// Floats, Halves (bfloat16) and Ints allocate n zeroed elements.
	Floats(n int) (View, error)
	Halves(n int) (View, error)
	Ints(n int) (View, error)
	// Wrap gives the device a view of host memory. A device that addresses host memory shares it; others make a copy, which
	// Upload refreshes.
	Wrap(host []float32) (View, error)
	// Upload and Download copy len(host) floats; Download's host memory holds them after Sync.
	Upload(s Stream, dst View, host []float32)
	UploadInts(s Stream, dst View, host []int32)
	Download(s Stream, host []float32, src View)
	// Copy copies floats, or bfloat16, from src to dst of the same length; Clear sets floats to +0.
	Copy(s Stream, dst, src View)
	Clear(s Stream, dst View)
}
