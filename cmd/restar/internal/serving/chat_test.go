package serving

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/serve"
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
	if err := os.Remove(filepath.Join(dir, "model", model.GenerationFile)); err != nil { // whose ends are bytes of the answer
		t.Fatal(err)
	}
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

// overheard is an engine that remembers what it sampled.
type overheard struct {
	serve.Sampler
	last engine.Generation
}

func (o *overheard) Generate(ctx context.Context, r engine.Request) (engine.Generation, error) {
	gen, err := o.Sampler.Generate(ctx, r)
	o.last = gen
	return gen, err
}

// answerOf is what the model of a folder answers in a chat.
func answerOf(t *testing.T, dir string) (ids []int32, stop agent.StopReason) {
	t.Helper()
	f, err := open(t.Context(), dir, EngineOptions{Precision: "fp32"})
	if err != nil {
		t.Fatal(err)
	}
	e, err := f.start()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	o := &overheard{Sampler: e}
	d, err := serve.NewDialogue(o, noTool{}, f.tokenizer, f.dialogue(ChatOptions{NoTool: true, Tokens: 12, Turns: 1, Temperature: 1, Seed: 4}))
	if err != nil {
		t.Fatal(err)
	}
	stop, err = d.Ask(t.Context(), "What is 6 times 7?", serve.Show{Text: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	return o.last.IDs, stop
}

func TestAnAnswerEndsAtEveryIDThatTheFolderNames(t *testing.T) {
	dir := exported(t)
	generation := filepath.Join(dir, "model", model.GenerationFile)
	if err := os.Remove(generation); err != nil {
		t.Fatal(err)
	}
	plain, stop := answerOf(t, dir)
	if len(plain) != 12 || stop != agent.StopLength {
		t.Fatalf("%d ids, stop %q, want an answer that is cut off", len(plain), stop)
	}
	end := plain[6]
	write(t, generation, fmt.Sprintf(`{"eos_token_id": [%d]}`, end))
	got, stop := answerOf(t, dir)
	if want := plain[:slices.Index(plain, end)+1]; !slices.Equal(got, want) || stop != agent.Answered {
		t.Errorf("ids %v, stop %q, want the same ids up to the first %d, %v", got, stop, end, want)
	}
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
