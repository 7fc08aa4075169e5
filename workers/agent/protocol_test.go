package agent

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/tokenizer"
)

// oneCall runs a trajectory of one call and an answer.
func oneCall(t *testing.T) (Trajectory, *fakeEngine, *fakeRunner) {
	t.Helper()
	e, r := newFakeEngine(turns("I compute."+callText("print(12 * 34)"), answerText("408"))), &fakeRunner{}
	return mustRun(t, newTestAgent(t, e, r, testConfig()), testTask(0), nil), e, r
}

func TestTrap01TrajectoryIsTheTemplateOfItsConversationToTheByteAndToken(t *testing.T) {
	tr, _, _ := oneCall(t)
	response := tr.Turns[0].Calls[0].Text
	conversation := []tokenizer.Turn{
		{Role: tokenizer.RoleAssistant, Text: "I compute." + callText("print(12 * 34)")},
		{Role: tokenizer.RoleTool, Text: response},
		{Role: tokenizer.RoleAssistant, Text: answerText("408")},
	}
	if got, want := testTokenizer().Decode(tr.IDs), template().Text("What is 12 * 34?", conversation); got != want {
		t.Errorf("trajectory reads\n%q\nwant\n%q", got, want)
	}
	ids, mask := template().Conversation(testTokenizer(), "What is 12 * 34?", conversation)
	if !slices.Equal(tr.IDs, ids) || !slices.Equal(tr.Mask, mask) {
		t.Error("ids or mask differ from those of a demonstration of the same conversation")
	}
}

func TestTrap26ToolBlockBytesBeginWithTheSeparatorAndReopenTheAssistant(t *testing.T) {
	e := newFakeEngine(turns(callText("print(1)")+callText("print(2)"), answerText("1")))
	tr := mustRun(t, newTestAgent(t, e, &fakeRunner{}, testConfig()), testTask(0), nil)
	calls := tr.Turns[0].Calls
	want := "\n<|im_start|>user\n<tool_response>\n" + calls[0].Text + "\n</tool_response>\n<tool_response>\n" + calls[1].Text +
		"\n</tool_response><|im_end|>\n<|im_start|>assistant\n<reason>"
	block := tr.IDs[tr.Turns[0].End:tr.Turns[1].Start]
	if got := testTokenizer().Decode(block); got != want {
		t.Errorf("tool block is\n%q\nwant\n%q", got, want)
	}
	end, _ := testTokenizer().SpecialID(tokenizer.TurnEnd)
	if tr.IDs[tr.Turns[0].End-1] != end || testTokenizer().Decode(block[:1]) != "\n" {
		t.Error("the line break between the turns is missing")
	}
}

func TestTrap02MaskIsExactlyWhatTheEngineSampled(t *testing.T) {
	var sampled []int
	e := newFakeEngine(turns("x"+callText("print(1)"), "y"+callText("print(2)"), answerText("3")))
	tr := mustRun(t, newTestAgent(t, e, &fakeRunner{}, testConfig()), testTask(0), func(r TurnRecord) error {
		sampled = append(sampled, len(r.IDs))
		return nil
	})
	if len(tr.Mask) != len(tr.IDs) || len(tr.LogProbs) != len(tr.IDs) || len(tr.Entropy) != len(tr.IDs) {
		t.Fatalf("lengths %d %d %d %d", len(tr.IDs), len(tr.Mask), len(tr.LogProbs), len(tr.Entropy))
	}
	for i, turn := range tr.Turns {
		ones := 0
		for _, m := range tr.Mask[turn.Start:turn.End] {
			ones += int(m)
		}
		if ones != sampled[i] || turn.End-turn.Start != sampled[i] {
			t.Errorf("turn %d has %d ones in %d tokens, the engine sampled %d", i, ones, turn.End-turn.Start, sampled[i])
		}
	}
	for i, m := range tr.Mask {
		if zero := tr.LogProbs[i] == 0 && tr.Entropy[i] == 0; m == 0 && !zero {
			t.Errorf("token %d was not sampled but has a log-prob", i)
		}
		if i < tr.PromptLen && m != 0 {
			t.Errorf("prompt token %d is in the loss", i)
		}
	}
	total := 0
	for _, m := range tr.Mask {
		total += int(m)
	}
	if total != tr.Counts().Sampled || tr.Counts().Sampled+tr.Counts().Tool != tr.ResponseLen() {
		t.Errorf("%d ones, counts %+v, response of %d", total, tr.Counts(), tr.ResponseLen())
	}
}

