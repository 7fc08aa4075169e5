package kernels

// Backend is a device and the operations of a decoder-only transformer, forward and backward side by side. In the comments below
// x[r,c] names a view of r*c floats, += an operation that continues from the old value.
type Backend interface {
	Device
	Products
	RowOps
	AttentionOps
	HeadOps
	SampleOps
	OptimizerOps
}

// Shape is the size of a matrix product: C has M rows and N columns, and K is the inner dimension.
type Shape struct{ M, N, K int }

// Products are the matrix products. With accumulate each element of C continues its chain from its old value; C is float32.
//
// The type of the operands' memory says which product is meant. Float32 operands: fused multiply-adds. Bfloat16 operands: pairs, see the
// package comment. A float32 left operand with packed bfloat16 weights: the weights are widened, which is exact, and the
// product is that of float32 operands.
type Products interface {
	Rounding
	// PackedLen is the number of elements of type t that a packed right operand with k rows and n columns takes.
	PackedLen(t DType, n, k int) int
	// Pack rearranges w[n,k] for GemmNT. If packed is bfloat16, w is rounded.
	Pack(s Stream, packed, w View, n, k int)
	// PackNN rearranges w[k,n] for GemmNN, likewise.
	PackNN(s Stream, packed, w View, n, k int)
	// GemmNT: c[M,N] = a[M,K] w[N,K]^T, with w packed. The forward product of a linear layer.
	GemmNT(s Stream, c, a, packed View, size Shape, accumulate bool)
	// GemmNN: c[M,N] = a[M,K] b[K,N], with b plain float32, or bfloat16 and packed by PackNN. The gradient of a linear layer's input.
	GemmNN(s Stream, c, a, b View, size Shape, accumulate bool)
	// GemmTN: c[M,N] = a[K,M]^T b[K,N] of float32. The gradient of a linear layer's weights; K runs over tokens.
	GemmTN(s Stream, c, a, b View, size Shape, accumulate bool)
	// GemmTNRounded: c[M,N] = a[K,M]^T b[K,N] of rounded rows. Sequence i is the tokens [row[i], row[i+1]), row[0] = 0 and the last is K:
	// pairs are of tokens of one sequence, counted from its start, so that a sequence's part of the sum has the same bits in any company.
	GemmTNRounded(s Stream, c, a, b View, size Shape, row []int, accumulate bool)
}

// Rounding makes bfloat16 operands of products. Rounding is to nearest, ties to even; a NaN stays one. Wherever an operation
// of this package may write a matrix as bfloat16, it writes rounded rows.
type Rounding interface {
	// RoundedLen is the number of bfloat16 elements that x[rows,cols] takes as rounded rows.
	RoundedLen(rows, cols int) int
	// RoundRows rounds float32 x[rows,cols].
	RoundRows(s Stream, dst, x View, rows, cols int)
}

// RowOps are the operations on single rows.
type RowOps interface {
	// Embedding: out[rows,dim] = table[vocab,dim] at ids[rows].
	Embedding(s Stream, out, table, ids View, rows, dim int)
	// EmbeddingGrad: dtable[ids[r]] += dout[r], rows ascending.
	EmbeddingGrad(s Stream, dtable, dout, ids View, rows, dim int)
	// AddBias: x[rows,dim] += bias[dim], in every row.
	AddBias(s Stream, x, bias View, rows, dim int)
	// BiasGrad: dbias[dim] += the sum of dy[rows,dim] over rows, ascending.
	BiasGrad(s Stream, dbias, dy View, rows, dim int)
	// RMSNorm: y = x * rstd * w with rstd[rows] = 1/sqrt(mean(x^2)+eps) (Zhang and Sennrich 2019, eq. 4). The sum of squares is
	// kept in 16 lanes (column c in lane c mod 16), which are folded by halves. y is float32 or rounded rows.
	RMSNorm(s Stream, y, rstd, x, w View, rows, dim int, eps float32)
	// RMSNormGrad: dx[rows,dim] += the gradient through RMSNorm of dy[rows,dim].
	RMSNormGrad(s Stream, dx, dy, x, w, rstd View, rows, dim int)
	// RMSNormWeightGrad: dw[dim] += sum over rows of dy * x * rstd.
	RMSNormWeightGrad(s Stream, dw, dy, x, rstd View, rows, dim int)
	// SwiGLU: y[rows,ff] = silu(gate) * up, where gateUp[rows,2*ff] holds gate then up (Shazeer 2020, eq. 6). y is float32 or rounded
	// rows.
	SwiGLU(s Stream, y, gateUp View, rows, ff int)
	// SwiGLUGrad: dGateUp[rows,2*ff] from dy[rows,ff]; dGateUp is float32 or rounded rows.
	SwiGLUGrad(s Stream, dGateUp, dy, gateUp View, rows, ff int)
}

// AttentionOps are the operations between the projection of queries, keys and values and the output projection.
type AttentionOps interface {
	// Heads splits qkv into normalised and rotated heads; see HeadsArgs.
	Heads(s Stream, a HeadsArgs)
	// HeadsGrad is the gradient of Heads; see HeadsGradArgs.
	HeadsGrad(s Stream, a HeadsGradArgs)
	// StoreKV writes rows of keys and values into cache blocks; see KVArgs.
	StoreKV(s Stream, a KVArgs)
	// Attention is causal attention over cache blocks; see AttentionArgs.
	Attention(s Stream, a AttentionArgs)
	// AttentionGrad is the gradient of Attention over whole sequences; see AttentionGradArgs.
	AttentionGrad(s Stream, a AttentionGradArgs)
}

// HeadOps turn final hidden states into log-probabilities. Logits exist for one chunk of rows at a time.
type HeadOps interface {
	// HeadScratch is the number of floats that HeadLogProbs and HeadGrad need for a head[vocab,dim].
	HeadScratch(dim, vocab int) int
	// HeadLogProbs: logits = hidden head^T, then logp, entropy and lse of each row; see HeadArgs.
	HeadLogProbs(s Stream, a HeadArgs)
	// HeadGrad is the gradient of HeadLogProbs's logp; see HeadGradArgs.
	HeadGrad(s Stream, a HeadGradArgs)
	// LogSoftmax: lse[r] and entropy[r] of logits[rows,vocab], natural log.
	LogSoftmax(s Stream, lse, entropy, logits View, rows, vocab int)
}

// AdamWStep holds the numbers of one AdamW update (Loshchilov and Hutter 2019, algorithm 2). Step counts from 1. Scale multiplies
// the gradient first: it carries the loss denominator and the clip factor.
type AdamWStep struct {
	LR, Beta1, Beta2, Eps, WeightDecay float64
	Step                               int64
	Scale                              float64
}

// OptimizerOps update weights.
type OptimizerOps interface {
	// AdamW updates w, m and v (n floats each) from g, element by element.
	AdamW(s Stream, w, m, v, g View, n int, step AdamWStep)
	// SumSquares: out[i] = sum of xs[i]^2 in float64, kept in 16 lanes (element j in lane j mod 16) folded by halves; valid after Sync.
	SumSquares(s Stream, out []float64, xs []View)
	// Add: dst += src, element by element, of the same length.
	Add(s Stream, dst, src View)
}
