package rl

import "testing"

func TestTrap26PaperPenaltyVectors(t *testing.T) {
	answers := func(n, turns int) Sample {
		return Sample{AnswerOpen: n, AnswerClose: n, AnswerPairs: n, Turns: turns}
	}
	with := func(s Sample, calls, errors int) Sample { s.Calls, s.CallErrors = calls, errors; return s }
	for name, c := range map[string]struct {
		sample Sample
		want   Penalty
	}{
		"no tools, one answer":          {answers(1, 1), Penalty{0.5, 0}},
		"one error of four, one answer": {with(answers(1, 5), 4, 1), Penalty{0.25, 0}},
		"three answers over four turns": {with(answers(3, 4), 3, 0), Penalty{0, 0.5}},
		"no answer":                     {with(answers(0, 2), 1, 0), Penalty{0, 1}},
		"no answer, all calls fail":     {with(answers(0, 3), 2, 2), Penalty{1, 1}},
		"many answers are capped":       {with(answers(9, 2), 1, 0), Penalty{0, 1}},
		"unbalanced tags":               {Sample{AnswerOpen: 2, AnswerClose: 1, AnswerPairs: 1, Turns: 1, Calls: 1}, Penalty{0, 1}},
	} {
		if got := PaperPenalty(c.sample); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestTrap26LegacyPenaltyMatchesTheReleasedCode(t *testing.T) {
	block := func(tool string) string {
		return "<|im_start|>user\n<tool_response>\n" + tool + "\n</tool_response><|im_end|>\n<|im_start|>assistant\n<reason>"
	}
	for name, c := range map[string]struct {
		text string
		want Penalty
	}{
		"single turn without tool":      {"r</reason><answer>1</answer><|im_end|>", Penalty{0.5, 1}},
		"time-out passes as fine":       {"c<|im_end|>" + block("Tool call failure\nreason: worker_timeout") + "</reason><answer>1</answer><|im_end|>", Penalty{0, 0}},
		"printed error counts as error": {"c<|im_end|>" + block("stdout: abs Error = 0.01") + "<answer>1</answer><|im_end|>", Penalty{1, 0}},
		"infrastructure counts":         {"c<|im_end|>" + block("reason: internal_error") + "<answer>1</answer><|im_end|>", Penalty{1, 0}},
		"turns are one short":           {"c<|im_end|>" + block("ok") + "<answer>1</answer><answer>2</answer><|im_end|>", Penalty{0, 1}},
		"half-open answer":              {"<answer>1</answer><answer><|im_end|>", Penalty{0.5, 1}},
	} {
		if got := LegacyPenalty(Sample{LegacyText: c.text}); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
