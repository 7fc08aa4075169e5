package engine

import "github.com/restar-rl/restar/workers/model"

// state of a sequence in the scheduler.
type state int

const (
	idle    state = iota // between turns, or new
	waiting              // has a call, is in the waiting queue
	running              // has a call, is stepped
)

// sequence is a context and the KV computed for it: a session, or one call that keeps nothing.
type sequence struct {
	session  string
	age      uint64 // order of first appearance: the oldest is served first and loses its blocks last
	state    state
	ids      []int32
	computed int   // ids[:computed] have KV in blocks
	blocks   []int // covers at least computed ids, each referenced once
	chain    []key // chain[i] names block i, for the blocks that ids fills
	claims   []key // content this running sequence is going to publish
	call     *call
}

// keyBefore returns the key of everything before block i.
func (s *sequence) keyBefore(i int, root key) key {
	if i == 0 {
		return root
	}
	return s.blockKey(i-1, root)
}

// blockKey returns the key of block i, which ids must fill.
func (s *sequence) blockKey(i int, root key) key {
	for n := len(s.chain); n <= i; n++ {
		s.chain = append(s.chain, s.keyBefore(n, root).next(s.ids[n*model.BlockTokens:(n+1)*model.BlockTokens]))
	}
	return s.chain[i]
}

// tailKey names the ids after the last block that could be shared and before the last id, which must be computed to have its logits.
// It is false when there are none.
func (s *sequence) tailKey(root key) (key, bool) {
	full, n := s.shareable()
	tail := s.ids[full*model.BlockTokens : n]
	if len(tail) == 0 {
		return key{}, false
	}
	return s.keyBefore(full, root).next(tail), true
}

// shareable returns how many whole blocks and how many ids need not be computed if their KV is found.
func (s *sequence) shareable() (blocks, ids int) {
	ids = len(s.ids) - 1
	return ids / model.BlockTokens, ids
}

// commonPrefix returns how many leading ids two contexts share.
func commonPrefix(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
