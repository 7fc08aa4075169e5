package answers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/cmd/restar/internal/inputs"
	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/verify"
)

// chunk is how many lines are judged together: enough to fill batches of symbolic checks, few enough to see verdicts early.
const chunk = 256

// Verify judges the rows of a file or of standard input.
func Verify(ctx context.Context, in io.Reader, out, progress io.Writer, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	name, size := "standard input", int64(0)
	if o.Path != "" && o.Path != "-" {
		f, err := inputs.Await(ctx, func() (*os.File, error) { return os.Open(o.Path) })
		if err != nil {
			return openFault(o.Path, err)
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return fault.Userf("%s is a folder, want a file of JSON lines", o.Path)
		} else if err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
		in, name = f, o.Path
	}
	judge, done, err := o.judge(ctx)
	if err != nil {
		return err
	}
	defer done()
	return run(ctx, newReader(name, in), judge, newPrinter(out, progress, o.JSON, size))
}

func openFault(path string, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return fault.Userf("%s cannot be read: %w", path, err)
}

// run reads, judges and prints by chunks.
func run(ctx context.Context, r *reader, judge judge, p *printer) error {
	for {
		rows, bad := inputs.Await(ctx, func() ([]row, error) { return r.next(chunk) })
		if ctx.Err() != nil {
			return ctx.Err()
		}
		verdicts := judge(ctx, rows)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for i, v := range verdicts {
			if err := p.print(rows[i], v); err != nil {
				return err
			}
		}
		p.advance(r.read)
		if bad != nil || len(rows) < chunk {
			return p.end(bad)
		}
	}
}

// judge judges rows, each on its own.
type judge func(ctx context.Context, rows []row) []verify.Verdict

// judge returns the judge that the options ask for, and what ends it.
func (o Options) judge(ctx context.Context) (judge, func(), error) {
	options := verify.Options{Decimals: o.Decimals, Final: o.Final, Prose: !o.Boxed && !o.Strict}
	if !o.Symbolic {
		return o.native(options), func() {}, nil
	}
	pool, err := sandbox.Start(ctx, verify.SandboxOptions(sandbox.Tier(o.Isolation)))
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		return nil, nil, fault.Userf("--symbolic needs a sandbox with sympy, and none starts here: %w; `restar sandbox doctor` shows every layer, --isolation B asks for less", err)
	}
	v := verify.NewVerifier(pool, options)
	end := func() { v.Close(); pool.Close() }
	ask := v.JudgeAll
	if o.Compat {
		ask = v.CompatAll
	}
	return func(ctx context.Context, rows []row) []verify.Verdict {
		verdicts, pairs, at := o.extracted(rows)
		for i, verdict := range ask(ctx, pairs) {
			verdicts[at[i]] = verdict
		}
		return verdicts
	}, end, nil
}

func (o Options) native(options verify.Options) judge {
	return func(_ context.Context, rows []row) []verify.Verdict {
		verdicts, pairs, at := o.extracted(rows)
		for i, p := range pairs {
			if o.Compat {
				verdicts[at[i]] = verify.Compat(p.Gold, p.Prediction)
			} else {
				verdicts[at[i]] = options.Judge(p.Gold, p.Prediction)
			}
		}
		return verdicts
	}
}

// extracted returns the pairs to judge with the places of their rows. A response without a box is wrong already.
func (o Options) extracted(rows []row) (verdicts []verify.Verdict, pairs []verify.Pair, at []int) {
	verdicts = make([]verify.Verdict, len(rows))
	for i, r := range rows {
		answer := r.Prediction
		if o.Boxed || o.Strict {
			extract := verify.Extract
			if o.Strict {
				extract = verify.ExtractStrict
			}
			var ok bool
			if answer, _, ok = extract(r.Prediction); !ok {
				verdicts[i] = verify.Verdict{Outcome: verify.Wrong, Path: verify.Nowhere, Reason: `no \boxed answer`}
				continue
			}
		}
		pairs, at = append(pairs, verify.Pair{Gold: r.Gold, Prediction: answer}), append(at, i)
	}
	return verdicts, pairs, at
}

func (r row) name() string {
	if r.ID != "" {
		return r.ID
	}
	return fmt.Sprintf("line %d", r.line)
}
