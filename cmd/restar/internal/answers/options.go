// Package answers judges files of answers for the command line.
//
// Verdicts come out in the order of the lines that they judge, as soon as they are there. A line that cannot be used ends the
// command with its number before anything of it is judged; verdicts of the lines before it have been printed.
package answers

import (
	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/spf13/pflag"
)

// Options are the flags of restar verify.
type Options struct {
	Path      string // of the input, "" or "-" for standard input
	JSON      bool
	Boxed     bool
	Strict    bool
	Final     bool
	Symbolic  bool
	Compat    bool
	Decimals  int
	Isolation string
}

// maxDecimals is what a float64 resolves.
const maxDecimals = 15

// Register adds the flags.
func (o *Options) Register(f *pflag.FlagSet) {
	f.BoolVar(&o.JSON, "json", false, "print one JSON object a line")
	f.BoolVar(&o.Boxed, "boxed", false, "predictions are responses: only the last \\boxed counts, in the last <answer> or anywhere, as in training")
	f.BoolVar(&o.Strict, "strict", false, "predictions are responses: only the last \\boxed in the last <answer> counts")
	f.BoolVar(&o.Final, "final", false, "where the reference is an integer it has to be written out: 2*3 is no answer 6")
	f.BoolVar(&o.Symbolic, "symbolic", false, "ask sympy in a sandbox about what is left open")
	f.BoolVar(&o.Compat, "compat", false, "judge responses as rStar2-Agent's released verifier does, tolerances included")
	f.IntVar(&o.Decimals, "decimals", 6, "places to which a decimal fraction is compared with an exact value")
	f.StringVar(&o.Isolation, "isolation", string(sandbox.TierA), "of the sandbox: A (memory cgroup) or B (per-process limits)")
}

func (o Options) check() error {
	switch {
	case o.Boxed && o.Strict:
		return fault.Userf("--boxed and --strict exclude each other: --boxed takes a box anywhere, --strict only one in <answer>")
	case o.Compat && (o.Boxed || o.Strict || o.Final):
		return fault.Userf("--compat has its own extraction: leave out --boxed, --strict and --final")
	case o.Decimals < 1 || o.Decimals > maxDecimals:
		return fault.Userf("--decimals is %d, want 1 to %d", o.Decimals, maxDecimals)
	case o.Isolation != string(sandbox.TierA) && o.Isolation != string(sandbox.TierB):
		return fault.Userf("--isolation is %q, want A or B", o.Isolation)
	}
	return nil
}
