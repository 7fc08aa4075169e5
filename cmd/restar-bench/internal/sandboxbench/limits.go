package sandboxbench

import (
	"context"
	"fmt"
	"os"
	"slices"
)

const (
	// tailRounds are played to find one that nothing else on the machine disturbed: a core taken away for one time slice is the
	// slowest call of a hundred.
	tailRounds = 10
	// tailCalls of a round leave ten calls beyond the 99th percentile, so that no two of them decide it.
	tailCalls = 1000
)

// tail compares the slowest of a hundred trivial calls with the middle one, two callers at once.
func (b *bench) tail(ctx context.Context) error {
	c, err := b.restar(ctx)
	if err != nil {
		return err
	}
	defer c.stop()
	two := load{"run2", 2, 1}
	if _, err := c.measure(ctx, two, b.mix["trivial"], warmCalls); err != nil {
		return err
	}
	var ratios []float64
	var sum tally
	for range tailRounds {
		t, err := c.measure(ctx, two, b.mix["trivial"], tailCalls)
		if err != nil {
			return err
		}
		sum.add(t)
		p50, p99 := t.quantile(.5), t.quantile(.99)
		ratios = append(ratios, p99/p50)
		if p99/p50 == slices.Min(ratios) {
			b.figures.Set("trivial_run2_p50_ms", p50)
			b.figures.Set("trivial_run2_p99_ms", p99)
		}
	}
	slices.Sort(ratios)
	b.figures.Set("p99_over_p50", ratios[0])
	b.figures.Set("p99_over_p50_median_round", ratios[len(ratios)/2])
	b.figures.Set("trivial_run2_cpu_ms", sum.cpuMs())
	b.figures.Set("trivial_run2_per_s", sum.rate())
	faults, err := faultsPerCall(ctx, c)
	b.figures.Set("page_faults_per_call", faults)
	return err
}

// faultsPerCall asks the service for the page faults of a trivial call, namespaces and interpreter included.
func faultsPerCall(ctx context.Context, c *contestant) (float64, error) {
	const calls = 10
	sum := 0.0
	for range calls {
		var r struct {
			Faults float64 `json:"page_faults"`
		}
		if err := postJSON(ctx, c.url+"/v1/execute", map[string]string{"code": "print(1+1)"}, &r); err != nil {
			return 0, err
		}
		sum += r.Faults
	}
	return sum / calls, nil
}

// isolation compares the cost of a trivial call with and without the layers that can be left out of a running service.
func (b *bench) isolation(ctx context.Context) error {
	var pair []*contestant
	defer func() {
		for _, c := range pair {
			c.stop()
		}
	}()
	for _, name := range []string{"on", "off"} {
		c, err := b.node(ctx, "isolation-"+name, "--pool="+string(b.Tier), fmt.Sprintf("--without=%v", name == "off"))
		if err != nil {
			return err
		}
		pair = append(pair, c)
	}
	l := loads()[0]
	var sums [2]tally
	for round := range 4 {
		for i, c := range pair {
			t, err := c.measure(ctx, l, b.mix["trivial"], 200)
			if err != nil {
				return err
			}
			if round > 0 { // the first one warms
				sums[i].add(t)
			}
		}
	}
	b.figures.Set("isolation_on_cpu_ms", sums[0].cpuMs())
	b.figures.Set("isolation_off_cpu_ms", sums[1].cpuMs())
	b.figures.Ratio("isolation_on_over_off", "isolation_on_cpu_ms", "isolation_off_cpu_ms")
	return nil
}

// node starts this program as a service with an executor or a pool of its choice.
func (b *bench) node(ctx context.Context, name string, args ...string) (*contestant, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	listen := fmt.Sprintf("127.0.0.1:%d", port)
	return launch(ctx, name, "http://"+listen, "/readyz", append([]string{self, "sandbox-node", "--listen=" + listen}, args...)...)
}
