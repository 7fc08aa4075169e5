// Package philox gives every random choice of a run an address.
//
// It is the counter-based generator Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
// A draw is a pure function of (key, address): there is no generator state to save, and any draw of any run can be
// made again alone, in any order, on any machine.
package philox

import "math/bits"

// Multipliers and Weyl increments of Philox4x32 (SC 2011, table 2).
const (
	mul0, mul1   = 0xD2511F53, 0xCD9E8D57
	weyl0, weyl1 = 0x9E3779B9, 0xBB67AE85
	rounds       = 10 // the smallest count that passes BigCrush with a safety margin, as published
)

// Purpose separates the streams of unrelated choices that share an ordinal.
type Purpose uint8

// The purposes of a run. Their numbers are part of every recorded run: append, never renumber.
const (
	Rollout  Purpose = 1 + iota // sampled tokens of training rollouts
	Eval                        // sampled tokens of evaluation
	Filter                      // sampled tokens of the offline difficulty filter
	Select                      // which samples of a group are kept
	Shuffle                     // the order of problems and demonstrations
	Init                        // initial weights
	Tool                        // the seeds that a tool call sees
	Generate                    // generated problems and demonstrations
	Hint                        // sampled tokens of rollouts that were given the answer
)

// Address names one random choice. Fields wider than their packing below are rejected by Valid.
type Address struct {
	Purpose   Purpose // 8 bits
	Stage     int     // 8 bits: position of the stage in the recipe
	Iteration int     // 24 bits: rollout round, always advancing
	Ordinal   int     // 32 bits: position of the prompt
	Sample    int     // 16 bits: position in the prompt's group
	Turn      int     // 12 bits
	Token     int     // 28 bits: position in the turn, or any index of the choice
}

// Valid reports whether every field fits its packing, so that no two addresses share a counter.
func (a Address) Valid() bool {
	fits := func(v int, width uint) bool { return v >= 0 && v>>width == 0 }
	return fits(a.Stage, 8) && fits(a.Iteration, 24) && fits(a.Ordinal, 32) &&
		fits(a.Sample, 16) && fits(a.Turn, 12) && fits(a.Token, 28)
}

// WithToken returns the address of the i-th choice within a's turn.
func (a Address) WithToken(i int) Address { a.Token = i; return a }

// WithTurn returns the address of turn t of a's sample.
func (a Address) WithTurn(t int) Address { a.Turn, a.Token = t, 0; return a }

func (a Address) counter() [4]uint32 {
	return [4]uint32{
		uint32(a.Purpose)<<24 | uint32(a.Iteration),
		uint32(a.Ordinal),
		uint32(a.Stage)<<24 | uint32(a.Sample)<<8 | uint32(a.Turn)>>4,
		uint32(a.Turn)<<28 | uint32(a.Token),
	}
}

// Key is a run's key, made from its seed.
type Key [2]uint32

// NewKey makes the key of a run seed.
func NewKey(seed uint64) Key { return Key{uint32(seed), uint32(seed >> 32)} }

// Block returns the four words of the bijection at a counter.
func (k Key) Block(c [4]uint32) [4]uint32 {
	for range rounds {
		hi0, lo0 := bits.Mul32(mul0, c[0])
		hi1, lo1 := bits.Mul32(mul1, c[2])
		c = [4]uint32{hi1 ^ c[1] ^ k[0], lo1, hi0 ^ c[3] ^ k[1], lo0}
		k[0] += weyl0
		k[1] += weyl1
	}
	return c
}

// At returns the four words at an address.
func (k Key) At(a Address) [4]uint32 { return k.Block(a.counter()) }

// Uint64 returns 64 random bits at an address.
func (k Key) Uint64(a Address) uint64 {
	w := k.At(a)
	return uint64(w[0])<<32 | uint64(w[1])
}

// Uniform returns a float64 in [0,1) with 53 random bits at an address.
func (k Key) Uniform(a Address) float64 { return float64(k.Uint64(a)>>11) / (1 << 53) }

// IntN returns an integer in [0,n) at an address; n must be positive. The bias is below n/2^64.
func (k Key) IntN(a Address, n int) int {
	hi, _ := bits.Mul64(k.Uint64(a), uint64(n))
	return int(hi)
}

// Perm returns a permutation of [0,n), drawn by Fisher and Yates with Token as the index of the swap.
func (k Key) Perm(a Address, n int) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	for i := n - 1; i > 0; i-- {
		j := k.IntN(a.WithToken(i), i+1)
		p[i], p[j] = p[j], p[i]
	}
	return p
}
