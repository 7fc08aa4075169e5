package tokenizer

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"
)

// coder gives pieces of pre-tokenized text their ids.
type coder struct {
	byteIDs [256]int32
	merges  map[pair]merge
	whole   map[string]int32 // pieces that are one token whatever the merges say (ignore_merges); nil for none
	cache   *pieceCache
}

func (c *coder) append(ids []int32, piece string) []int32 {
	if len(piece) > maxCachedBytes {
		return append(ids, c.encode(piece)...)
	}
	known, ok := c.cache.find(piece)
	if !ok {
		known = c.encode(piece)
		c.cache.keep(piece, known)
	}
	return append(ids, known...)
}

func (c *coder) encode(piece string) []int32 {
	if id, ok := c.whole[piece]; ok {
		return []int32{id}
	}
	ids := make([]int32, len(piece))
	for i := range len(piece) {
		ids[i] = c.byteIDs[piece[i]]
	}
	return mergeAll(ids, c.merges)
}

// Bounds of the cache of encoded pieces: natural text repeats short pieces, and foreign text must not fill the memory.
const (
	cacheShards    = 16
	maxShardPieces = 1 << 12
	maxCachedBytes = 32
)

// pieceCache remembers the ids of short pieces. What is found in it changes no result, only when it is computed.
type pieceCache struct {
	seed   maphash.Seed
	shards [cacheShards]struct {
		mu    sync.RWMutex
		known map[string][]int32
	}
}

func newPieceCache() *pieceCache {
	c := &pieceCache{seed: maphash.MakeSeed()}
	for i := range c.shards {
		c.shards[i].known = map[string][]int32{}
	}
	return c
}

func (c *pieceCache) find(piece string) ([]int32, bool) {
	s := &c.shards[maphash.String(c.seed, piece)%cacheShards]
	s.mu.RLock()
	defer s.mu.RUnlock()
	ids, ok := s.known[piece]
	return ids, ok
}

func (c *pieceCache) keep(piece string, ids []int32) {
	s := &c.shards[maphash.String(c.seed, piece)%cacheShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) < maxShardPieces {
		s.known[strings.Clone(piece)] = slices.Clip(ids)
	}
}