func TestTrap02StopTokenIsSampledAndTrained(t *testing.T) {
	tr, _, _ := oneCall(t)
	end, _ := testTokenizer().SpecialID(tokenizer.TurnEnd)
	for i, turn := range tr.Turns {
		if last := turn.End - 1; tr.IDs[last] != end || tr.Mask[last] != 1 || tr.LogProbs[last] == 0 {
			t.Errorf("turn %d ends with id %d, mask %d, log-prob %v", i, tr.IDs[last], tr.Mask[last], tr.LogProbs[last])
		}
	}
}

// endsAt is an engine whose turns end with another id than <|im_end|>, where the request knows it.
type endsAt struct {
	*fakeEngine
	id int32
}

func (e endsAt) Generate(ctx context.Context, req engine.Request) (engine.Generation, error) {
	gen, err := e.fakeEngine.Generate(ctx, req)
	if slices.Contains(req.Stop, e.id) {
		gen.IDs[len(gen.IDs)-1] = e.id
	}
	return gen, err
}

func TestAFurtherStopIDEndsATurnAndIsNoWordOfTheModels(t *testing.T) {
	tok, script := testTokenizer(), turns("I compute."+callText("print(12 * 34)"), answerText("408"))
	end, _ := tok.SpecialID(tokenizer.TurnEnd)
	text, _ := tok.SpecialID(tokenizer.EndOfText)
	further, _ := tok.SpecialID(tokenizer.ReasonOpen) // any id that the script does not write
	e := endsAt{newFakeEngine(script), further}
	c := testConfig()
	c.Stop = []int32{text, further, end, further}
	a := newTestAgent(t, e, &fakeRunner{}, c)
	if want := []int32{end, text, further}; !slices.Equal(a.stop, want) {
		t.Errorf("the engine is asked to stop at %v, want the markers and what was added, %v", a.stop, want)
	}
	judged := ""
	task := testTask(0)
	task.Judge = func(ctx context.Context, text string) (Verdict, error) {
		judged = text
		return judgeOf("408")(ctx, text)
	}
	tr := mustRun(t, a, task, nil)
	for i, turn := range tr.Turns {
		if last := turn.End - 1; tr.IDs[last] != further || tr.Mask[last] != 1 {
			t.Errorf("turn %d ends with id %d, mask %d, want the further stop id as sampled", i, tr.IDs[last], tr.Mask[last])
		}
	}
	if len(tr.Turns) != 2 || tr.Stop != Answered || tr.Reward != 1 || strings.Contains(judged, tokenizer.ReasonOpen) {
		t.Errorf("%d turns, stop %q, reward %v, judged %q", len(tr.Turns), tr.Stop, tr.Reward, judged)
	}
	plain := mustRun(t, newTestAgent(t, endsAt{newFakeEngine(script), further}, &fakeRunner{}, testConfig()), testTask(0), nil)
	same := testConfig()
	same.Stop = []int32{end, text}
	named := newTestAgent(t, endsAt{newFakeEngine(script), further}, &fakeRunner{}, same)
	if !slices.Equal(named.stop, []int32{end, text}) || mustCanonical(t, mustRun(t, named, testTask(0), nil)) != mustCanonical(t, plain) {
		t.Error("a folder that names the markers only changes what is asked of the engine, or the trajectory")
	}
}

func TestTrap12TruncatedTurnGetsNoStopToken(t *testing.T) {
	e := newFakeEngine(turns("1 2 3 4 5 6 7 8 9 10 11 12"))
	task := testTask(0)
	task.MaxTokens = 5
	tr := mustRun(t, newTestAgent(t, e, &fakeRunner{}, testConfig()), task, nil)
	end, _ := testTokenizer().SpecialID(tokenizer.TurnEnd)
	if tr.ResponseLen() != 5 || slices.Contains(tr.IDs[tr.PromptLen:], end) || tr.Stop != StopLength {
		t.Errorf("response of %d tokens, stop %q", tr.ResponseLen(), tr.Stop)
	}
}

func TestTrap01ContextOfEachTurnIsAStrictPrefixOfTheNext(t *testing.T) {
	// The fake engine refuses a context that does not extend the one before, so finishing is the proof.
	for sample := range 40 {
		e := newFakeEngine(mixedScript)
		tr := mustRun(t, newTestAgent(t, e, &fakeRunner{}, testConfig()), testTask(sample), nil)
		if e.generated[tr.Key] != len(tr.Turns) || e.released[tr.Key] != 1 {
			t.Errorf("sample %d: %d generations for %d turns, released %d times", sample, e.generated[tr.Key], len(tr.Turns), e.released[tr.Key])
		}
	}
}

