package sandbox

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Tier names how much isolation a machine gives.
type Tier string

// The tiers. A is everything; B lacks the cgroups, so memory is limited for each process and by sampling for the tree.
const (
	TierA Tier = "A"
	TierB Tier = "B"
)

// Options configures a pool. The zero value asks for tier A, Debian's Python and nothing preloaded beyond the standard
// library.
type Options struct {
	Tier       Tier     // least isolation accepted, default A; B takes A where the machine gives it
	Zygotes    int      // default: one for every two cores
	Warm       int      // slots kept forked ahead, default: one for every core and one more
	MaxRunning int      // calls running at once, default: two for every core
	Python     string   // default /usr/bin/python3; must lie below /usr/bin
	Preload    []string // modules imported once by each zygote; one that is missing is an error
	Limits     Limits   // defaults of calls; zero fields from DefaultLimits
	Log        *slog.Logger

	without layers // for tests: what to leave out, to see the preflight refuse
}

// layers marks layers that are left out.
type layers struct{ seccomp, landlock, cgroup bool }

// Lite is a preload list of the standard modules that programs for arithmetic problems use.
func Lite() []string {
	return []string{"math", "cmath", "fractions", "decimal", "itertools", "functools", "collections", "re", "string", "heapq",
		"bisect", "statistics", "datetime", "operator", "copy", "typing", "traceback"}
}

// Scientific is Lite and the libraries of the paper's environment (rStar2-Agent §3.1: NumPy, SciPy, SymPy).
func Scientific() []string {
	return append(Lite(), "numpy", "scipy", "scipy.optimize", "scipy.integrate", "scipy.linalg", "scipy.special", "sympy")
}

func (o Options) resolve() (Options, error) {
	cores := runtime.NumCPU()
	o.Tier = cmp.Or(o.Tier, TierA)
	o.Zygotes = cmp.Or(o.Zygotes, (cores+1)/2)
	o.Warm = cmp.Or(o.Warm, cores+1)
	o.MaxRunning = cmp.Or(o.MaxRunning, 2*cores)
	o.Python = cmp.Or(o.Python, "/usr/bin/python3")
	o.Limits = o.Limits.withDefaults(defaultLimits)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if err := o.validate(); err != nil {
		return o, err
	}
	return o, o.Limits.validate()
}

func (o Options) validate() error {
	switch {
	case o.Tier != TierA && o.Tier != TierB:
		return fmt.Errorf("sandbox: tier is %q, expected A or B", o.Tier)
	case o.Zygotes < 1 || o.Warm < 1 || o.MaxRunning < 1:
		return fmt.Errorf("sandbox: zygotes, warm and running are %d, %d and %d, expected at least 1 each", o.Zygotes, o.Warm, o.MaxRunning)
	}
	return validatePython(o.Python)
}

// validatePython wants the interpreter where the sandbox's root has one.
func validatePython(path string) error {
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("sandbox: no Python at %s: install the Debian package python3 (%w)", path, err)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil || !strings.HasPrefix(real, "/usr/bin/") || !strings.HasPrefix(path, "/usr/bin/") {
		return fmt.Errorf("sandbox: Python is %s (%s), expected one below /usr/bin: only the system's libraries exist inside", path, real)
	}
	return nil
}

// debianPackage names the package that holds a Python module.
func debianPackage(module string) string {
	name, _, _ := strings.Cut(module, ".")
	return "python3-" + strings.ReplaceAll(strings.ToLower(name), "_", "-")
}
