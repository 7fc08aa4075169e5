package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/tokenizer"
)

// ErrFull ends a dialogue whose context has no room for another turn.
var ErrFull = errors.New("serve: the dialogue has no room for another turn")

// DialogueOptions are those of a dialogue.
type DialogueOptions struct {
	Template    tokenizer.Template // with the tools that the agent runs
	Agent       agent.Config       // the tools and how their calls are answered
	Positions   int                // longest context of the model
	MaxTokens   int                // sampled and tool tokens of an answer
	MaxTurns    int                // turns of an answer
	Temperature float32
	Seed        uint64
}

// Show is told what happens while an answer comes, in order and one call at a time. No field may be nil.
type Show struct {
	Text     func(text string)                                // what the model writes, as it writes it: calls and the opened <reason> included
	Response func(outcome agent.OutcomeType, response string) // what a call came to
}

// Sampler is a Generator that keeps what it has computed for a session until Release. *engine.Engine is one.
type Sampler interface {
	Generator
	Release(session string)
}

// Dialogue is a conversation of one person with a model and its tools. It is kept in ids: what the model wrote is never encoded
// again, so the model reads its own turns as it wrote them. It serves one question at a time.
type Dialogue struct {
	opt    DialogueOptions
	engine Sampler
	runner agent.Runner
	tok    *tokenizer.Tokenizer
	ids    []int32 // all finished turns
	asked  int
}

// NewDialogue begins a conversation.
func NewDialogue(e Sampler, r agent.Runner, t *tokenizer.Tokenizer, o DialogueOptions) (*Dialogue, error) {
	d := &Dialogue{opt: o, engine: e, runner: r, tok: t}
	if o.Positions < 1 || o.MaxTokens < 1 || o.MaxTurns < 1 {
		return nil, fmt.Errorf("serve: dialogue with %d positions, %d tokens and %d turns, want positive numbers", o.Positions, o.MaxTokens, o.MaxTurns)
	}
	_, err := agent.New(e, r, t, o.Agent)
	return d, err
}

// Forget begins the conversation anew.
func (d *Dialogue) Forget() { d.ids = nil }

// Ask answers a question: the model's turns and its calls until it answers, its budget is used up, or ctx ends. An answer that
// does not come to its end because of ctx or an error is forgotten, with its question.
func (d *Dialogue) Ask(ctx context.Context, question string, show Show) (agent.StopReason, error) {
	prompt := d.prompt(question)
	room := min(d.opt.Positions, d.engine.Stats().TotalBlocks*model.BlockTokens) - len(prompt)
	if room < 1 {
		return "", fmt.Errorf("%w: it has %d tokens with this question, the model and its cache have room for %d", ErrFull, len(prompt), len(prompt)+room)
	}
	a, err := agent.New(tapped{d.engine, d.tok, show.Text}, d.runner, d.tok, d.opt.Agent)
	if err != nil {
		return "", err
	}
	d.asked++
	task := agent.Task{
		Problem: "dialogue", Prompt: prompt, Seed: d.opt.Seed, Address: philox.Address{Purpose: philox.Eval, Ordinal: d.asked},
		MaxTokens: min(d.opt.MaxTokens, room), MaxTurns: d.opt.MaxTurns, Temperature: d.opt.Temperature, Judge: unjudged,
	}
	t, err := a.Run(ctx, task, func(r agent.TurnRecord) error {
		for _, call := range r.Calls {
			show.Response(call.Type, call.Text)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	d.ids = t.IDs
	return t.Stop, nil
}

// prompt is the conversation up to the opening of the answer to question.
func (d *Dialogue) prompt(question string) []int32 {
	if len(d.ids) == 0 {
		return d.opt.Template.PromptIDs(d.tok, question)
	}
	ids := slices.Clone(d.ids)
	if end, _ := d.tok.SpecialID(tokenizer.TurnEnd); ids[len(ids)-1] != end {
		ids = append(ids, end) // the answer before was cut off
	}
	return append(ids, tokenizer.UserBlockIDs(d.tok, question)...)
}

// unjudged leaves the answer to the person.
func unjudged(context.Context, string) (agent.Verdict, error) {
	return agent.Verdict{Outcome: agent.Unknown}, nil
}

// tapped is an engine whose tokens are told in text as they come.
type tapped struct {
	Sampler
	tok  *tokenizer.Tokenizer
	tell func(string)
}

// Generate implements agent.Engine. Text is told by the caller's goroutine, since the engine's must not wait.
func (e tapped) Generate(ctx context.Context, req engine.Request) (engine.Generation, error) {
	f := &feed{wake: make(chan struct{}, 1)}
	req.OnToken = f.push
	text, opened := newCutter(e.tok, nil), false
	tell := func() {
		for _, t := range f.take() {
			if !opened {
				e.tell(tokenizer.ReasonOpen) // the end of the prompt
				opened = true
			}
			if more, _ := text.add(t.ID); more != "" {
				e.tell(more)
			}
		}
	}
	type result struct {
		gen engine.Generation
		err error
	}
	done := make(chan result, 1)
	go func() {
		gen, err := e.Sampler.Generate(ctx, req)
		done <- result{gen, err}
	}()
	for {
		select {
		case <-f.wake:
			tell()
		case r := <-done:
			tell()
			if more := text.close(); more != "" {
				e.tell(more)
			}
			return r.gen, r.err
		}
	}
}
