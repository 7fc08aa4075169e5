package sandboxbench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// kinds are the two sets of snippets.
func kinds() []string { return []string{"trivial", "mixed"} }

// peersSeconds is how long the peers take, about.
const peersSeconds = 200

// warmCalls are made before anything is measured: the first batch faults in libraries and fills the pool.
const warmCalls = 28

// peers measures restar, code-judge's design and the prototype in turns.
func (b *bench) peers(ctx context.Context) error {
	field, err := b.field(ctx)
	defer func() {
		for _, c := range field {
			c.stop()
		}
	}()
	if err != nil {
		return err
	}
	seen := map[string]*tally{}
	for _, c := range field {
		if _, err := c.measure(ctx, loads()[0], b.mix["mixed"], warmCalls); err != nil {
			return err
		}
	}
	step := peersSeconds / float64(b.Rounds*len(kinds())*len(loads())*len(field))
	for range b.Rounds {
		for _, kind := range kinds() {
			for _, l := range loads() {
				for _, c := range field {
					b.say.Begin(fmt.Sprintf("%s calls, %s, %s", kind, l.name, c.name))
					t, err := c.measure(ctx, l, b.mix[kind], amount(kind, c.name))
					if err != nil {
						return err
					}
					key := c.name + "_" + kind + "_" + l.name
					if seen[key] == nil {
						seen[key] = &tally{}
					}
					seen[key].add(t)
					b.say.Done(step)
				}
			}
		}
	}
	for key, t := range seen {
		b.figures.Set(key+"_cpu_ms", t.cpuMs())
		b.figures.Set(key+"_per_s", t.rate())
		b.figures.Set(key+"_p50_ms", t.quantile(.5))
		b.figures.Set(key+"_p99_ms", t.quantile(.99))
		b.figures[key+"_failed"] = float64(t.calls - t.right)
	}
	b.ratios()
	return b.overhead(ctx)
}

// amount is how many calls are made in one turn: seconds of work on two cores each.
func amount(kind, who string) int {
	n := map[string]int{"trivial": 128, "mixed": 56}[kind]
	if who == "restar" {
		n *= 3
	}
	return n
}

// field starts the contestants that this machine has.
func (b *bench) field(ctx context.Context) ([]*contestant, error) {
	ours, err := b.restar(ctx)
	if err != nil {
		return nil, err
	}
	field := []*contestant{ours}
	judge, err := b.codeJudge(ctx, runtime.NumCPU())
	if err == nil {
		field = append(field, judge)
	} else if !errors.Is(err, errAbsent) {
		return field, err
	} else {
		b.say.Say("left out: %v", err)
	}
	proto, err := b.prototype(ctx)
	if err == nil {
		field = append(field, proto)
	} else if !errors.Is(err, errAbsent) {
		return field, err
	} else {
		b.say.Say("left out: %v", err)
	}
	return field, nil
}

// ratios compares with code-judge's design: the worst of CPU and of rate over both loads.
func (b *bench) ratios() {
	for _, kind := range kinds() {
		var all []string
		for _, l := range loads() {
			ours, theirs := "restar_"+kind+"_"+l.name, "code-judge_"+kind+"_"+l.name
			cpu, rate := kind+"_"+l.name+"_cpu_ratio", kind+"_"+l.name+"_rate_ratio"
			b.figures.Ratio(cpu, theirs+"_cpu_ms", ours+"_cpu_ms")
			b.figures.Ratio(rate, ours+"_per_s", theirs+"_per_s")
			all = append(all, cpu, rate)
		}
		b.figures.Least(kind+"_vs_codejudge", all...)
	}
}
