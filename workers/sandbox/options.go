package sandbox

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Tier names how much isolation a machine gives.
type Tier string

// The tiers. A is everything; B lacks the cgroups, so memory is limited for each process and by sampling for the tree.
// TierNone marks calls of an insecure pool; no recipe accepts it.
const (
	TierA    Tier = "A"
	TierB    Tier = "B"
	TierNone Tier = "insecure"
)

// Options configures a pool. The zero value asks for tier A, Debian's Python and nothing preloaded beyond the standard
// library.
type Options struct {
	Tier        Tier          // least isolation accepted, default A; B takes A where the machine gives it
	Zygotes     int           // of each profile; default: one for every two cores
	Warm        int           // slots of each profile forked ahead while there are cores to spare, default: one for every core and one more
	MaxRunning  int           // calls and cells running at once, default: two for every core
	MaxSessions int           // sessions open at once, default: 32 for every core
	Python      string        // default /usr/bin/python3; must lie below /usr/bin
	Preload     []string      // modules imported once by each zygote; one that is missing is an error
	Limits      Limits        // defaults of calls; zero fields from DefaultLimits
	Texts       Texts         // what a program's failure reads like; zero fields from DefaultTexts
	Recheck     time.Duration // how often the canaries run again in every zygote, default: an hour
	Log         *slog.Logger

	// Insecure runs programs without isolation: as plain subprocesses with resource limits, each logged as a warning. For
	// laptops whose owner trusts the model. Its calls carry TierNone.
	Insecure bool
	// Without leaves layers out, for benchmarks of what they cost. Start refuses such a pool, since its canaries find the
	// hole, unless Insecure is set too; then programs run in what is left of the isolation, and their calls carry TierNone.
	Without Layers
}

// Layers marks parts of the isolation that are left out.
type Layers struct{ Seccomp, Landlock, Cgroups bool }

func (l Layers) any() bool { return l.Seccomp || l.Landlock || l.Cgroups }

// plain reports whether calls are subprocesses without any isolation.
func (o Options) plain() bool { return o.Insecure && !o.Without.any() }

// Lite is a preload list of the standard modules that programs for arithmetic problems use.
func Lite() []string {
	return []string{"math", "cmath", "fractions", "decimal", "itertools", "functools", "collections", "re", "string", "heapq",
		"bisect", "statistics", "datetime", "operator", "copy", "typing", "traceback"}
}

// Scientific is Lite and the libraries of the paper's environment (rStar2-Agent §3.1: NumPy, SciPy, SymPy).
func Scientific() []string {
	return append(Lite(), "numpy", "scipy", "scipy.optimize", "scipy.integrate", "scipy.linalg", "scipy.special", "sympy")
}

const (
	recheckEvery    = time.Hour
	sessionsPerCore = 32 // an idle session holds some 20 MiB of copied pages and no CPU
)

func (o Options) resolve() (Options, error) {
	cores := runtime.GOMAXPROCS(0) // a container's share of the machine where it has one
	o.Tier = cmp.Or(o.Tier, TierA)
	o.Zygotes = cmp.Or(o.Zygotes, (cores+1)/2)
	o.Warm = cmp.Or(o.Warm, cores+1)
	o.MaxRunning = cmp.Or(o.MaxRunning, 2*cores)
	o.MaxSessions = cmp.Or(o.MaxSessions, sessionsPerCore*cores)
	o.Python = cmp.Or(o.Python, "/usr/bin/python3")
	o.Recheck = cmp.Or(o.Recheck, recheckEvery)
	o.Limits = o.Limits.withDefaults(defaultLimits)
	o.Texts = o.Texts.withDefaults(defaultTexts)
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
	case o.Zygotes < 1 || o.Warm < 1 || o.MaxRunning < 1 || o.MaxSessions < 1:
		return fmt.Errorf("sandbox: zygotes, warm, running and sessions are %d, %d, %d and %d, expected at least 1 each", o.Zygotes, o.Warm, o.MaxRunning, o.MaxSessions)
	case o.Recheck < time.Second:
		return fmt.Errorf("sandbox: recheck is %v, expected a second or more", o.Recheck)
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
