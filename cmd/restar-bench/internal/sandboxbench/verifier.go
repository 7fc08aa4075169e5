package sandboxbench

import (
	"context"
	"time"

	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/verify"
)

// verifier counts integer verdicts a second of one core, and the CPU time of checks that need sympy.
func (b *bench) verifier(ctx context.Context) error {
	const least = 2 * time.Second
	b.figures.Set("verify_int_per_s", verify.MeasureIntegers(least))
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	pool, err := sandbox.Start(ctx, verify.SandboxOptions(b.Tier))
	if err != nil {
		return err
	}
	defer pool.Close()
	median, checks, err := verify.MeasureSymbolic(ctx, pool)
	b.figures.Set("verify_symbolic_cpu_ms", median.Seconds()*1e3)
	b.figures.Set("verify_symbolic_checks", float64(checks))
	return err
}
