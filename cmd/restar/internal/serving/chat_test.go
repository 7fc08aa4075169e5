package serving

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/tokenizer"
	"github.com/restar-rl/restar/workers/train"
)

func TestMain(m *testing.M) {
	sandbox.MaybeChild()
	os.Exit(m.Run())
}

// taught is a run's folder with a model that answers a question with a text and the end of its turn.
func taught(t *testing.T, question, answer string) string {
	t.Helper()
	const lr, most, learnt = 1e-2, 400, 1e-2
	dir := exported(t)
	f, err := open(t.Context(), dir, EngineOptions{Precision: "fp32"})
	if err != nil {
		t.Fatal(err)
	}
	ids := f.template(true).PromptIDs(f.tokenizer, question)
	prompt := len(ids)
	ids = append(ids, f.tokenizer.EncodeWithSpecials(answer+tokenizer.TurnEnd)...)
	q := train.Sequence{IDs: ids, Mask: make([]uint8, len(ids)), LogProbs: make([]float32, len(ids))}
	for i := prompt; i < len(ids); i++ {
		q.Mask[i] = 1
	}
	state := train.NewState(f.model)
	for state.AppliedStep < most {
		m, err := train.Step(t.Context(), state, train.Batch{Sequences: []train.Sequence{q}}, state.AppliedStep+1, train.Objective{Kind: train.SFT},
			train.Optimizer{LR: lr, Beta1: 0.9, Beta2: 0.95, ClipNorm: 1})
		if err != nil {
			t.Fatal(err)
		}
		if m.Loss < learnt {
			if err := f.model.Save(filepath.Join(dir, "model")); err != nil {
				t.Fatal(err)
			}
			return dir
		}
	}
	t.Fatalf("the model has not learnt %q in %d steps", answer, most)
	return ""
}

func TestACallOfAChatRunsInASandbox(t *testing.T) {
	o := ChatOptions{EngineOptions: EngineOptions{Precision: "fp32"}, Isolation: "B", Tokens: 400, Turns: 2, Seed: 1, JSON: true}
	_, stop, err := o.runner(t.Context())
	if err != nil {
		t.Skipf("no sandbox starts here: %v", err)
	}
	stop()
	const question = "What is 6 times 7?"
	// The output is no part of what the model has seen: only a program that ran can tell it.
	dir := taught(t, question, tokenizer.PythonTool("python").Call("print(123456789 * 1001)", ""))
	var out bytes.Buffer
	if err := Chat(t.Context(), strings.NewReader(question), &out, dir, o); err != nil {
		t.Fatalf("%v:\n%s", err, out.String())
	}
	var responses []string
	for line := range strings.Lines(out.String()) {
		var e struct{ Event, Outcome, Text string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Event == "response" {
			if e.Outcome != string(agent.OK) {
				t.Errorf("outcome %q of a program without a fault", e.Outcome)
			}
			responses = append(responses, e.Text)
		}
	}
	if len(responses) == 0 || !strings.Contains(responses[0], "123580245789") {
		t.Errorf("responses %q, want what the program printed\n%s", responses, out.String())
	}
}
