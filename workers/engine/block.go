package engine

import (
	"container/list"
	"crypto/sha256"
	"encoding/binary"
)

// key names the content of a block: a hash over the weight version and every id from position 0 to the block's last.
type key [sha256.Size]byte

// rootKey is the key before the first id.
func rootKey(version string) key { return sha256.Sum256([]byte(version)) }

// next extends a key by ids. A block's key differs from that of an unfilled block in the number of ids hashed.
func (k key) next(ids []int32) key {
	buf := make([]byte, 0, len(k)+4*len(ids))
	buf = append(buf, k[:]...)
	for _, id := range ids {
		buf = binary.LittleEndian.AppendUint32(buf, uint32(id))
	}
	return sha256.Sum256(buf)
}

// pool hands out the KV blocks. A block is free, or referenced by sequences, or unreferenced but cached: still found by its keys until
// the space is needed, the one unused for longest first.
type pool struct {
	refs   []int
	free   []int
	keys   [][]key
	index  map[key]int
	cached *list.List // of block numbers, longest unused first
	place  []*list.Element
}

func newPool(blocks int) *pool {
	p := &pool{
		refs: make([]int, blocks), keys: make([][]key, blocks), place: make([]*list.Element, blocks),
		index: map[key]int{}, cached: list.New(),
	}
	for b := blocks - 1; b >= 0; b-- {
		p.free = append(p.free, b)
	}
	return p
}

// available counts the blocks that take can hand out.
func (p *pool) available() int { return len(p.free) + p.cached.Len() }

// take returns a block with one reference and no keys, or false when every block is referenced.
func (p *pool) take() (int, bool) {
	if n := len(p.free); n > 0 {
		b := p.free[n-1]
		p.free = p.free[:n-1]
		p.refs[b] = 1
		return b, true
	}
	front := p.cached.Front()
	if front == nil {
		return 0, false
	}
	b := front.Value.(int)
	p.ref(b)
	p.forget(b)
	return b, true
}

func (p *pool) ref(b int) {
	if p.place[b] != nil {
		p.cached.Remove(p.place[b])
		p.place[b] = nil
	}
	p.refs[b]++
}

func (p *pool) unref(b int) {
	p.refs[b]--
	switch {
	case p.refs[b] > 0:
	case len(p.keys[b]) > 0:
		p.place[b] = p.cached.PushBack(b)
	default:
		p.free = append(p.free, b)
	}
}

// unrefAll releases a block table last block first, so that a prefix outlives what follows it.
func (p *pool) unrefAll(blocks []int) {
	for i := len(blocks) - 1; i >= 0; i-- {
		p.unref(blocks[i])
	}
}

// publish lets others find a referenced block under a key. Of two blocks with the same content the first stays.
func (p *pool) publish(k key, b int) {
	if _, ok := p.index[k]; !ok {
		p.index[k] = b
		p.keys[b] = append(p.keys[b], k)
	}
}

// forget removes a referenced block's keys, before its content changes.
func (p *pool) forget(b int) {
	for _, k := range p.keys[b] {
		delete(p.index, k)
	}
	p.keys[b] = nil
}

func (p *pool) find(k key) (int, bool) {
	b, ok := p.index[k]
	return b, ok
}
