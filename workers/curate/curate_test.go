package curate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/restar-rl/restar/workers/problem"
)

func row1(id, text, answer string) problem.Problem {
	return problem.Problem{ID: id, Problem: text, Answer: answer}
}

// reasons runs the filters and returns the reason of every removed id.
func reasons(in []problem.Problem, benchmarks [][]problem.Problem, opt Options) map[string]Reason {
	out := map[string]Reason{}
	_, report := Curate(in, benchmarks, opt)
	for _, r := range report.Removed {
		out[r.ID] = r.Reason
	}
	return out
}

func TestOnlyIntegerAnswersAreKeptInPlainDigits(t *testing.T) {
	for answer, want := range map[string]string{
		"6": "6", "+6": "6", " $42$ ": "42", "1,800": "1800", "-007": "-7", "999999999999999999": "999999999999999999",
	} {
		kept, report := Curate([]problem.Problem{row1("a", "What is it?", answer)}, nil, Options{})
		if len(kept) != 1 || kept[0].Answer != want {
			t.Errorf("answer %q: kept %v, removed %v, want %q", answer, kept, report.Removed, want)
		}
	}
	for answer, want := range map[string]Reason{
		"": NotInteger, "x": NotInteger, "6.0": NotInteger, "6.5": NotInteger, "1/2": NotInteger, "5 apples": NotInteger, "336^\\circ": NotInteger,
		"3, 5": NotInteger, "3 or 5": NotInteger, "6.5e27330467": NotInteger, "1,80": NotInteger, "1000000000000000000": TooManyDigits, "-1000000000000000000": TooManyDigits,
	} {
		if got := reasons([]problem.Problem{row1("a", "What is it?", answer)}, nil, Options{}); got["a"] != want {
			t.Errorf("answer %q removed for %q, want %q", answer, got["a"], want)
		}
	}
}

func TestRepeatedTextsAreKeptOnceAndNotAtAllWhereAnswersDiffer(t *testing.T) {
	kept, report := Curate([]problem.Problem{
		row1("a", "What is $3+5$?", "8"), row1("b", "what is  3 + 5", "8"), row1("c", "What is 3*5?", "15"),
		row1("d", "Count the \\dfrac{1}{2} dozen.", "6"), row1("e", "Count the $\\frac{1}{2}$ dozen", "7"),
	}, nil, Options{})
	if len(kept) != 2 || kept[0].ID != "a" || kept[1].ID != "c" {
		t.Errorf("kept %v, want a and c", kept)
	}
	want := []Removal{
		{"b", Duplicate, "the same text as a"},
		{"d", ConflictingAnswer, "the text has the answer 6 in d and 7 in e"},
		{"e", ConflictingAnswer, "the text has the answer 6 in d and 7 in e"},
	}
	if !slices.Equal(report.Removed, want) {
		t.Errorf("removed %v, want %v", report.Removed, want)
	}
}

func TestTrap24ASharedRunOfEightWordsIsAnOverlap(t *testing.T) {
	bench := [][]problem.Problem{{row1("aime-1", "Let ABC be a triangle with sides 13, 14 and 15. Find its area.", "84")}}
	for text, want := range map[string]Reason{
		"Find the inradius: let abc BE a triangle, with sides $13$...":       BenchmarkOverlap, // eight words: let abc be a triangle with sides 13
		"Suppose let ABC be a triangle with sides equal to 3.":               "",               // seven
		"Let ABC be a triangle with sides 13, 14 and 15. Find its area.":     BenchmarkOverlap,
		"Totally different words that have nothing in common with the rest.": "",
	} {
		if got := reasons([]problem.Problem{row1("a", text, "4")}, bench, Options{}); got["a"] != want {
			t.Errorf("%q removed for %q, want %q", text, got["a"], want)
		}
	}
}

func TestShortTextsOverlapOnlyAsAWhole(t *testing.T) {
	bench := [][]problem.Problem{{row1("b", "Compute $7^{13} \\bmod 11$.", "2")}}
	for text, want := range map[string]Reason{
		"compute 7^{13} \\bmod 11":      BenchmarkOverlap,
		"Compute $7^{13} \\bmod 12$.":   "",
		"Compute $7^{13} + \\bmod 11$.": "",
	} {
		if got := reasons([]problem.Problem{row1("a", text, "2")}, bench, Options{}); got["a"] != want {
			t.Errorf("%q removed for %q, want %q", text, got["a"], want)
		}
	}
}

