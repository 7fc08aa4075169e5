package engine

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/restar-rl/restar/cmd/restar-bench/internal/match"
)

// small is a shape of odd sizes that is quick.
var small = Shape{Name: "small", Vocab: 37, Hidden: 24, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 8, FF: 40, Positions: 256, Sequences: 2, Tokens: 70,
	Batch: 3, Prompt: 5, New: 7}

func TestTheProductsOfAStepAreTheModelsOperations(t *testing.T) {
	for _, s := range append([]Shape{small}, shapes...) {
		sum := 0.0
		for _, p := range s.products() {
			sum += float64(p.times) * p.flops()
		}
		if want := 3 * float64(s.rows()) * s.config().TokenFLOPs(0); math.Abs(sum-want) > 1e-9*want {
			t.Errorf("%s: products of %g operations, the model counts %g", s.Name, sum, want)
		}
	}
}

// ask plays requests against one of our contestants and returns its answers without the first, which says that it is ready.
func ask(t *testing.T, task string, s Shape, requests ...string) []match.Answer {
	t.Helper()
	job, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := Contest(t.Context(), task, string(job), strings.NewReader(strings.Join(requests, "\n")), &out); err != nil {
		t.Fatal(err)
	}
	var answers []match.Answer
	for line := range strings.Lines(out.String()) {
		var a match.Answer
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		answers = append(answers, a)
	}
	if len(answers) != len(requests)+1 {
		t.Fatalf("%d answers to %d requests", len(answers)-1, len(requests))
	}
	return answers[1:]
}

func TestATrainingContestantTrainsInBothPrecisions(t *testing.T) {
	for _, precision := range []string{fp32, bf16} {
		answers := ask(t, "train", small.in(precision), "1", "2", "2", "1")
		for i, a := range answers {
			if a.Seconds <= 0 || a.PeakRSS <= 0 {
				t.Errorf("%s: answer %+v, want seconds and memory", precision, a)
			}
			if i > 0 && a.Loss >= answers[i-1].Loss {
				t.Errorf("%s: loss %v after %v: the same batch again does not learn", precision, a.Loss, answers[i-1].Loss)
			}
		}
	}
}

func TestASamplingContestantTellsTimeAndRate(t *testing.T) {
	for _, a := range ask(t, "generate", small.in(bf16), "1", "2") {
		// What follows the last prompt is at most all but one id of each turn, and takes less than the whole.
		if most := float64(small.Batch * (small.New - 1)); a.Seconds <= 0 || a.Rate <= 0 || a.Rate < most/a.Seconds/2 {
			t.Errorf("answer %+v", a)
		}
	}
}

func TestEveryProductOfAStepCanBeAskedFor(t *testing.T) {
	var requests []string
	for _, precision := range []string{fp32, bf16} {
		requests = append(requests, product{m: 5, n: 33, k: 7}.request("PACK", precision, 2))
		for _, p := range small.products()[:3] {
			requests = append(requests, p.request(p.kind, precision, 2))
		}
	}
	for i, a := range ask(t, "products", Shape{}, requests...) {
		if a.Seconds <= 0 {
			t.Errorf("%s: %v s", requests[i], a.Seconds)
		}
	}
}

func TestTheOtherPartsOfAStepAreAllMeasured(t *testing.T) {
	a := ask(t, "parts", small, "2")[0]
	for _, kind := range []string{partRows, partAttention, partHead, partOptimizer} {
		if a.Parts[kind] <= 0 {
			t.Errorf("part %q takes %v s", kind, a.Parts[kind])
		}
	}
}

func TestUnknownNamesAreRefused(t *testing.T) {
	for _, o := range []Options{{Sections: []string{"nope"}}, {Sizes: []string{"nope"}}} {
		if err := Run(t.Context(), o, &strings.Builder{}, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), "nope") {
			t.Errorf("%+v: error %v, want one that names it", o, err)
		}
	}
	if err := Contest(t.Context(), "nope", "{}", strings.NewReader(""), &strings.Builder{}); err == nil {
		t.Error("a task that there is not was played")
	}
}

func TestAFigureBelowItsBarIsTold(t *testing.T) {
	r := &runner{figures: match.Figures{"decode64_vs_torch": 4.9, "train_vs_torch_1m": 6}}
	if missed := r.missed(); len(missed) != 1 || !strings.Contains(missed[0], "decode64_vs_torch is 4.9, the bar is 5") {
		t.Errorf("missed %q, want the one that is below", missed)
	}
}
