package kernels

// Geometry is the shape of attention: Heads query heads share KVHeads key-value heads in groups of Heads/KVHeads.
type Geometry struct{ Heads, KVHeads, Dim int }

// Group is the number of query heads that share one key-value head.
func (g Geometry) Group() int { return g.Heads / g.KVHeads }

// QKV is the width of a row of projected queries, keys and values, in this order.
func (g Geometry) QKV() int { return (g.Heads + 2*g.KVHeads) * g.Dim }

// BlockFloats is the size of one block of keys, or of values, of all key-value heads.
func (g Geometry) BlockFloats() int { return g.KVHeads * g.Dim * BlockTokens }

// HeadsArgs are the operands of Heads. For each row: every query and key head is RMS-normalised by its own mean square
// (weights WQ, WK of Dim floats; with both absent nothing is normalised), then rotated: with c, s = Cos, Sin at the row's position and i < Dim/2,
// out[i] = x[i]c[i]-x[i+Dim/2]s[i], out[i+Dim/2] = x[i+Dim/2]c[i]+x[i]s[i] (Su et al. 2021 in the NeoX half-split form). Queries
// are then multiplied by Dim^-1/2.
type HeadsArgs struct {
	Geometry  Geometry
	Rows      int
	Eps       float32
	QKV       View // [Rows, Geometry.QKV()]
	WQ, WK    View // [Dim], or both absent
	Positions View // int32 [Rows]
	Cos, Sin  View // [MaxPosition, Dim/2]
	Q         View // out [KVHeads, Rows*Group, Dim]: row (t, g) of a key-value head is its query head g at row t
	K, V      View // out [KVHeads, Rows, Dim]
}

// HeadsGradArgs are the operands of HeadsGrad: from DQ, DK, DV in the layouts of Q, K, V it writes DQKV and
// continues DWQ and DWK over rows ascending, heads ascending within a row.
type HeadsGradArgs struct {
	HeadsArgs  // Q, K and V are unused
	DQ, DK, DV View
	DQKV       View // out [Rows, Geometry.QKV()]
	DWQ, DWK   View // += [Dim], or absent with WQ and WK
}

// Spans says which rows belong to which sequence. Sequence i owns the rows [Row[i], Row[i+1]), whose absolute positions are
// Start[i], Start[i]+1, ... Its keys of positions [64b, 64b+64) live in block Table[TableAt[i]+b]. These are host slices: they
// shape the launch.
type Spans struct {
	Row     []int   // len = sequences+1
	Start   []int   // len = sequences
	TableAt []int   // len = sequences
	Table   []int32 // block numbers
}

// Sequences is the number of sequences.
func (s Spans) Sequences() int { return len(s.Start) }

// KVArgs are the operands of StoreKV. A block of keys is [KVHeads, Dim, BlockTokens] (transposed, so that it is an operand of
// the score product); a block of values is [KVHeads, BlockTokens, Dim]. Both caches are float32, or both bfloat16: then K and V are rounded,
// to nearest with ties to even, where they are as well as in the cache, so that attention and its gradient use the same numbers.
type KVArgs struct {
	Geometry       Geometry
	Spans          Spans
	Rows           int
	K, V           View // [KVHeads, Rows, Dim]; left as they are in the cache
	KCache, VCache View // [blocks, Geometry.BlockFloats()]
}

// AttentionArgs are the operands of Attention. Row t of a sequence sees the positions up to its own. Its scores of one block are
// reduced to a running maximum, sum and weighted values (online softmax: Milakov and Gimelshein 2018, alg. 3), blocks ascending from 0.
// A position outside the mask contributes an exact zero.
type AttentionArgs struct {
	Geometry       Geometry
	Spans          Spans
	Rows           int
	Q              View // [KVHeads, Rows*Group, Dim], scaled
	KCache, VCache View // as StoreKV wrote them; not read by AttentionGrad
	Out            View // out [Rows, Heads*Dim]; absent when only Rounded is wanted
	Rounded        View // out: Out as rounded rows; absent when it is no operand
	LSE            View // [KVHeads, Rows*Group]: log of the sum of exponentials; absent when no gradient is wanted
}

// AttentionGradArgs are the operands of AttentionGrad. Every span starts at position 0, so its rows hold all of its keys.
type AttentionGradArgs struct {
	AttentionArgs      // Out and LSE as Attention wrote them
	K, V          View // [KVHeads, Rows, Dim], as StoreKV left them
	DOut          View // [Rows, Heads*Dim]
	DQ, DK, DV    View // out, in the layouts of Q, K, V
}

// HeadArgs are the operands of HeadLogProbs. Row r's logits are Hidden[r] Head^T; Targets[r] < 0 marks a row without target, whose
// results are 0. LogSoftmax and Sample reduce stored logits in the same order, which is the backend's own, so that a sampler's log-probability
// has the bits of a trainer's.
type HeadArgs struct {
	Rows, Dim, Vocab   int
	Hidden             View // [Rows, Dim]
	Packed             View // the head's weights [Vocab, Dim], packed; float32 or bfloat16
	Targets            View // int32 [Rows]
	LogP, Entropy, LSE View // out [Rows], natural log
	Scratch            View // HeadScratch floats
	// Kept is room of any length for logits: HeadLogProbs leaves those of the first rows there, as many as fit, and HeadGrad computes only the
	// others again. Absent when no gradient is wanted.
	Kept View
}

// HeadGradArgs are the operands of HeadGrad: with p = softmax(logits), dlogits = Coef (onehot(target) - p).
type HeadGradArgs struct {
	HeadArgs      // LSE and Kept as HeadLogProbs wrote them
	Weights  View // [Vocab, Dim]: plain float32, or bfloat16 packed by PackNN
	Coef     View // [Rows]: dL/dlogp; a row with 0, or without target, takes no part
	DHidden  View // out [Rows, Dim]
	DWeights View // += [Vocab, Dim], rows ascending
	Begin    bool // DWeights begins at +0 and not at its old value
}
