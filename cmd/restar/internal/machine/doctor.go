package machine

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/cmd/restar/internal/numerics"
	"github.com/restar-rl/restar/workers/local"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/sandbox"
)

// pythonTimeout bounds the import of the scientific modules, seconds on a cold disk.
const pythonTimeout = time.Minute

// check is one thing that was looked at.
type check struct {
	name, found string
	fix         string // "" when it is as it should be
	optional    bool   // some recipes work without it
}

// Doctor looks at everything that a run needs and prints what it finds. What must be mended makes it fail.
func Doctor(ctx context.Context, out io.Writer, dir string) error {
	checks := []check{
		computes(), devserver(), disk(dir), ports(dir), python(ctx),
	}
	checks = append(checks, layers(sandbox.Probe(ctx))...)
	bad := write(out, checks)
	if bad > 0 {
		return fault.Userf("%d of %d checks need attention, see BAD above", bad, len(checks))
	}
	return nil
}

// write prints the checks as a table and returns how many must be mended.
func write(out io.Writer, checks []check) (bad int) {
	width := 0
	for _, c := range checks {
		width = max(width, len(c.name))
	}
	for _, c := range checks {
		mark := "ok  "
		if c.fix != "" && c.optional {
			mark = "note"
		} else if c.fix != "" {
			mark = "BAD "
			bad++
		}
		fmt.Fprintf(out, "%s  %-*s  %s\n", mark, width, c.name, c.found)
		if c.fix != "" {
			fmt.Fprintf(out, "%6s%-*s  → %s\n", "", width, "", c.fix)
		}
	}
	return bad
}

func computes() check {
	var ids []string
	for _, p := range []model.Precision{model.PrecisionFP32, model.PrecisionBF16} {
		id, err := numerics.ID(p)
		if err != nil {
			return check{name: "numerics", found: "none", fix: err.Error()}
		}
		ids = append(ids, id)
	}
	return check{name: "numerics", found: fmt.Sprintf("%s on %d cores", strings.Join(ids, ", "), runtime.GOMAXPROCS(0))}
}

func devserver() check {
	path, err := local.FindDevserver()
	if err != nil {
		return check{name: "embedded stack", found: "not found", fix: err.Error()}
	}
	return check{name: "embedded stack", found: path}
}

func disk(dir string) check {
	if err := space(dir, freeBytes); err != nil {
		return check{name: "disk", found: dir, fix: err.Error()}
	}
	at, err := existing(dir)
	if err != nil {
		return check{name: "disk", found: dir, fix: err.Error()}
	}
	n, _ := freeBytes(at)
	return check{name: "disk", found: fmt.Sprintf("%d MiB free for %s", n>>20, dir)}
}

// python looks for the interpreter of tool calls and the modules that recipes may preload.
func python(ctx context.Context) check {
	ctx, cancel := context.WithTimeout(ctx, pythonTimeout)
	defer cancel()
	const program = "import sys, numpy, scipy, sympy; print('Python', sys.version.split()[0], 'numpy', numpy.__version__, 'scipy', scipy.__version__, 'sympy', sympy.__version__)"
	text, err := exec.CommandContext(ctx, "/usr/bin/python3", "-I", "-c", program).CombinedOutput() // -I: no module of the current folder takes the place of an installed one
	found := strings.TrimSpace(string(text))
	if err != nil {
		if i := strings.LastIndexByte(found, '\n'); i >= 0 {
			found = found[i+1:]
		}
		return check{name: "python", found: found, fix: "apt-get install python3 python3-numpy python3-scipy python3-sympy", optional: true}
	}
	return check{name: "python", found: found}
}

// layers tells what isolation calls get.
func layers(r sandbox.Report) []check {
	tier := check{name: "sandbox", found: "tier " + string(r.Tier)}
	switch {
	case r.Err != nil:
		tier.found, tier.fix = "no isolation", r.Err.Error()
	case r.Tier == "":
		tier.found, tier.fix = "no isolation", "see the layers below"
	case r.Tier == sandbox.TierB:
		tier.found, tier.fix, tier.optional = "tier B (memory limited by process)", r.Reason, true
	}
	out := []check{tier}
	for _, l := range r.Layers {
		out = append(out, check{name: "sandbox: " + l.Name, found: map[bool]string{true: "holds", false: "does not hold"}[l.OK], fix: l.Fix})
	}
	return out
}
