package learnbench

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/restar-rl/restar/cmd/restar-bench/internal/product"
	"github.com/restar-rl/restar/workers/recipe"
)

//go:embed table.yaml
var tableText []byte

// table says what is compared.
type table struct {
	Algorithms map[string]algorithm `yaml:"algorithms"`
	Runs       []planned            `yaml:"runs"`
}

// algorithm is a change to the recipe.
type algorithm struct {
	Figures string        `yaml:"figures"` // begins the names of its figures
	RL      yaml.MapSlice `yaml:"rl"`
	Stages  yaml.MapSlice `yaml:"stages"`
	Eval    yaml.MapSlice `yaml:"eval"`
}

// planned is one run of the table.
type planned struct {
	Algorithm string `yaml:"algorithm"`
	Seed      uint64 `yaml:"seed"`
	Short     bool   `yaml:"short"` // also part of the short benchmark
}

// name is that of the run and of its folder.
func (p planned) name() string { return fmt.Sprintf("%s-%d", p.Algorithm, p.Seed) }

// readTable reads a table strictly.
func readTable(text []byte) (table, error) {
	var t table
	if err := yaml.UnmarshalWithOptions(text, &t, yaml.Strict(), yaml.UseOrderedMap()); err != nil {
		return t, fmt.Errorf("table of runs: %s", yaml.FormatError(err, false, true))
	}
	return t, t.check()
}

func (t table) check() error {
	var errs []error
	seen := map[string]bool{}
	for _, r := range t.Runs {
		if _, ok := t.Algorithms[r.Algorithm]; !ok || !recipe.ValidName(r.name()) || seen[r.name()] {
			errs = append(errs, fmt.Errorf("table of runs: %q with seed %d; want a listed algorithm and every pair once", r.Algorithm, r.Seed))
		}
		seen[r.name()] = true
	}
	return errors.Join(errs...)
}

// choose picks the runs asked for: all, those of the short benchmark, or some by name.
func (t table) choose(short bool, names []string) ([]planned, error) {
	var out []planned
	known := make([]string, len(t.Runs))
	for i, r := range t.Runs {
		known[i] = r.name()
		if (len(names) == 0 || slices.Contains(names, r.name())) && (!short || r.Short) {
			out = append(out, r)
		}
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return nil, fmt.Errorf("run %q is not in the table, want some of %s", n, strings.Join(known, ", "))
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no run is chosen, want some of %s", strings.Join(known, ", "))
	}
	return out, nil
}

// figures begins the names of a run's figures.
func (t table) figures(p planned) string {
	prefix := t.Algorithms[p.Algorithm].Figures
	if prefix == "" {
		prefix = p.Algorithm
	}
	return fmt.Sprintf("%s_%d_", strings.ReplaceAll(prefix, "-", "_"), p.Seed)
}

// change is a run's change to the recipe.
func (t table) change(p planned) product.Change {
	a := t.Algorithms[p.Algorithm]
	return product.Change{Algorithm: p.Algorithm, Seed: p.Seed, RL: a.RL, Stages: a.Stages, Eval: a.Eval}
}
