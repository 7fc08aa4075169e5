package sandboxnode

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/restar-rl/restar/workers/sandbox"
)

// poolCollector tells Prometheus a pool's state: one look at it for every scrape.
type poolCollector struct {
	pool *sandbox.Pool
	list []poolMetric
}

type poolMetric struct {
	about *prometheus.Desc
	kind  prometheus.ValueType
	read  func(sandbox.PoolStatus) float64
}

func newPoolCollector(p *sandbox.Pool) *poolCollector {
	c := &poolCollector{pool: p}
	add := func(kind prometheus.ValueType, name, help string, read func(sandbox.PoolStatus) float64) {
		c.list = append(c.list, poolMetric{prometheus.NewDesc("restar_sandbox_pool_"+name, help, nil, nil), kind, read})
	}
	gauge, counter := prometheus.GaugeValue, prometheus.CounterValue
	add(gauge, "zygotes", "Warm interpreters alive.", func(s sandbox.PoolStatus) float64 { return float64(s.Zygotes) })
	add(gauge, "slots_ready", "Forked processes that wait for a call.", func(s sandbox.PoolStatus) float64 { return float64(s.Ready) })
	add(gauge, "sessions", "Sessions open.", func(s sandbox.PoolStatus) float64 { return float64(s.Sessions) })
	add(gauge, "preflight_ok", "1 while the newest run of the canaries found every layer.", func(s sandbox.PoolStatus) float64 {
		if s.Preflight.Err != nil {
			return 0
		}
		return 1
	})
	add(counter, "zygote_restarts_total", "Interpreters started again.", func(s sandbox.PoolStatus) float64 { return float64(s.Restarts) })
	add(counter, "lost_total", "Calls that the sandbox failed.", func(s sandbox.PoolStatus) float64 { return float64(s.Lost) })
	add(counter, "spawns_total", "Slots forked.", func(s sandbox.PoolStatus) float64 { return float64(s.Totals.Spawns) })
	add(counter, "spawn_seconds_total", "Wall time of forking them.", func(s sandbox.PoolStatus) float64 { return s.Totals.SpawnAll.Seconds() })
	add(counter, "call_cpu_seconds_total", "CPU time of programs.", func(s sandbox.PoolStatus) float64 { return s.Totals.CallCPU.Seconds() })
	add(counter, "init_cpu_seconds_total", "CPU time of building and reaping their namespaces.", func(s sandbox.PoolStatus) float64 { return s.Totals.InitCPU.Seconds() })
	add(counter, "page_faults_total", "Minor page faults of calls.", func(s sandbox.PoolStatus) float64 { return float64(s.Totals.Faults) })
	return c
}

// Describe implements prometheus.Collector.
func (c *poolCollector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range c.list {
		out <- m.about
	}
}

// Collect implements prometheus.Collector.
func (c *poolCollector) Collect(out chan<- prometheus.Metric) {
	s := c.pool.Status()
	for _, m := range c.list {
		out <- prometheus.MustNewConstMetric(m.about, m.kind, m.read(s))
	}
}
