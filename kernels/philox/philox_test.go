package philox

import (
	"math"
	"testing"
)

// Known answers published with Random123 (kat_vectors, philox4x32 10).
func TestBlocksEqualThePublishedVectors(t *testing.T) {
	ones := [4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}
	for _, c := range []struct {
		key     Key
		counter [4]uint32
		want    [4]uint32
	}{
		{Key{}, [4]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{Key{0xffffffff, 0xffffffff}, ones, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{Key{0xa4093822, 0x299f31d0}, [4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := c.key.Block(c.counter); got != c.want {
			t.Errorf("Block(%x) with key %x = %x, want %x", c.counter, c.key, got, c.want)
		}
	}
}

func TestEveryFieldOfAnAddressChangesTheCounter(t *testing.T) {
	seen := map[[4]uint32]Address{}
	base := Address{Purpose: Rollout}
	for bit := range 32 {
		v := 1 << bit
		for _, a := range []Address{
			{Purpose: Purpose(v)}, {Purpose: Rollout, Stage: v}, {Purpose: Rollout, Iteration: v}, {Purpose: Rollout, Ordinal: v},
			{Purpose: Rollout, Sample: v}, {Purpose: Rollout, Turn: v}, {Purpose: Rollout, Token: v},
		} {
			if !a.Valid() || a == base || a.Purpose == 0 {
				continue
			}
			if other, dup := seen[a.counter()]; dup && other != a {
				t.Fatalf("%+v and %+v share a counter", a, other)
			}
			seen[a.counter()] = a
		}
	}
	if (Address{Token: 1 << 28}).Valid() || (Address{Stage: -1}).Valid() {
		t.Error("an address out of range passes as valid")
	}
}

func TestUniformIsUniform(t *testing.T) {
	k, n := NewKey(7), 20000
	var sum, sq float64
	for i := range n {
		u := k.Uniform(Address{Purpose: Select, Token: i})
		if u < 0 || u >= 1 {
			t.Fatalf("draw %d = %v, want [0,1)", i, u)
		}
		sum, sq = sum+u, sq+u*u
	}
	mean, variance := sum/float64(n), sq/float64(n)-sum*sum/float64(n)/float64(n)
	if math.Abs(mean-0.5) > 0.01 || math.Abs(variance-1.0/12) > 0.005 {
		t.Errorf("mean %v variance %v, want 0.5 and 1/12", mean, variance)
	}
}

func TestPermIsAPermutation(t *testing.T) {
	p, seen := NewKey(3).Perm(Address{Purpose: Shuffle}, 100), make([]bool, 100)
	for _, v := range p {
		if seen[v] {
			t.Fatalf("%d appears twice", v)
		}
		seen[v] = true
	}
}
