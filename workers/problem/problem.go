// Package problem holds problems with checkable answers: reading and writing them, and generating integer-answer ones
// together with demonstrations of the tool protocol.
//
// Invariants:
//   - Reading is strict: every row that cannot be used is reported with its line and the reason, and none is repaired.
//   - Generated problems are a function of (seed, split, position). The splits share no numbers within a kind of problem,
//     no text, and no run of eight words, whatever the seeds.
//   - Every generated problem has an integer answer of at least 1, and none of the wrong programs that demonstrations show
//     prints that answer.
package problem

// Problem is a question and its reference answer.
type Problem struct {
	ID      string `json:"id"`
	Problem string `json:"problem"`
	Answer  string `json:"answer"`
}

// The roles of a demonstration's turns.
const (
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// Turn is one message of a demonstration after the question: the assistant's text from right after its opening <reason> to
// before its end marker, or the text of one tool response.
type Turn struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

// Demo is one conversation to learn the protocol from.
type Demo struct {
	Problem string `json:"problem"`
	Turns   []Turn `json:"turns"`
}
