package agent

import (
	"fmt"
	"math"
	"time"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/engine"
)

// StopReason says why a trajectory is finished.
type StopReason string

// The stop reasons. "" means that it is not finished. Those of a limit leave the answer out: such a trajectory is wrong, and
// kept (rStar2-Agent §4.3.1).
const (
	Answered     StopReason = "answered"      // the model ended a turn without a tool call
	StopLength   StopReason = "length"        // the response budget is used up
	StopTurns    StopReason = "turns"         // the last turn allowed still calls a tool, which is not run
	ToolOverflow StopReason = "tool_overflow" // a tool response does not fit the budget and was not appended
	Lost         StopReason = "lost"          // given up for failures of the infrastructure (Lose): neither right nor wrong
)

// Turn is one assistant turn: ids [Start, End) of its trajectory are sampled. The ids from End to the next turn's Start are its
// tool block.
type Turn struct {
	Start  int           `json:"start"`
	End    int           `json:"end"`
	Finish engine.Finish `json:"finish"`
	Calls  []ToolOutcome `json:"calls,omitempty"` // in the order written
}

// Answers counts the answer tags of the model's own text.
type Answers struct {
	Open  int `json:"open"`
	Close int `json:"close"`
	Pairs int `json:"pairs"` // closed <answer>...</answer> blocks within one turn
}

// Timings are measurements. They differ between runs and are part of no digest.
type Timings struct {
	Generate time.Duration `json:"generate_ns"` // waiting for the engine
	Tools    time.Duration `json:"tools_ns"`    // waiting for tool results, retries included
	Queue    time.Duration `json:"queue_ns"`    // sum over calls: before the sandbox started them
	CPU      time.Duration `json:"cpu_ns"`      // sum over calls: CPU time of the program
	MaxCPU   time.Duration `json:"max_cpu_ns"`  // largest CPU time of a call that was not timed out
	MaxWall  time.Duration `json:"max_wall_ns"` // largest wall time of a call that was not timed out
	Verify   time.Duration `json:"verify_ns"`   // waiting for the verdict
	Retries  int           `json:"retries"`     // repeated attempts after infrastructure failures
}

func (t Timings) plus(o Timings) Timings {
	return Timings{
		Generate: t.Generate + o.Generate, Tools: t.Tools + o.Tools, Queue: t.Queue + o.Queue, CPU: t.CPU + o.CPU,
		MaxCPU: max(t.MaxCPU, o.MaxCPU), MaxWall: max(t.MaxWall, o.MaxWall), Verify: t.Verify + o.Verify, Retries: t.Retries + o.Retries,
	}
}

// Trajectory is one rollout of one problem. IDs, Mask, LogProbs and Entropy have one entry per token of prompt and response.
type Trajectory struct {
	Key     string         // names the trajectory within its run
	Address philox.Address // of its random choices, turn and token 0
	Problem string         // id of the problem

	IDs       []int32
	Mask      []uint8   // 1 where the token was sampled by the model
	LogProbs  []float32 // natural log, of the distribution sampled from; 0 where Mask is 0
	Entropy   []float32 // nats, of the same distribution; 0 where Mask is 0; nil if the engine measures none
	PromptLen int
	Turns     []Turn
	Version   string // of the weights that sampled every turn

	Stop    StopReason
	Answers Answers
	Verdict Verdict
	Reward  float64 // 1 if the verdict is correct, else 0; without meaning if it is unknown

	Timings Timings
}

// Truncated reports whether the rollout was cut short by a token or turn limit.
func (t *Trajectory) Truncated() bool {
	return t.Stop == StopLength || t.Stop == StopTurns || t.Stop == ToolOverflow
}

// ResponseLen is the number of tokens after the prompt, tool blocks included: what the response budget bounds.
func (t *Trajectory) ResponseLen() int { return len(t.IDs) - t.PromptLen }

// Counts are the figures of one trajectory.
type Counts struct {
	Turns      int
	Calls      int // answered calls that count, NotRun left out
	Errors     int // of those, failures of the model
	Parse      int // parse errors
	Unknown    int // unknown tools
	Exec       int // execution errors
	Timeouts   int
	NotRun     int
	Duplicates int // calls that repeat an earlier call of the trajectory to the letter
	Sampled    int // tokens sampled by the model
	Tool       int // tokens of tool blocks
}

