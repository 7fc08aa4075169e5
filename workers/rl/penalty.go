package rl

import (
	"regexp"
	"strings"
)

// Penalty measures how untidy a rollout was. Both parts lie in [0, 1]; a lower total makes a positive rollout likelier to be
// kept. Penalties choose among rollouts and never enter the reward.
type Penalty struct {
	Error  float64 // p_err: share of failed tool calls
	Format float64 // p_format: missing or repeated answers
}

// Total is p_total = p_err + p_format, in [0, 2].
func (p Penalty) Total() float64 { return p.Error + p.Format }

// noCallPenalty is p_err of a rollout without tool calls (Eq 4): it neither beats a clean tool user (0) nor loses to one
// whose every call failed (1).
const noCallPenalty = 0.5

// PaperPenalty is rStar2-Agent Eq 4 and 5:
//
//	p_err    = 0.5 without tool calls, else failed calls / calls
//	p_format = 1 without an answer block, else min(1, (answer blocks - 1) / turns)
//
// Tags that do not pair up count as no answer block, as in the released code; turns are all assistant turns.
func PaperPenalty(s Sample) Penalty {
	return Penalty{Error: callPenalty(s.CallErrors, s.Calls), Format: formatPenalty(s)}
}

func callPenalty(failed, calls int) float64 {
	if calls == 0 {
		return noCallPenalty
	}
	return float64(failed) / float64(calls)
}

func formatPenalty(s Sample) float64 {
	if s.AnswerPairs == 0 || s.AnswerOpen != s.AnswerPairs || s.AnswerClose != s.AnswerPairs {
		return 1
	}
	return repeatPenalty(s.AnswerPairs, s.Turns)
}

func repeatPenalty(pairs, turns int) float64 {
	if turns == 0 {
		return 1
	}
	return min(1, float64(pairs-1)/float64(turns))
}

var (
	legacyResponse = regexp.MustCompile(`(?s)<tool_response>.*?</tool_response>`)
	legacyAnswer   = regexp.MustCompile(`(?s)<answer>.*?</answer>`)
	legacyTurn     = regexp.MustCompile(`(?s)<\|im_start\|>assistant.*?<\|im_end\|>`)
)

// LegacyPenalty is the released code's rule, kept for parity (microsoft/rStar, down_sample/roc.py). It reads LegacyText: a
// tool response is an error if it contains "error" in any case, so a time-out passes and a printed "abs error" does not;
// turns are the assistant headers of the response text, whose first one is part of the prompt, so a single-turn answer has
// none and gets format penalty 1.
func LegacyPenalty(s Sample) Penalty {
	responses := legacyResponse.FindAllString(s.LegacyText, -1)
	failed := 0
	for _, r := range responses {
		if strings.Contains(strings.ToLower(r), "error") {
			failed++
		}
	}
	return Penalty{Error: callPenalty(failed, len(responses)), Format: legacyFormat(s.LegacyText)}
}

func legacyFormat(text string) float64 {
	pairs := len(legacyAnswer.FindAllString(text, -1))
	open, closed := strings.Count(text, "<answer>"), strings.Count(text, "</answer>")
	if pairs == 0 || open != pairs || closed != pairs {
		return 1
	}
	return repeatPenalty(pairs, len(legacyTurn.FindAllString(text, -1)))
}
