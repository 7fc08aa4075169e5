package activities

import (
	"context"
	"fmt"

	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/verify"
)

// Verifiers give what judges with sympy, isolated as a recipe asks. *Pools is one.
type Verifiers interface {
	Verifier(ctx context.Context, s recipe.Sandbox) (*verify.Verifier, error)
}

// final is how rewards compare: an integer has to be written out, or a policy learns to box the problem.
var final = verify.Options{Final: true}

// judge compares what a model wrote with the reference answer by the rules of a recipe. No box is a wrong answer, whatever
// else the text says.
func (r *Rollouts) judge(rec Recipe, gold string) agent.Judge {
	extract := verify.Extract
	if rec.RL.StrictAnswers {
		extract = verify.ExtractStrict
	}
	return func(ctx context.Context, modelText string) (agent.Verdict, error) {
		if rec.RL.Verifier == "compat" {
			return r.compat(ctx, rec, gold, modelText)
		}
		answer, found, ok := extract(modelText)
		if !ok {
			return agent.Verdict{Outcome: agent.Wrong, Path: found, Reason: "no \\boxed answer"}, nil
		}
		v := final.Judge(gold, answer)
		if v.Outcome == verify.Unknown && rec.RL.Verifier == "symbolic" {
			verifier, err := r.verifier(ctx, rec)
			if err != nil {
				return agent.Verdict{}, err
			}
			v = verifier.Judge(ctx, gold, answer)
			if ctx.Err() != nil { // a verdict that was called off is none
				return agent.Verdict{}, ctx.Err()
			}
		}
		return agent.Verdict{Outcome: agent.Outcome(v.Outcome), Answer: answer, Path: found + "/" + v.Path, Reason: v.Reason}, nil
	}
}

// compat judges a whole response as the released verifier does.
func (r *Rollouts) compat(ctx context.Context, rec Recipe, gold, modelText string) (agent.Verdict, error) {
	v := verify.Compat(gold, modelText)
	if v.Outcome == verify.Unknown {
		verifier, err := r.verifier(ctx, rec)
		if err != nil {
			return agent.Verdict{}, err
		}
		v = verifier.CompatAll(ctx, []verify.Pair{{Gold: gold, Prediction: modelText}})[0]
		if ctx.Err() != nil {
			return agent.Verdict{}, ctx.Err()
		}
	}
	answer, _, _ := verify.Extract(modelText)
	return agent.Verdict{Outcome: agent.Outcome(v.Outcome), Answer: answer, Path: v.Path, Reason: v.Reason}, nil
}

func (r *Rollouts) verifier(ctx context.Context, rec Recipe) (*verify.Verifier, error) {
	v, ok := r.Pools.(Verifiers)
	if !ok {
		return nil, fmt.Errorf("rl.verifier is %q and %T starts no verifier", rec.RL.Verifier, r.Pools)
	}
	return v.Verifier(ctx, rec.Sandbox)
}
