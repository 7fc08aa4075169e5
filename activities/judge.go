package activities

import (
	"context"

	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/verify"
)

// judge compares a model's final answer with the reference answer. No box is a wrong answer, whatever else the text says.
func judge(gold string, strict bool) agent.Judge {
	extract := verify.Extract
	if strict {
		extract = verify.ExtractStrict
	}
	return func(_ context.Context, modelText string) (agent.Verdict, error) {
		answer, found, ok := extract(modelText)
		if !ok {
			return agent.Verdict{Outcome: agent.Wrong, Path: found, Reason: "no \\boxed answer"}, nil
		}
		v := verify.Judge(gold, answer)
		return agent.Verdict{Outcome: agent.Outcome(v.Outcome), Answer: answer, Path: found + "/" + v.Path, Reason: v.Reason}, nil
	}
}