func TestHeldOutProblemsAreComparedByTextOrByRuns(t *testing.T) {
	held := []problem.Problem{row1("h", "one two three four five six seven eight nine", "1")}
	same, similar := row1("s", "One two three four five six seven eight nine.", "1"), row1("t", "one two three four five six seven eight ten", "1")
	got := reasons([]problem.Problem{same, similar}, nil, Options{HeldOut: held})
	if got["s"] != HeldOutOverlap || got["t"] != "" {
		t.Errorf("by text: removed %v, want s only", got)
	}
	got = reasons([]problem.Problem{same, similar}, nil, Options{HeldOut: held, HeldOutRun: true})
	if got["s"] != HeldOutOverlap || got["t"] != HeldOutOverlap {
		t.Errorf("by runs: removed %v, want both", got)
	}
}

func TestTrap24AProblemThatStatesItsAnswerIsRemoved(t *testing.T) {
	for text, want := range map[string]Reason{
		"What is 6*7? The answer is 42.": AnswerLeak, "What is 6*7? Answer: $42$": AnswerLeak, `What is 6*7? \boxed{42}`: AnswerLeak, "What is 6*7? #### 42": AnswerLeak,
		"What is 6*7? The answer is 41.": "", "Is 42 the number of days?": "", `Write the answer in \boxed{}.`: "", "The answer is between 1 and 100. What is 6*7?": "",
	} {
		if got := reasons([]problem.Problem{row1("a", text, "42")}, nil, Options{}); got["a"] != want {
			t.Errorf("%q removed for %q, want %q", text, got["a"], want)
		}
	}
}

func TestLongPromptsAreRemovedWithTheirLength(t *testing.T) {
	_, report := Curate([]problem.Problem{row1("a", "one two three", "1"), row1("b", "one two", "1")}, nil, Options{
		PromptTokens: func(text string) int { return len(strings.Fields(text)) }, MaxPromptTokens: 2,
	})
	want := []Removal{{"a", PromptOverlong, "the prompt has 3 tokens, want at most 2"}}
	if !slices.Equal(report.Removed, want) {
		t.Errorf("removed %v, want %v", report.Removed, want)
	}
}

func TestEveryRowIsKeptOrRemovedOnceAndCountsAreSorted(t *testing.T) {
	in := []problem.Problem{row1("a", "one?", "1"), row1("b", "one?", "1"), row1("c", "two?", "x"), row1("d", " ", "4")}
	kept, report := Curate(in, nil, Options{BadRows: []problem.BadRow{{Line: 7, Reason: "row is not a JSON object"}}})
	if report.Rows != 5 || report.Kept != len(kept) || report.Rows != report.Kept+len(report.Removed) {
		t.Errorf("rows %d, kept %d, removed %d", report.Rows, report.Kept, len(report.Removed))
	}
	want := []Count{{NotInteger, 1}, {BadRow, 2}, {Duplicate, 1}}
	if !slices.Equal(report.Counts, want) {
		t.Errorf("counts %v, want %v", report.Counts, want)
	}
}

func TestCurationIsAFunctionOfItsInput(t *testing.T) {
	var in []problem.Problem
	for i := range 500 {
		in = append(in, row1(fmt.Sprint("p", i), fmt.Sprintf("What is %d plus %d?", i%150, i%7), fmt.Sprint(i%5)))
	}
	var first []byte
	for range 5 {
		kept, report := Curate(in, [][]problem.Problem{in[490:]}, Options{})
		body, err := json.Marshal([]any{kept, report})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = body
		}
		if string(body) != string(first) {
			t.Fatal("the same input gave another result")
		}
	}
}

func TestTheDigestNamesTheContent(t *testing.T) {
	a := []problem.Problem{row1("a", "x", "1"), row1("b", "y", "2")}
	b := []problem.Problem{row1("a", "x", "1"), row1("b", "y", "3")}
	if Digest(a) == Digest(b) || Digest(a) == Digest(a[:1]) || Digest(a) != Digest(slices.Clone(a)) {
		t.Error("digests do not follow the content")
	}
}

func TestGeneratedProblemsSurviveCurationAgainstTheOtherSplits(t *testing.T) {
	train, err := problem.Generate(1, 1500, problem.Train)
	if err != nil {
		t.Fatal(err)
	}
	var others [][]problem.Problem
	for _, split := range []problem.Split{problem.Test, problem.HeldOut} {
		set, err := problem.Generate(1, 400, split)
		if err != nil {
			t.Fatal(err)
		}
		others = append(others, set)
	}
	if kept, report := Curate(train, others, Options{}); len(kept) != len(train) {
		t.Errorf("kept %d of %d: %v", len(kept), len(train), report.Removed[:min(5, len(report.Removed))])
	}
}
