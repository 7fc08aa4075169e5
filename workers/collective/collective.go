// Package collective joins the processes of one data-parallel step.
//
// Invariants:
//
//   - Sums are taken element by element along a fixed binary tree over rank numbers: (0+1)+(2+3) for four ranks. Together with
//     leaves dealt to ranks in order this is the order of summation of a single process, so the number of ranks changes no bit.
//   - All ranks call the same operations in the same order. An operation that meets another one, another size or another
//     length is an error on both sides, never a mixture of data.
//   - Every wait ends: with ctx, with the peer's process or host, or, once an operation has begun, when the peer that it waits for has been
//     silent for the group's patience. The error names that peer.
//   - After an error a group is of no more use; its members start again from a checkpoint.
//
// The interface is that of RCCL and NCCL (reduce-scatter, all-gather), whose summation order is the library's own: a backend on those
// belongs to fast numerics.
package collective

import (
	"context"
	"errors"
)

// ErrEnded is wrapped by the error of an operation whose peer closed its group, or died, before the operation began.
var ErrEnded = errors.New("collective: the group has ended")

// Shard is a list of vectors that move and add as one: the tensors that one rank owns. It shares their memory.
type Shard [][]float32

// Len is the number of elements.
func (s Shard) Len() int {
	n := 0
	for _, v := range s {
		n += len(v)
	}
	return n
}

// Group is one process's place among the ranks. One goroutine uses it at a time.
type Group interface {
	// Rank is this process's number, from 0; Size the number of ranks, a power of two.
	Rank() int
	Size() int
	// ReduceScatter adds the ranks' parts: afterwards parts[Rank()] holds the sum over all ranks of their parts of that shard. The other
	// parts are left as they were.
	ReduceScatter(ctx context.Context, parts []Shard) error
	// AllGather fills shards[r], for every other rank r, with rank r's shards[r].
	AllGather(ctx context.Context, shards []Shard) error
	// Broadcast copies root's s to every other rank's.
	Broadcast(ctx context.Context, root int, s Shard) error
	// Scatter fills, on every other rank r, shards[r] with root's shards[r]; Gather is the other direction.
	Scatter(ctx context.Context, root int, shards []Shard) error
	Gather(ctx context.Context, root int, shards []Shard) error
	// Exchange gives every rank every rank's message, by rank: small facts, not tensors.
	Exchange(ctx context.Context, message []byte) ([][]byte, error)
	// Tell gives every other rank a message of this one's, and Listen returns the next message of root: for as long as the connection
	// stands, since between two steps of training there is nothing to say.
	Tell(ctx context.Context, message []byte) error
	Listen(ctx context.Context, root int) ([]byte, error)
	// Close ends the group for this rank; the others see it as an error.
	Close() error
}

// Alone is the group of one process.
type Alone struct{}

var _ Group = Alone{}

// Rank is 0.
func (Alone) Rank() int { return 0 }

// Size is 1.
func (Alone) Size() int { return 1 }

// ReduceScatter has nothing to add.
func (Alone) ReduceScatter(context.Context, []Shard) error { return nil }

// AllGather has nobody to ask.
func (Alone) AllGather(context.Context, []Shard) error { return nil }

// Broadcast has nobody to tell.
func (Alone) Broadcast(context.Context, int, Shard) error { return nil }

// Scatter has nobody to tell.
func (Alone) Scatter(context.Context, int, []Shard) error { return nil }

// Gather has nobody to ask.
func (Alone) Gather(context.Context, int, []Shard) error { return nil }

// Exchange returns the message.
func (Alone) Exchange(_ context.Context, message []byte) ([][]byte, error) {
	return [][]byte{message}, nil
}

// Tell has nobody to tell.
func (Alone) Tell(context.Context, []byte) error { return nil }

// Listen has nobody to listen to.
func (Alone) Listen(context.Context, int) ([]byte, error) { return nil, ErrEnded }

// Close does nothing.
func (Alone) Close() error { return nil }

// Tree folds one value a rank, or a leaf, along the fixed binary tree: the left half joined with the right half. The number of values must
// be a power of two.
func Tree[T any](values []T, join func(left, right T) T) T {
	if len(values) == 1 {
		return values[0]
	}
	mid := len(values) / 2
	return join(Tree(values[:mid], join), Tree(values[mid:], join))
}
