package kernels

import "github.com/restar-rl/restar/kernels/philox"

// Choice is how a row of logits becomes a token. The distribution sampled is softmax(logits/Temperature), first cut to its TopK
// likeliest ids and then to the smallest set of likeliest ids whose share of what is left reaches TopP (Holtzman et al. 2020,
// section 3.1). Likelier comes first, and of equal logits the smaller id. The token is found by inverting the cumulative
// distribution in id order at Key.Uniform(At).
type Choice struct {
	Temperature float32 // 0 takes the likeliest id and reports softmax(logits), without a cut
	TopK        int     // 0 is off
	TopP        float32 // 0 is off, and so is 1
	Key         philox.Key
	At          philox.Address
}

// Likely is an id with its log-probability in nats.
type Likely struct {
	ID   int32
	LogP float32
}

// Draw is a sampled id with the log-probability and entropy (nats) of the distribution that it was drawn from.
type Draw struct {
	ID            int32
	LogP, Entropy float32
	Finite        bool     // false: the row was no distribution, and nothing was drawn
	Top           []Likely // the SampleArgs.Top likeliest ids of that distribution, or all that were left
}

// SampleArgs are the operands of Sample.
type SampleArgs struct {
	Rows, Vocab int
	Logits      View     // [Rows, Vocab]
	Choices     []Choice // host, len = Rows
	Top         int      // how many likeliest ids each draw reports
	Draws       []Draw   // host, out, len = Rows, valid after Sync
}

// SampleOps draw tokens.
type SampleOps interface {
	// Sample draws one token a row; see SampleArgs. Rows are independent.
	Sample(s Stream, a SampleArgs)
}
