package agent

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/restar-rl/restar/workers/tokenizer"
)

// judge gives a finished trajectory its answer counts, verdict and reward: 1 for a correct answer, 0 otherwise (rStar2-Agent
// Eq 3). A trajectory that did not come to an answer of its own is wrong without being judged.
func (a *Agent) judge(ctx context.Context, task Task, t *Trajectory) error {
	texts := a.turnTexts(t)
	t.Answers = countAnswers(texts)
	if t.Stop != Answered {
		t.Verdict = Verdict{Outcome: Wrong, Reason: "unfinished: " + string(t.Stop)}
		return nil
	}
	doing := "judging trajectory " + t.Key
	begin := time.Now()
	verdict, err := task.Judge(ctx, strings.Join(texts, "\n"))
	t.Timings.Verify += time.Since(begin)
	if err != nil {
		return infraUnlessCancelled(ctx, doing, 1, err)
	}
	switch verdict.Outcome {
	case Correct:
		t.Reward = 1
	case Wrong, Unknown:
	default:
		return &InfraError{doing, 1, fmt.Errorf("the judge returned outcome %q", verdict.Outcome)}
	}
	verdict.Answer, verdict.Path, verdict.Reason = valid(verdict.Answer), valid(verdict.Path), valid(verdict.Reason)
	t.Verdict = verdict
	return nil
}

// valid makes text survive a JSON record unchanged.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// turnTexts decodes what the model wrote, turn by turn, without the stop tokens. Prompt and tool text are not in it.
func (a *Agent) turnTexts(t *Trajectory) []string {
	texts := make([]string, len(t.Turns))
	for i, turn := range t.Turns {
		ids := t.IDs[turn.Start:turn.End]
		if n := len(ids); n > 0 && slices.Contains(a.stop, ids[n-1]) {
			ids = ids[:n-1]
		}
		texts[i] = a.tokenizer.Decode(ids)
	}
	return texts
}

var answerBlock = regexp.MustCompile(`(?s)<answer>.*?</answer>`)

func countAnswers(texts []string) Answers {
	var a Answers
	for _, text := range texts {
		a.Open += strings.Count(text, tokenizer.AnswerOpen)
		a.Close += strings.Count(text, tokenizer.AnswerClose)
		a.Pairs += len(answerBlock.FindAllString(text, -1))
	}
	return a
}