// Counts adds up the trajectory's figures.
func (t *Trajectory) Counts() Counts {
	c := Counts{Turns: len(t.Turns)}
	seen := map[string]bool{}
	for _, turn := range t.Turns {
		c.Sampled += turn.End - turn.Start
		for _, call := range turn.Calls {
			c.add(call, seen[call.Call])
			seen[call.Call] = true
		}
	}
	c.Tool = t.ResponseLen() - c.Sampled
	return c
}

func (c *Counts) add(call ToolOutcome, repeated bool) {
	if call.Type == NotRun {
		c.NotRun++
		return
	}
	c.Calls++
	if call.Type.IsError() {
		c.Errors++
	}
	if repeated {
		c.Duplicates++
	}
	switch call.Type {
	case ParseError:
		c.Parse++
	case UnknownTool:
		c.Unknown++
	case ExecError:
		c.Exec++
	case Timeout:
		c.Timeouts++
	}
}

// Check verifies the invariants of a trajectory, finished or not, and names the first one broken.
func (t *Trajectory) Check() error {
	n := len(t.IDs)
	if len(t.Mask) != n || len(t.LogProbs) != n || t.Entropy != nil && len(t.Entropy) != n {
		return fmt.Errorf("trajectory %s has %d ids, %d mask entries, %d log-probs and %d entropies; the counts must agree",
			t.Key, n, len(t.Mask), len(t.LogProbs), len(t.Entropy))
	}
	if t.PromptLen < 1 || t.PromptLen > n {
		return fmt.Errorf("trajectory %s has a prompt of %d tokens among %d; it needs at least one", t.Key, t.PromptLen, n)
	}
	if err := t.checkTurns(); err != nil {
		return fmt.Errorf("trajectory %s: %w", t.Key, err)
	}
	if err := t.checkTokens(); err != nil {
		return fmt.Errorf("trajectory %s: %w", t.Key, err)
	}
	if math.IsNaN(t.Reward) || math.IsInf(t.Reward, 0) {
		return fmt.Errorf("trajectory %s has reward %v; it must be finite", t.Key, t.Reward)
	}
	return nil
}

func (t *Trajectory) checkTurns() error {
	end := t.PromptLen
	for i, turn := range t.Turns {
		contiguous := turn.Start == end || i > 0 && turn.Start > end
		if !contiguous || turn.End <= turn.Start || turn.End > len(t.IDs) {
			return fmt.Errorf("turn %d spans [%d, %d) after token %d of %d", i, turn.Start, turn.End, end, len(t.IDs))
		}
		end = turn.End
	}
	if t.Stop == Lost { // between two turns, so that its last tool block may have no turn behind it
		return nil
	}
	if t.Stop != "" && end != len(t.IDs) {
		return fmt.Errorf("it is finished (%s) but %d tokens follow its last turn", t.Stop, len(t.IDs)-end)
	}
	if t.Stop != "" && len(t.Turns) == 0 {
		return fmt.Errorf("it is finished (%s) without a turn", t.Stop)
	}
	return nil
}

func (t *Trajectory) checkTokens() error {
	mask := sampledMask(len(t.IDs), t.Turns)
	for i, id := range t.IDs {
		lp, h := float64(t.LogProbs[i]), 0.0
		if t.Entropy != nil {
			h = float64(t.Entropy[i])
		}
		switch {
		case id < 0:
			return fmt.Errorf("token %d has id %d", i, id)
		case t.Mask[i] != mask[i]:
			return fmt.Errorf("token %d has mask %d, but its turn says %d", i, t.Mask[i], mask[i])
		case mask[i] == 0 && (math.Float64bits(lp) != 0 || math.Float64bits(h) != 0):
			return fmt.Errorf("token %d is not sampled but has log-prob %v and entropy %v; both must be 0", i, lp, h)
		case math.IsNaN(lp) || math.IsInf(lp, 0) || math.IsNaN(h) || math.IsInf(h, 0):
			return fmt.Errorf("token %d has log-prob %v and entropy %v; both must be finite", i, lp, h)
		}
	}
	return nil
}

// sampledMask is 1 on the tokens of the turns.
func sampledMask(n int, turns []Turn) []uint8 {
	mask := make([]uint8, n)
	for _, turn := range turns {
		for i := turn.Start; i < turn.End; i++ {
			mask[i] = 1
		}
	}
	return mask
}
