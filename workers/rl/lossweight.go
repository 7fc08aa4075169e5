package rl

import "fmt"

// LossNorm names the denominator of the policy-gradient loss. It is always taken over the whole optimizer batch, before any
// cut into micro-batches or ranks, so the cut cannot change the loss.
type LossNorm string

// The denominators. S is the number of sequences, n_i the sampled tokens of sequence i, L a constant.
const (
	TokenMean    LossNorm = "token-mean"    // DAPO and rStar2-Agent Eq 6: each token weighs 1 / sum(n)
	SequenceMean LossNorm = "sequence-mean" // DeepSeekMath GRPO: each token of sequence i weighs 1 / (S n_i)
	ConstantNorm LossNorm = "constant"      // Dr.GRPO: each token weighs 1 / (S L)
)

// TokenWeights gives, for each sequence, the weight of each of its sampled tokens in the loss. tokens[i] is n_i (mask 1 only);
// length is L and read by ConstantNorm alone. A sequence without sampled tokens weighs 0 and still counts in S.
func TokenWeights(norm LossNorm, tokens []int, length int) ([]float64, error) {
	total := 0
	for i, n := range tokens {
		if n < 0 {
			return nil, fmt.Errorf("sequence %d has %d sampled tokens; counts cannot be negative", i, n)
		}
		total += n
	}
	if norm == ConstantNorm && length < 1 {
		return nil, fmt.Errorf("loss norm %q has length %d; it needs a positive constant", norm, length)
	}
	weights := make([]float64, len(tokens))
	for i, n := range tokens {
		if n == 0 {
			continue
		}
		switch norm {
		case TokenMean, "":
			weights[i] = 1 / float64(total)
		case SequenceMean:
			weights[i] = 1 / (float64(len(tokens)) * float64(n))
		case ConstantNorm:
			weights[i] = 1 / (float64(len(tokens)) * float64(length))
		default:
			return nil, fmt.Errorf("loss norm %q is not known; use %q, %q or %q", norm, TokenMean, SequenceMean, ConstantNorm)
		}
	}
	return weights, nil
}
