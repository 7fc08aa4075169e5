package serve

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/tokenizer"
)

// echo is a sandbox that prints the program it gets.
type echo struct{}

func (echo) Run(_ context.Context, c sandbox.Call) (sandbox.Result, error) {
	return sandbox.Result{Status: sandbox.Success, Stdout: c.Code}, nil
}

func dialogue(t *testing.T, change func(*DialogueOptions)) (*Dialogue, *tokenizer.Tokenizer) {
	t.Helper()
	tok := testTokenizer(t)
	m, err := model.New(model.Config{
		Family: model.Qwen3, VocabSize: tok.VocabSize(), HiddenSize: 32, IntermediateSize: 64, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 16,
		MaxPosition: 600, RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true, InitializerRange: 0.3,
	}, 5)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(m, "v1", engine.Options{Blocks: 32})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	o := DialogueOptions{
		Template: tokenizer.Template{Tools: []tokenizer.Tool{tokenizer.PythonTool("python")}}, Positions: 600, MaxTokens: 20, MaxTurns: 3, Temperature: 1, Seed: 3,
		Agent: agent.Config{Tools: []agent.Tool{agent.Python("python")}, CallsPerTurn: 1, Retry: agent.DefaultRetry()},
	}
	if change != nil {
		change(&o)
	}
	d, err := NewDialogue(e, echo{}, tok, o)
	if err != nil {
		t.Fatal(err)
	}
	return d, tok
}

func silent() Show {
	return Show{Text: func(string) {}, Response: func(agent.OutcomeType, string) {}}
}

func TestADialogueOnlyGrowsAndKeepsTheModelsOwnIDs(t *testing.T) {
	d, tok := dialogue(t, nil)
	var shown string
	show := silent()
	show.Text = func(text string) { shown += text }
	if _, err := d.Ask(t.Context(), "first", show); err != nil {
		t.Fatal(err)
	}
	first := slices.Clone(d.ids)
	prompt := d.opt.Template.PromptIDs(tok, "first")
	if !slices.Equal(first[:len(prompt)], prompt) || shown != "<reason>"+tok.DecodeText(first[len(prompt):]) || shown == "<reason>" {
		t.Fatalf("shown %q, the ids say %q", shown, tok.DecodeText(first[len(prompt):]))
	}
	if _, err := d.Ask(t.Context(), "second", silent()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(d.ids[:len(first)], first) || !strings.Contains(tok.Decode(d.ids[len(first):]), "<|im_end|>\n<|im_start|>user\nsecond<|im_end|>\n<|im_start|>assistant\n<reason>") {
		t.Errorf("the dialogue went on as %q", tok.Decode(d.ids[len(first):]))
	}
	again, _ := dialogue(t, nil)
	for _, q := range []string{"first", "second"} {
		if _, err := again.Ask(t.Context(), q, silent()); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(again.ids, d.ids) {
		t.Error("the same dialogue with the same seed went another way")
	}
	d.Forget()
	if got := d.prompt("first"); !slices.Equal(got, prompt) {
		t.Error("a dialogue begun anew remembers something")
	}
}

func TestAnAnswerThatIsCalledOffIsForgotten(t *testing.T) {
	f := &scripted{tok: testTokenizer(t), says: says("a long answer")}
	d, err := NewDialogue(f, echo{}, f.tok, DialogueOptions{Positions: 4096, MaxTokens: 100, MaxTurns: 1, Agent: agent.Config{CallsPerTurn: 1, Retry: agent.DefaultRetry()}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Ask(t.Context(), "first", silent()); err != nil {
		t.Fatal(err)
	}
	before := slices.Clone(d.ids)
	f.gate = make(chan struct{}, 2) // two tokens come, and no more
	f.gate <- struct{}{}
	f.gate <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	show := silent()
	show.Text = func(string) { cancel() }
	if _, err := d.Ask(ctx, "second", show); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want the cancellation", err)
	}
	if !slices.Equal(d.ids, before) {
		t.Error("something of the answer was kept")
	}
}

func TestADialogueWithoutRoomSaysSo(t *testing.T) {
	d, _ := dialogue(t, nil)
	if _, err := d.Ask(t.Context(), strings.Repeat("long ", 400), silent()); !errors.Is(err, ErrFull) {
		t.Errorf("error %v, want ErrFull", err)
	}
}

func TestADialogueRunsTheCallsAndShowsTheirOutput(t *testing.T) {
	tok := testTokenizer(t)
	tool := tokenizer.PythonTool("python")
	f := &scripted{tok: tok}
	f.says = func(r engine.Request) string {
		if strings.Contains(tok.Decode(r.IDs), "<tool_response>\nTool call success\nstdout: print(6 * 7)\n</tool_response>") {
			return "</reason>\n<answer>42</answer>"
		}
		return "I compute it. </reason>\n" + tool.Call("print(6 * 7)", "")
	}
	d, err := NewDialogue(f, echo{}, tok, DialogueOptions{
		Template: tokenizer.Template{Tools: []tokenizer.Tool{tool}}, Positions: 4096, MaxTokens: 400, MaxTurns: 3, Temperature: 1,
		Agent: agent.Config{Tools: []agent.Tool{agent.Python("python")}, CallsPerTurn: 1, Retry: agent.DefaultRetry()},
	})
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	text := ""
	stop, err := d.Ask(t.Context(), "What is 6 times 7?", Show{
		Text: func(more string) { text += more },
		Response: func(o agent.OutcomeType, response string) {
			shown = append(shown, text, string(o)+": "+response)
			text = ""
		},
	})
	shown = append(shown, text)
	want := []string{"<reason>I compute it. </reason>\n" + tool.Call("print(6 * 7)", ""), "ok: Tool call success\nstdout: print(6 * 7)", "<reason></reason>\n<answer>42</answer>"}
	if err != nil || stop != agent.Answered || !slices.Equal(shown, want) {
		t.Errorf("%q, %v: shown %q, want %q", stop, err, shown, want)
	}
}
