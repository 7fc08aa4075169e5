// Package learnbench measures what restar learns: it trains the same model on the same task by several algorithms from several
// seeds, each run by the product's own command with real tool calls, and compares what held-out problems say before and after.
//
// Runs lie below a folder that names the commit of the learning code. One that is finished is never made again, one that was
// interrupted goes on. Nothing here computes on trajectories: runs leave figures, and this package reads them.
package learnbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/restar-rl/restar/cmd/restar-bench/internal/match"
	"github.com/restar-rl/restar/cmd/restar-bench/internal/product"
)

// Options say what to train and where things are.
type Options struct {
	Figures string // file that the figures are written to; charts go to the folder of the same name beside it
	Recipe  string // that all runs derive from
	Restar  string // the restar binary, which trains
	Dir     string // runs lie in a folder of it that is named after the learning code's commit
	Key     string // of runs to go on with or to report, in place of the checkout's own
	Short   bool   // only the runs of the short benchmark
	Only    []string
	JSON    bool
	Require bool
}

// bench is one table in the making.
type bench struct {
	Options
	table table
	key   string
	say   io.Writer
}

// Run makes the runs that are missing, writes the figures and charts after each, and prints a table.
func Run(ctx context.Context, o Options, out, progress io.Writer) error {
	b := &bench{Options: o, say: progress, key: o.Key}
	var err error
	if b.table, err = readTable(tableText); err != nil {
		return err
	}
	chosen, err := b.table.choose(o.Short, o.Only)
	if err != nil {
		return fmt.Errorf("%w: %w", match.ErrInput, err)
	}
	if b.key == "" {
		if b.key, err = learningKey(ctx, ".", o.Recipe); err != nil {
			return err
		}
	}
	results, err := b.all(ctx, chosen)
	if err != nil {
		return err
	}
	f := b.figures(results, len(chosen))
	if o.JSON {
		if err := json.NewEncoder(out).Encode(f); err != nil {
			return err
		}
	} else if err := b.report(out, results, f); err != nil {
		return err
	}
	if missed := missed(f); o.Require && len(missed) > 0 {
		return errors.New(strings.Join(missed, "; "))
	}
	return nil
}

// all makes every run, one after the other, and writes what there is after each.
func (b *bench) all(ctx context.Context, chosen []planned) ([]result, error) {
	from, err := product.ReadBase(b.Recipe)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", match.ErrInput, err)
	}
	var results []result
	var made, minutes float64
	for i, p := range chosen {
		recipe, err := from.Derive(b.table.change(p))
		if err != nil {
			return nil, err
		}
		left := ""
		if made > 0 {
			left = fmt.Sprintf(", about %.0f min left for all", max(1, minutes/made*float64(len(chosen)-i)))
		}
		began := time.Now()
		r, found, err := b.one(ctx, p, recipe, fmt.Sprintf("run %d of %d: %s%s", i+1, len(chosen), p.name(), left))
		if err != nil {
			return nil, err
		}
		if !found {
			made, minutes = made+1, minutes+time.Since(began).Minutes()
		}
		results = append(results, r)
		if err := b.write(results, len(chosen)); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// one returns a run's result; found says that it was there.
func (b *bench) one(ctx context.Context, p planned, recipe []byte, says string) (r result, found bool, err error) {
	dir := filepath.Join(b.Dir, b.key, p.name())
	if err := product.Prepare(dir, recipe); err != nil {
		return r, false, err
	}
	r, err = readResult(dir, p)
	if !errors.Is(err, errNotFinished) {
		fmt.Fprintf(b.say, "%s  %s: finished before, in %s\n", time.Now().Format(time.TimeOnly), says, dir)
		return r, true, err
	}
	fmt.Fprintf(b.say, "%s  %s, in %s\n", time.Now().Format(time.TimeOnly), says, dir)
	if err := product.Run(ctx, b.Restar, p.name(), dir, b.say); err != nil {
		return r, false, err
	}
	r, err = readResult(dir, p)
	return r, false, err
}

// write makes what is known so far durable.
func (b *bench) write(results []result, of int) error {
	if err := writeFigures(b.Figures, b.figures(results, of)); err != nil {
		return err
	}
	dir := strings.TrimSuffix(b.Figures, filepath.Ext(b.Figures))
	if err := writeCurves(filepath.Join(dir, "curves.json"), results); err != nil {
		return err
	}
	return b.charts(dir, results)
}
