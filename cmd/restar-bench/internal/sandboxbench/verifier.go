package sandboxbench

import (
	"context"
	"fmt"
	"time"

	"github.com/restar-rl/restar/workers/verify"
)

// verifier counts integer verdicts a second of one core.
func (b *bench) verifier(ctx context.Context) error {
	const shortest = 2 * time.Second
	golds := []string{"42", "-7", "123456789012345678901234567890"}
	answers := []string{`<answer>\boxed{42}</answer>`, `so the answer is \boxed{-7}.`, `<answer>\boxed{41}</answer>`, `\boxed{123,456}`}
	n := 0
	began := time.Now()
	for time.Since(began) < shortest {
		for range 1000 {
			gold, text := golds[n%len(golds)], answers[n%len(answers)]
			if v := verify.Judge(gold, text); v == (verify.Verdict{}) {
				return fmt.Errorf("no verdict on %q for %q", text, gold)
			}
			n++
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	b.figures.Set("verify_int_per_s", float64(n)/time.Since(began).Seconds())
	return nil
}
