package client

import (
	"hash/fnv"
	"time"
)

// choose takes the less busy of two nodes that the key points at, another one with room if both are full, and nil if none
// has room. The node to avoid counts only where there is no other.
func (b *balancer) choose(key uint64, avoid *node) *node {
	now := time.Now()
	var able []*node
	others := 0
	for _, n := range b.nodes {
		if now.Before(n.restUntil) {
			continue
		}
		able = append(able, n)
		if n != avoid {
			others++
		}
	}
	if others > 0 && others < len(able) {
		for i, n := range able {
			if n == avoid {
				able = append(able[:i], able[i+1:]...)
				break
			}
		}
	}
	if len(able) == 0 {
		return nil
	}
	i := int(key % uint64(len(able)))
	j := (i + 1 + int((key>>32)%uint64(max(len(able)-1, 1)))) % len(able)
	best := able[i]
	if able[j].outstanding < best.outstanding {
		best = able[j]
	}
	for _, n := range able {
		if best.outstanding < b.inFlight {
			return best
		}
		if n.outstanding < best.outstanding {
			best = n
		}
	}
	if best.outstanding < b.inFlight {
		return best
	}
	return nil
}

// hashOf spreads keys over nodes.
func hashOf(key string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(key))
	x := h.Sum64()
	x ^= x >> 33 // fmix64 of MurmurHash3: FNV's high bits depend too little on the last bytes
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
