package answers

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workers/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.MaybeChild()
	os.Exit(m.Run())
}

func options() Options { return Options{JSON: true, Decimals: 6, Isolation: "B"} }

// judged returns the verdicts for lines of input.
func judged(t *testing.T, o Options, input string) []line {
	t.Helper()
	var out strings.Builder
	if err := Verify(context.Background(), strings.NewReader(input), &out, io.Discard, o); err != nil {
		t.Fatal(err)
	}
	var lines []line
	for dec := json.NewDecoder(strings.NewReader(out.String())); dec.More(); {
		var l line
		if err := dec.Decode(&l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	return lines
}

const pairs = `{"gold":"6","prediction":"so \\boxed{6}"}
{"id":"b","gold":"\\frac{1}{2}","prediction":"0.5"}

{"gold":"6","prediction":"\\boxed{6} <answer>\\boxed{7}</answer>"}
{"gold":"\\sin 2x","prediction":"2\\sin x\\cos x"}
`

func TestVerdictsComeInTheOrderOfTheirLines(t *testing.T) {
	lines := judged(t, options(), pairs)
	want := []string{"1 correct integer", "2 correct rational", "4 wrong integer", "5 unknown numeric"}
	if len(lines) != len(want) || lines[1].ID != "b" {
		t.Fatalf("%d verdicts %+v, want %d", len(lines), lines, len(want))
	}
	for i, l := range lines {
		got := strings.Join([]string{string(rune('0' + l.Line)), string(l.Outcome), l.Path}, " ")
		if got != want[i] || (l.Reason == "") != (l.Outcome == "correct") {
			t.Errorf("verdict %d is %q (%s), want %q", i, got, l.Reason, want[i])
		}
	}
}

func TestOnlyBoxesCountWhereAsked(t *testing.T) {
	input := `{"gold":"6","prediction":"the answer is 6"}` + "\n" + `{"gold":"6","prediction":"\\boxed{6}"}` + "\n" + `{"gold":"6","prediction":"<answer>\\boxed{6}</answer>"}`
	for _, c := range []struct {
		boxed, strict bool
		want          string
	}{{false, false, "correct correct correct"}, {true, false, "wrong correct correct"}, {false, true, "wrong wrong correct"}} {
		o := options()
		o.Boxed, o.Strict = c.boxed, c.strict
		var got []string
		for _, l := range judged(t, o, input) {
			got = append(got, string(l.Outcome))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("boxed %v, strict %v: %v, want %s", c.boxed, c.strict, got, c.want)
		}
	}
}

func TestCompatibilityAcceptsWhatTheReleasedVerifierAccepts(t *testing.T) {
	o := options()
	o.Compat = true
	lines := judged(t, o, `{"gold":"100000","prediction":"\\boxed{100001}"}`+"\n"+`{"gold":"50","prediction":"\\boxed{5000}"}`+"\n"+`{"gold":"50","prediction":"\\boxed{51}"}`)
	if lines[0].Outcome != "correct" || lines[1].Outcome != "correct" || lines[2].Outcome != "wrong" {
		t.Errorf("verdicts %+v, want correct, correct, wrong", lines)
	}
}

func TestSympyDecidesWhatIsLeftOpen(t *testing.T) {
	o := options()
	o.Symbolic = true
	var out strings.Builder
	err := Verify(context.Background(), strings.NewReader(pairs), &out, io.Discard, o)
	if errors.Is(err, sandbox.ErrInfrastructure) {
		t.Skipf("no sandbox with sympy starts here: %v", err)
	}
	if err != nil || !strings.Contains(out.String(), `"line":5,"verdict":"correct","path":"symbolic"`) {
		t.Errorf("%v: %s, want line 5 correct by sympy", err, out.String())
	}
}

func TestABadLineIsNamedAndTheVerdictsBeforeItStay(t *testing.T) {
	for bad, want := range map[string]string{
		`{"gold":6,"prediction":"6"}`: `line 2: "gold" is 6, want a string`, `{"gold":"6"}`: `line 2: no key "prediction"`, `{"gold":"6","prediction":"6","answer":"6"}`: `unknown key "answer"`,
		`6,6`: "line 2:", `[]`: "line 2:", `{"gold":"6","prediction":"6"} {}`: "line 2:", `{"gold":"6","prediction":null}`: "want a string", `{"gold":"6","gold":"7","prediction":"6"}`: `the key "gold" is there twice`, `{"gold":"6","prediction":"` + "\xff" + `6"}`: "not UTF-8", strings.Repeat("x", maxLine+1): "longer than",
	} {
		var out strings.Builder
		err := Verify(context.Background(), strings.NewReader(`{"gold":"1","prediction":"1"}`+"\n"+bad+"\n"), &out, io.Discard, options())
		if err == nil || fault.Code(err) != fault.User || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q gives %v, want the user's error %q", bad, err, want)
		}
		if strings.Count(out.String(), "\n") != 1 || !strings.Contains(out.String(), `"line":1`) {
			t.Errorf("%.40q: printed %q, want the verdict of line 1", bad, out.String())
		}
	}
}

func TestAMarkOfUTF8BelongsToNoLine(t *testing.T) {
	lines := judged(t, options(), "\xef\xbb\xbf"+`{"gold":"6","prediction":"6"}`+"\r\n"+`{"gold":"6","prediction":"7"}`)
	if len(lines) != 2 || lines[0].Outcome != "correct" || lines[1].Outcome != "wrong" {
		t.Errorf("verdicts %+v, want correct and wrong", lines)
	}
}

func TestAnswersThatAreNotComparedAreCountedByName(t *testing.T) {
	o := options()
	o.JSON = false
	var out strings.Builder
	if err := Verify(context.Background(), strings.NewReader(`{"gold":"","prediction":"6"}`), &out, io.Discard, o); err != nil || !strings.Contains(out.String(), "not compared 1") {
		t.Errorf("%v: %s, want one that is not compared", err, out.String())
	}
}

func TestWrongOptionsAndFilesAreTheUsersToMend(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"both extractions": func(o *Options) { o.Boxed, o.Strict = true, true }, "compat and strict": func(o *Options) { o.Compat, o.Strict = true, true },
		"no decimals": func(o *Options) { o.Decimals = 0 }, "tier": func(o *Options) { o.Isolation = "C" }, "no file": func(o *Options) { o.Path = filepath.Join(t.TempDir(), "none") }, "a folder": func(o *Options) { o.Path = t.TempDir() },
	} {
		o := options()
		change(&o)
		if err := Verify(context.Background(), strings.NewReader(""), io.Discard, io.Discard, o); fault.Code(err) != fault.User {
			t.Errorf("%s gives %v, want the user's error", name, err)
		}
	}
}

func TestTheTableEndsWithCounts(t *testing.T) {
	o := options()
	o.JSON = false
	path := filepath.Join(t.TempDir(), "pairs.jsonl")
	if err := os.WriteFile(path, []byte(pairs), 0o644); err != nil {
		t.Fatal(err)
	}
	o.Path = path
	var out strings.Builder
	if err := Verify(context.Background(), nil, &out, io.Discard, o); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"line 1", "correct", "4 judged", "correct       2   50.0%", "wrong         1   25.0%", "unknown       1   25.0%"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}

func TestWaitingForInputEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	in, _ := io.Pipe() // nobody writes
	cancel()
	if err := Verify(ctx, in, io.Discard, io.Discard, options()); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled reading gives %v", err)
	}
}
