package verify

import (
	"strings"
	"testing"
)

func TestTrap22TheLastBoxOfTheLastAnswerCounts(t *testing.T) {
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
		{`<answer>$\boxed{12}$</answer>`, "12", InAnswer},
		{`<answer>\[ \boxed{x = \sqrt{\frac{a}{b}}} \]</answer>`, `x = \sqrt{\frac{a}{b}}`, InAnswer},
		{`<answer><answer>\boxed{1}</answer>\boxed{2}</answer>`, "1", InAnswer},
	} {
		answer, path, ok := Extract(c.text)
		if !ok || answer != c.answer || path != c.path {
			t.Errorf("Extract(%q) = %q by %q (%v), want %q by %q", c.text, answer, path, ok, c.answer, c.path)
		}
	}
}

func TestTrap22WithoutABoxThereIsNoAnswer(t *testing.T) {
	for _, text := range []string{"", "the answer is 42", "<answer>42</answer>", `\boxed`, `\boxed{`, `\boxed{5`, `\boxed 5`, `boxed{5}`, `\boxed}5{`, `\BOXED{5}`, `\boxеd{5}`} {
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

func TestHostileBoxesCostNothing(t *testing.T) {
	open := strings.Repeat(`\boxed{`, 100_000)
	if _, _, ok := Extract(open); ok {
		t.Error("boxes that never close gave an answer")
	}
	if answer, _, ok := Extract(open + "1" + strings.Repeat("}", 100_000)); !ok || answer != "1" {
		t.Errorf("nested boxes gave %q, want 1", answer)
	}
	if found := Find(open + "1" + strings.Repeat("}", 100_000)); len(found) > MaxProse {
		t.Errorf("%d bytes found in nested boxes", len(found))
	}
}

func TestAnAnswerIsFoundInProse(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`so \boxed{1} and \boxed{2}`, "1 , 2"}, {`first \boxed{004}. But check again: so \boxed{004}`, "004"}, {`\boxed{1}. No, wait: \boxed{2}`, "2"},
		{"Final Answer: The final answer is $14{,}916$. I hope it is correct.", "$14{,}916$"}, {"The answer is 42.", "42"}, {"so x is $3$ and thus $y = 4$", "$y = 4$"},
		{"we get 17 cats", "17"}, {`\frac{1}{2}`, `\frac{1}{2}`}, {"about 28 percent", "28 percent"}, {"I think it grows by 1,234.5 a year", "1,234.5"},
	} {
		if got := strings.Trim(Find(c.text), " ."); got != c.want {
			t.Errorf("Find(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}
