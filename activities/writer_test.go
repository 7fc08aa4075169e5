package activities

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/tokenizer"
)

// writer is a policy that writes by sample and turn alone, and the sandbox that its calls go to. It is the sampler of
// whatever weights are asked for.
type writer struct {
	tok     *tokenizer.Tokenizer
	version string
	before  func(a philox.Address) error // each turn
	run     func(sandbox.Call) error     // each tool call

	mu    sync.Mutex
	asked map[string]int // "sample/turn": how often
}

// writing gives a process a policy that needs no weights.
func writing(t *testing.T, b *bench, version string) *writer {
	t.Helper()
	tok, err := b.ro.Runs.Tokenizer(t.Context(), benchRun)
	must(t, err)
	w := &writer{tok: tok, version: version, asked: map[string]int{}}
	b.ro.Engines, b.ro.Pools = w, w
	return w
}

func (w *writer) Use(context.Context, string, Weights) (agent.Engine, func(), error) {
	return w, func() {}, nil
}
func (w *writer) Get(context.Context, recipe.Sandbox) (agent.Runner, error) { return w, nil }
func (w *writer) Release(string)                                            {}

func (w *writer) Run(_ context.Context, c sandbox.Call) (sandbox.Result, error) {
	if w.run != nil {
		if err := w.run(c); err != nil {
			return sandbox.Result{}, err
		}
	}
	return sandbox.Result{Status: sandbox.Success, Stdout: fmt.Sprintf("%d\n", c.Seed%1000)}, nil
}

func (w *writer) Generate(_ context.Context, r engine.Request) (engine.Generation, error) {
	w.mu.Lock()
	w.asked[fmt.Sprintf("%d/%d", r.Address.Sample, r.Address.Turn)]++
	w.mu.Unlock()
	if w.before != nil {
		if err := w.before(r.Address); err != nil {
			return engine.Generation{}, err
		}
	}
	out := engine.Generation{IDs: w.tok.EncodeWithSpecials(written(r.Address) + tokenizer.TurnEnd), Finish: engine.FinishStop, Version: w.version}
	key := philox.NewKey(r.Seed)
	for i := range out.IDs {
		out.LogProbs = append(out.LogProbs, -float32(key.Uniform(r.Address.WithToken(2*i))))
		out.Entropy = append(out.Entropy, float32(key.Uniform(r.Address.WithToken(2*i+1))))
	}
	return out, nil
}

// written is what the policy writes: of four samples the first answers at once, the second after a call, the third wrongly
// after a call that cannot be read and one that can, and the fourth calls until its turns are used up.
func written(a philox.Address) string {
	kind := a.Sample % 4
	switch {
	case kind == 2 && a.Turn == 0:
		return "</reason>\n<tool_call>\n{\"name\": 1\n</tool_call>"
	case kind == 1 && a.Turn == 0, kind == 2 && a.Turn == 1, kind == 3:
		return fmt.Sprintf("</reason>\n<tool_call>\n{\"name\": \"python_code_with_standard_io\", \"arguments\": {\"code\": \"print(%d)\", \"input\": \"\"}}\n</tool_call>", a.Turn)
	case kind == 2:
		return "</reason>\n<answer>\\boxed{8}</answer>"
	}
	return "</reason>\n<answer>\\boxed{7}</answer>"
}
