package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/tokenizer"
	"github.com/restar-rl/restar/workers/train"
)

// short renders conversations without tools' signatures, so that a small model reads them.
var short = tokenizer.Template{System: "S", Instruction: "I: "}

const groups, groupSize, calledTurns = 32, 4, 3

// caller is a model of a few thousand weights that was shown conversations with calls until it writes such ones.
var caller = sync.OnceValues(func() (*model.Model, error) {
	tok := testTokenizer()
	m, err := model.New(model.Config{Family: model.Qwen3, VocabSize: tok.VocabSize(), HiddenSize: 32, IntermediateSize: 64, Layers: 1, Heads: 2, KVHeads: 1,
		HeadDim: 16, MaxPosition: 1024, RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true, InitializerRange: 0.1}, 3)
	if err != nil {
		return nil, err
	}
	call := "</reason>\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"code\": \"%d\"}}\n</tool_call>"
	var b train.Batch
	for i := range 6 {
		turns := []tokenizer.Turn{{Role: tokenizer.RoleAssistant, Text: fmt.Sprintf(call, i)}, {Role: tokenizer.RoleTool, Text: fmt.Sprintf("Tool call success\nstdout: %d\n", i)},
			{Role: tokenizer.RoleAssistant, Text: fmt.Sprintf("</reason>\n<answer>\\boxed{%d}</answer>", i)}}
		switch i {
		case 0: // two calls in a turn
			turns[0].Text += fmt.Sprintf(call, 7)
		case 1: // and in two turns
			turns = append(slices.Clone(turns[:2]), turns...)
		}
		ids, mask := short.Conversation(tok, fmt.Sprint(i), turns)
		b.Sequences = append(b.Sequences, train.Sequence{Ordinal: i, IDs: ids, Mask: mask, LogProbs: make([]float32, len(ids))})
	}
	s := train.NewState(m)
	for step := range int64(150) {
		if _, err := train.Step(context.Background(), s, b, step+1, train.Objective{Kind: train.SFT}, train.Optimizer{LR: 0.02, Beta1: 0.9, Beta2: 0.999, ClipNorm: 1}); err != nil {
			return nil, err
		}
	}
	return m, nil
})

func callerConfig() Config {
	c := testConfig()
	c.Tools, c.Format = []Tool{Python("f")}, ResponseFormat{StreamChars: 40}
	return c
}

// callerTask is sample s of group g.
func callerTask(g, s int) Task {
	return Task{
		Problem: fmt.Sprint(g), Prompt: short.PromptIDs(testTokenizer(), fmt.Sprint(g%6)), Seed: 11, Group: fmt.Sprint(g),
		Address:   philox.Address{Purpose: philox.Rollout, Stage: 1, Iteration: 4, Ordinal: g, Sample: s},
		MaxTokens: 260, MaxTurns: calledTurns, Temperature: 1, Version: "v1", Judge: judgeOf(fmt.Sprint(g % 6)),
	}
}

// sequential is the turn loop without everything: one trajectory at a time, one token at a time, no engine, no cache that outlives a
// turn, no company.
func sequential(t *testing.T, m *model.Model, task Task) (ids []int32, mask []uint8, logProbs, entropy []float32, stop StopReason) {
	t.Helper()
	tok, run := testTokenizer(), &fakeRunner{}
	add := func(id int32, m uint8, lp, h float32) {
		ids, mask, logProbs, entropy = append(ids, id), append(mask, m), append(logProbs, lp), append(entropy, h)
	}
	for _, id := range task.Prompt {
		add(id, 0, 0, 0)
	}
	end, _ := tok.SpecialID(tokenizer.TurnEnd)
	text, _ := tok.SpecialID(tokenizer.EndOfText)
	used := func() int { return len(ids) - len(task.Prompt) }
	for turn := 0; ; turn++ {
		begin, done := len(ids), 0
		cache := model.NewKVCache(m.Config, 12, model.WithPrecision(m.Precision()))
		blocks := []int{11, 3, 5, 0, 1, 2, 4, 6, 7, 8, 9, 10}
		for {
			if used() == task.MaxTokens {
				return ids, mask, logProbs, entropy, StopLength
			}
			at := task.Address.WithTurn(turn).WithToken(len(ids) - begin)
			d, err := m.Sample(t.Context(), nil, []model.Span{{IDs: ids[done:], Start: done, Blocks: blocks, Want: true}}, cache,
				[]model.Choice{{Temperature: task.Temperature, Key: philox.NewKey(task.Seed), At: at}}, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			done = len(ids)
			add(d[0].ID, 1, d[0].LogP, d[0].Entropy)
			if d[0].ID == end || d[0].ID == text {
				break
			}
		}
		calls := ParseToolCalls(tok.Decode(ids[begin:]))
		switch {
		case len(calls) == 0:
			return ids, mask, logProbs, entropy, Answered
		case used() == task.MaxTokens:
			return ids, mask, logProbs, entropy, StopLength
		case turn+1 == task.MaxTurns:
			return ids, mask, logProbs, entropy, StopTurns
		}
		var answers []string
		for i, call := range calls {
			answers = append(answers, sequentialAnswer(t, run, task, turn, i, call))
		}
		block := tokenizer.ToolBlockIDs(tok, answers)
		if used()+len(block) >= task.MaxTokens {
			return ids, mask, logProbs, entropy, ToolOverflow
		}
		for _, id := range block {
			add(id, 0, 0, 0)
		}
	}
}

func sequentialAnswer(t *testing.T, run Runner, task Task, turn, i int, call ToolCall) string {
	t.Helper()
	f := callerConfig().Format
	switch {
	case i >= callerConfig().CallsPerTurn:
		return "Error when executing tool: only 2 tool calls per turn are run; this one was not"
	case call.Err != nil:
		return "Failed to decode tool call: " + strings.ReplaceAll(call.Err.Error(), "</tool_response>", `<\/tool_response>`)
	case call.Name != "f":
		return "Error when executing tool: '" + call.Name + "' is not a tool"
	}
	code, stdin, err := Python("f").Program(call.Arguments)
	if err != nil {
		return "Error when executing tool: " + err.Error()
	}
	a := task.Address.WithTurn(turn)
	a.Purpose, a.Token = philox.Tool, int(philox.Rollout)<<16|i
	result, err := run.Run(t.Context(), sandbox.Call{Code: code, Stdin: stdin, Seed: philox.NewKey(task.Seed).Uint64(a)})
	if err != nil {
		t.Fatal(err)
	}
	return FormatToolResponse(result, f)
}

func TestTrajectoriesAreThoseOfAPlainSequentialLoop(t *testing.T) {
	m, err := caller()
	if err != nil {
		t.Fatal(err)
	}
	list := callerTasks()
	got := inFlight(t, m, list, 0, 96)
	stops, calls := map[StopReason]int{}, 0
	for i, tr := range got {
		ids, mask, logProbs, entropy, stop := sequential(t, m, list[i])
		if !slices.Equal(tr.IDs, ids) || !slices.Equal(tr.Mask, mask) || !slices.Equal(tr.LogProbs, logProbs) || !slices.Equal(tr.Entropy, entropy) || tr.Stop != stop {
			t.Errorf("trajectory %s differs from the sequential loop's:\n%q (%s)\n%q (%s)", tr.Key, testTokenizer().Decode(tr.IDs), tr.Stop, testTokenizer().Decode(ids), stop)
		}
		stops[tr.Stop]++
		calls += tr.Counts().Calls
	}
	if stops[Answered] < 10 || len(stops) < 2 || calls < 100 {
		t.Errorf("the model makes %d calls and stops by %v; it was shown too little", calls, stops)
	}
}
