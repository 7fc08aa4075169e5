package problem

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/tokenizer"
)

var (
	callJSON = regexp.MustCompile(`(?s)<tool_call>\n(.*)\n</tool_call>`)
	boxed    = regexp.MustCompile(`\\boxed\{(.*)\}`)
)

func mustDemos(t *testing.T, seed uint64, n int) []Demo {
	t.Helper()
	demos, err := Demonstrations(seed, n, tokenizer.DefaultToolName)
	if err != nil {
		t.Fatal(err)
	}
	return demos
}

// gold is the answer to the question of demonstration i, drawn again.
func gold(t *testing.T, seed uint64, i int) string {
	t.Helper()
	all := families()
	q, ok := newQuestion(seed, i, demoStage, Train, all[i%len(all)], nil)
	if !ok {
		t.Fatalf("no question %d", i)
	}
	return fmt.Sprint(q.family.answer(q.numbers))
}

func codeOf(t *testing.T, turn Turn) string {
	t.Helper()
	m := callJSON.FindStringSubmatch(turn.Text)
	if m == nil {
		t.Fatalf("turn %q calls no tool", turn.Text)
	}
	var call struct {
		Name      string
		Arguments struct{ Code, Input string }
	}
	if err := json.Unmarshal([]byte(m[1]), &call); err != nil {
		t.Fatalf("call %q: %v", m[1], err)
	}
	return call.Arguments.Code
}

func TestDemonstrationsMixRightWrongAndFailingPrograms(t *testing.T) {
	const n = 6000
	right, wrong, failed, solved, mended := 0, 0, 0, 0, 0
	for i, d := range mustDemos(t, 3, n) {
		answer := boxed.FindStringSubmatch(d.Turns[len(d.Turns)-1].Text)[1]
		first := d.Turns[1].Text
		switch {
		case strings.HasPrefix(first, "Tool call failure"):
			failed++
		case answer == gold(t, 3, i):
			right++
		default:
			wrong++
		}
		if answer == gold(t, 3, i) {
			solved++
			if strings.HasPrefix(first, "Tool call failure") {
				mended++
			}
		}
	}
	t.Logf("first program right %.3f, wrong %.3f, failing %.3f; answered correctly %.3f",
		share(right, n), share(wrong, n), share(failed, n), share(solved, n))
	within(t, "right first programs", share(right, n), 0.08, 0.12)
	within(t, "failing first programs", share(failed, n), 0.28, 0.32)
	within(t, "correct answers", share(solved, n), 0.23, 0.29)
	within(t, "correct answers after a failure", share(mended, solved), 0.55, 0.67)
}

func share(k, n int) float64 { return float64(k) / float64(n) }

func within(t *testing.T, what string, got, low, high float64) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("share of %s is %.3f, want %.2f to %.2f", what, got, low, high)
	}
}

func TestTheAnswerOfADemonstrationIsItsLastOutput(t *testing.T) {
	for _, d := range mustDemos(t, 4, 2000) {
		last := d.Turns[len(d.Turns)-2].Text
		want := guess
		if out, ok := strings.CutPrefix(last, "Tool call success\nstdout: "); ok {
			want = strings.TrimSuffix(out, "\n")
		}
		if got := boxed.FindStringSubmatch(d.Turns[len(d.Turns)-1].Text)[1]; got != want {
			t.Fatalf("answer %q after tool output %q", got, last)
		}
	}
}

func TestCallsAreWrittenAsTheTemplateWritesThem(t *testing.T) {
	tool := tokenizer.PythonTool(tokenizer.DefaultToolName)
	for _, d := range mustDemos(t, 4, 500) {
		code := codeOf(t, d.Turns[0])
		if want := tokenizer.ReasonClose + "\n" + tool.Call(code, ""); d.Turns[0].Text != want {
			t.Fatalf("turn %q, want %q", d.Turns[0].Text, want)
		}
	}
}