func TestTrap01SampledTextIsNeverEncodedAgain(t *testing.T) {
	// One token per byte: text that the tokenizer would encode with fewer ids. They must come back as they were sampled.
	e := newFakeEngine(nil)
	tok := testTokenizer()
	text := "Tool call success"
	var ids []int32
	for _, b := range []byte(text) {
		ids = append(ids, tok.Encode(string(b))...)
	}
	if len(ids) <= len(tok.Encode(text)) {
		t.Fatal("the text is not compressed by the tokenizer")
	}
	end, _ := tok.SpecialID(tokenizer.TurnEnd)
	raw := &rawEngine{fakeEngine: e, ids: append(ids, end)}
	tr := mustRun(t, newTestAgent(t, raw, &fakeRunner{}, testConfig()), testTask(0), nil)
	if !slices.Equal(tr.IDs[tr.PromptLen:], raw.ids) {
		t.Errorf("sampled ids %v came back as %v", raw.ids, tr.IDs[tr.PromptLen:])
	}
}

func TestTrap22RewardReadsOnlyTheModelsOwnWords(t *testing.T) {
	// The program prints the right box; the model answers with a wrong one.
	e := newFakeEngine(turns(callText("raise ValueError('\\\\boxed{408} <answer>\\\\boxed{408}</answer>')"), answerText("7")))
	tr := mustRun(t, newTestAgent(t, e, &fakeRunner{}, testConfig()), testTask(0), nil)
	if tr.Reward != 1 { // the model's own program text holds the box, and that is the model's own word
		t.Errorf("reward %v", tr.Reward)
	}
	e = newFakeEngine(turns(callText("print(open('x').read())"), answerText("7")))
	tr = mustRun(t, newTestAgent(t, e, constantRunner("<answer>\\boxed{408}</answer>"), testConfig()), testTask(0), nil)
	if tr.Reward != 0 || tr.Verdict.Outcome != Wrong || tr.Answers != (Answers{1, 1, 1}) {
		t.Errorf("reward %v, verdict %+v, answers %+v", tr.Reward, tr.Verdict, tr.Answers)
	}
	if !strings.Contains(testTokenizer().Decode(tr.IDs), "\\boxed{408}") {
		t.Error("the tool response is missing")
	}
}

func TestCheckNamesBrokenInvariants(t *testing.T) {
	good, _, _ := oneCall(t)
	for name, spoil := range map[string]func(*Trajectory){
		"short mask":          func(t *Trajectory) { t.Mask = t.Mask[1:] },
		"mask of a tool":      func(t *Trajectory) { t.Mask[t.Turns[0].End] = 1 },
		"log-prob of prompt":  func(t *Trajectory) { t.LogProbs[0] = -1 },
		"NaN log-prob":        func(t *Trajectory) { t.LogProbs[t.Turns[0].Start] = float32(math.NaN()) },
		"infinite entropy":    func(t *Trajectory) { t.Entropy[t.Turns[0].Start] = float32(math.Inf(1)) },
		"empty prompt":        func(t *Trajectory) { t.PromptLen = 0 },
		"turn beyond the end": func(t *Trajectory) { t.Turns[1].End++ },
		"overlapping turns":   func(t *Trajectory) { t.Turns[1].Start = t.Turns[0].End - 1 },
		"tail after the end":  func(t *Trajectory) { t.Turns = t.Turns[:1] },
		"NaN reward":          func(t *Trajectory) { t.Reward = math.NaN() },
		"negative id":         func(t *Trajectory) { t.IDs[3] = -1 },
	} {
		bad := good
		bad.Mask, bad.IDs, bad.Turns = slices.Clone(good.Mask), slices.Clone(good.IDs), slices.Clone(good.Turns)
		bad.LogProbs, bad.Entropy = slices.Clone(good.LogProbs), slices.Clone(good.Entropy)
		spoil(&bad)
		if bad.Check() == nil {
			t.Errorf("%s passed the check", name)
		}
		if _, err := bad.Encode(); err == nil {
			t.Errorf("%s was encoded", name)
		}
	}
}

func TestAnswerTagsAreCountedTurnByTurn(t *testing.T) {
	// A block that opens in one turn and closes in another is no block.
	got := countAnswers([]string{"<answer>a\nb</answer> <answer> </answer></answer><answer>", "</answer>"})
	if want := (Answers{Open: 3, Close: 4, Pairs: 2}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}
