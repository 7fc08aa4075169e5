package activities

import (
	"context"
	"errors"
	"testing"

	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/sandbox"
)

func verdictOf(t *testing.T, r *Rollouts, verifier, gold, text string) agent.Verdict {
	t.Helper()
	rec := Recipe{}
	rec.RL.Verifier, rec.Sandbox.Isolation = verifier, "B"
	v, err := r.judge(rec, gold)(context.Background(), text)
	if errors.Is(err, sandbox.ErrInfrastructure) {
		t.Skipf("no sandbox with sympy starts here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestRewardsDemandThatAnIntegerIsWrittenOut(t *testing.T) {
	r := &Rollouts{}
	for text, want := range map[string]agent.Outcome{
		`<answer>\boxed{6}</answer>`: agent.Correct, `\boxed{x = 6}`: agent.Correct, `\boxed{2*3}`: agent.Wrong, `\boxed{7}`: agent.Wrong, `6`: agent.Wrong,
		`\boxed{6} or \boxed{7}`: agent.Wrong, `\boxed{6 or 7}`: agent.Wrong,
	} {
		for _, verifier := range []string{"", "native", "symbolic"} {
			if v := verdictOf(t, r, verifier, "6", text); v.Outcome != want {
				t.Errorf("%s judges %q for 6 as %+v, want %s", verifier, text, v, want)
			}
		}
	}
}

func TestARecipeChoosesItsVerifier(t *testing.T) {
	pools := &Pools{}
	defer pools.Close()
	r := &Rollouts{Pools: pools}
	const gold, text = `\sin 2x`, `<answer>\boxed{2\sin x\cos x}</answer>`
	if v := verdictOf(t, r, "native", gold, text); v.Outcome != agent.Unknown || v.Reason == "" {
		t.Errorf("native is %+v, want unknown with its reason", v)
	}
	if v := verdictOf(t, r, "symbolic", gold, text); v.Outcome != agent.Correct || v.Path != "answer/symbolic" {
		t.Errorf("symbolic is %+v, want correct by sympy", v)
	}
	for _, text := range []string{"The answer is 100001.", `\boxed{100001}`} {
		if v := verdictOf(t, r, "compat", "100000", text); v.Outcome != agent.Correct {
			t.Errorf("compat judges %q for 100000 as %+v, want correct as released", text, v)
		}
	}
	if v := verdictOf(t, r, "native", "100000", `\boxed{100001}`); v.Outcome != agent.Wrong {
		t.Errorf("native takes 100001 for 100000: %+v", v)
	}
}

func TestAVerdictThatWasCalledOffIsNone(t *testing.T) {
	pools := &Pools{}
	defer pools.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	rec := Recipe{}
	rec.RL.Verifier, rec.Sandbox.Isolation = "symbolic", "B"
	if v, err := (&Rollouts{Pools: pools}).judge(rec, `\sin 2x`)(ctx, `\boxed{2\sin x\cos x}`); err == nil {
		t.Errorf("a cancelled judgement gave %+v", v)
	}
}