func TestDemonstrationsAreShortEnoughForASmallModel(t *testing.T) {
	demos := mustDemos(t, 1, 4000)
	tpl := tokenizer.Template{Tools: []tokenizer.Tool{tokenizer.PythonTool(tokenizer.DefaultToolName)}}
	var texts []string
	for _, d := range demos {
		texts = append(texts, tpl.Text(d.Problem, turnsOf(d)))
	}
	tok, err := tokenizer.Train(texts, 1024, tokenizer.Markers())
	if err != nil {
		t.Fatal(err)
	}
	short := tokenizer.Template{System: "Solve the problem."}
	prompt, bare, question, written, whole, longest := 0, 0, 0, 0, 0, 0
	for _, d := range demos {
		ids, mask := tpl.Conversation(tok, d.Problem, turnsOf(d))
		prompt += len(tpl.PromptIDs(tok, d.Problem))
		bare += len(short.PromptIDs(tok, d.Problem))
		question += len(tok.Encode(d.Problem))
		whole += len(ids)
		longest = max(longest, len(ids)-len(tpl.PromptIDs(tok, d.Problem)))
		for _, m := range mask {
			written += int(m)
		}
	}
	n := len(demos)
	t.Logf("tokens: prompt %d (short system, no tool block: %d), question %d, response %d (longest %d), written by the assistant %d",
		prompt/n, bare/n, question/n, (whole-prompt)/n, longest, written/n)
	if written/n > 80 || question/n > 40 {
		t.Errorf("assistant writes %d tokens and the question has %d, want at most 80 and 40", written/n, question/n)
	}
}

func turnsOf(d Demo) []tokenizer.Turn {
	turns := make([]tokenizer.Turn, len(d.Turns))
	for i, turn := range d.Turns {
		turns[i] = tokenizer.Turn(turn)
	}
	return turns
}

// runner runs each program as the tool does for errors: "Type at line N: message" and the source line.
const runner = `
import sys, json, io, contextlib, traceback
out = []
for code in json.load(sys.stdin):
    stream = io.StringIO()
    try:
        with contextlib.redirect_stdout(stream):
            exec(compile(code, "<tool>", "exec"), {})
        out.append([stream.getvalue(), ""])
    except Exception as e:
        line = traceback.extract_tb(e.__traceback__)[1].lineno
        out.append(["", f"{type(e).__name__} at line {line}: {e}\n  {code.splitlines()[line-1]}\n"])
json.dump(out, sys.stdout)
`

func runPython(t *testing.T, codes []string) [][2]string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	body, err := json.Marshal(codes)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-c", runner)
	cmd.Stdin = strings.NewReader(string(body))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("python3: %v", err)
	}
	var results [][2]string
	if err := json.Unmarshal(out, &results); err != nil {
		t.Fatal(err)
	}
	return results
}

func TestPythonPrintsWhatDemonstrationsShow(t *testing.T) {
	var codes, shown []string
	for _, d := range mustDemos(t, 11, 1500) {
		for i := 0; i+1 < len(d.Turns); i += 2 {
			codes = append(codes, codeOf(t, d.Turns[i]))
			shown = append(shown, d.Turns[i+1].Text)
		}
	}
	for i, r := range runPython(t, codes) {
		want := successText(r[0])
		if r[1] != "" {
			want = failureText(r[1])
		}
		if shown[i] != want {
			t.Errorf("program %q: demonstration shows %q, Python gives %q", codes[i], shown[i], want)
		}
	}
}

func TestPythonAgreesOnEveryExpressionOfEveryFamily(t *testing.T) {
	var codes, want []string
	for fi, f := range families() {
		for k := range 25 {
			q, ok := newQuestion(21, 100*fi+k, 0, Train, f, nil)
			if !ok {
				t.Fatalf("%s: no numbers", f.name)
			}
			for _, e := range append(slices.Clone(f.wrong), f.right) {
				p := e.program(q.numbers, 0)
				codes, want = append(codes, p.code), append(want, p.stdout)
			}
		}
	}
	for i, r := range runPython(t, codes) {
		if r[0] != want[i] || r[1] != "" {
			t.Errorf("program %q: Go says %q, Python gives %q %q", codes[i], want[i], r[0], r[1])
		}
	}
}

func TestDiceGiveEveryNumberOfTheirRange(t *testing.T) {
	d := newDice(1, philox.Address{Purpose: philox.Generate})
	seen := map[int64]int{}
	for range 3000 {
		seen[d.between(3, 7)]++
	}
	if len(seen) != 5 || seen[3] < 500 || seen[7] < 500 {
		t.Errorf("draws from 3 to 7: %v", seen)
	}
}
