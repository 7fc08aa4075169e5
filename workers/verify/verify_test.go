package verify

import (
	"math/big"
	"math/rand"
	"strings"
	"testing"
)

func TestTheLastBoxOfTheLastAnswerCounts(t *testing.T) {
	for _, c := range []struct{ text, answer, path string }{
		{`</reason><answer>\boxed{6}</answer>`, "6", InAnswer},
		{`<answer>\boxed{1}</answer> no: <answer>so \boxed{2} or \boxed{3}</answer>`, "3", InAnswer},
		{`<answer>\boxed{1}</answer> later \boxed{9}`, "1", InAnswer},
		{`\boxed{4} and \boxed{5}`, "5", InText},
		{`\boxed{4} <answer>five</answer>`, "4", InText},
		{`<answer>\boxed{7}`, "7", InText},
		{`<answer>\fbox{8}</answer>`, "8", InAnswer},
		{`<answer>\boxed {9}</answer>`, "9", InAnswer},
		{`<answer>\boxed{\frac{1}{2}}</answer>`, `\frac{1}{2}`, InAnswer},
		{`<answer>\boxed{\{1, 2\}}</answer>`, `\{1, 2\}`, InAnswer},
		{`<answer>\boxed{ \text{a } b} }</answer>`, `\text{a } b`, InAnswer},
		{`<answer>\boxed{\boxed{3}}</answer>`, "3", InAnswer},
		{`<answer>\boxed{1} then \boxed{2</answer>`, "1", InAnswer},
		{`\fbox{1} \boxed{2} \fbox{3}`, "3", InText},
	} {
		answer, path, ok := Extract(c.text)
		if !ok || answer != c.answer || path != c.path {
			t.Errorf("Extract(%q) = %q by %q (%v), want %q by %q", c.text, answer, path, ok, c.answer, c.path)
		}
	}
}

func TestWithoutABoxThereIsNoAnswer(t *testing.T) {
	for _, text := range []string{"", "the answer is 42", "<answer>42</answer>", `\boxed`, `\boxed{`, `\boxed{5`, `\boxed 5`, `boxed{5}`, `\boxed}5{`} {
		if answer, path, ok := Extract(text); ok || path != Nowhere {
			t.Errorf("Extract(%q) = %q by %q, want nothing", text, answer, path)
		}
	}
}

func TestTheStrictRuleTakesNoBoxOutsideAnAnswer(t *testing.T) {
	for _, text := range []string{`\boxed{4}`, `<answer>\boxed{7}`, `\boxed{4}<answer>five</answer>`} {
		if answer, _, ok := ExtractStrict(text); ok {
			t.Errorf("ExtractStrict(%q) = %q, want nothing", text, answer)
		}
	}
	if answer, _, ok := ExtractStrict(`\boxed{1}<answer>\boxed{2}</answer>\boxed{3}`); !ok || answer != "2" {
		t.Errorf("strict answer %q, want 2", answer)
	}
}

func TestIntegersAreComparedExactly(t *testing.T) {
	for _, c := range []struct {
		gold, pred string
		want       Outcome
	}{
		{"6", "6", Correct}, {"6", "06", Correct}, {"6", "+6", Correct}, {"6", " $6$ ", Correct}, {"6", "6.0", Correct}, {"6", "6.", Correct},
		{"-6", "−6", Correct}, {"0", "-0", Correct}, {"1,800", "1800", Correct}, {"1800", "1{,}800", Correct}, {"1800", `1\,800`, Correct},
		{"1234567", "1 234 567", Correct}, {"6", `\(6\)`, Correct}, {"6", "{6}", Correct},
		{"100000", "100001", Wrong}, {"50", "5000", Wrong}, {"5000", "50", Wrong}, {"50", "0.5", Wrong}, {"6", "6.0001", Wrong}, {"6", "5.9999999", Wrong},
		{"35", "3 5", Wrong}, {"180", "1,80", Wrong}, {"3", "3, 5", Wrong}, {"3", "3 or 5", Wrong}, {"6", "", Wrong}, {"6", "six", Wrong},
		{"6", `6^\circ`, Wrong}, {"6", "6%", Wrong}, {"6", "2*3", Wrong}, {"100", "10**2", Wrong}, {"6", "x=6", Wrong}, {"6", "--6", Wrong}, {"6", "٦", Wrong},
		{"123456789012345678901234567890", "123456789012345678901234567890", Correct},
		{"123456789012345678901234567890", "123456789012345678901234567891", Wrong},
	} {
		if v := Judge(c.gold, c.pred); v.Outcome != c.want || v.Path != PathInteger || (v.Reason == "") != (c.want == Correct) {
			t.Errorf("Judge(%q, %q) = %+v, want %s by %s", c.gold, c.pred, v, c.want, PathInteger)
		}
	}
}

func TestRandomIntegersEqualOnlyThemselves(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for range 2000 {
		a := new(big.Int).Rand(rng, new(big.Int).Lsh(big.NewInt(1), uint(1+rng.Intn(200))))
		b := new(big.Int).Add(a, big.NewInt(int64(rng.Intn(3)-1)))
		want := Wrong
		if a.Cmp(b) == 0 {
			want = Correct
		}
		if got := Judge(a.String(), b.String()); got.Outcome != want {
			t.Fatalf("Judge(%v, %v) = %+v, want %s", a, b, got, want)
		}
	}
}

func TestWhatCannotBeDecidedIsUnknownAndSaysWhy(t *testing.T) {
	for _, c := range []struct {
		gold, pred string
		want       Outcome
	}{
		{`\frac{1}{2}`, `\frac{1}{2}`, Correct}, {`\frac{1}{2}`, ` $\frac{1} {2}$.`, Correct}, {`\frac{1}{2}`, "0.5", Unknown}, {"0.5", "", Wrong},
		{"", "5", Unknown}, {strings.Repeat("9", MaxAnswer+1), "5", Unknown},
	} {
		if v := Judge(c.gold, c.pred); v.Outcome != c.want || (v.Reason == "") != (c.want == Correct) {
			t.Errorf("Judge(%q, %q) = %+v, want %s", brief(c.gold), c.pred, v, c.want)
		}
	}
}

func TestHostileAnswersCostNothing(t *testing.T) {
	box := strings.Repeat(`\boxed{`, 100_000)
	if _, _, ok := Extract(box); ok {
		t.Error("boxes that never close gave an answer")
	}
	if answer, _, ok := Extract(box + "1" + strings.Repeat("}", 100_000)); !ok || answer != "1" {
		t.Errorf("nested boxes gave %q, want 1", answer)
	}
	for _, pred := range []string{
		"10**10**10", "9" + strings.Repeat("9", 1<<20), `__import__("os").system("id")*\pi`, strings.Repeat(" ", 1<<20) + "6", strings.Repeat("$", 4000),
	} {
		if v := Judge("6", pred); v.Outcome != Wrong {
			t.Errorf("Judge(6, %q) = %+v, want wrong", brief(pred), v)
		}
	}
}
