package service

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// meters are what /metrics tells.
type meters struct {
	registry *prometheus.Registry
	calls    *prometheus.CounterVec
	refused  *prometheus.CounterVec
	failed   prometheus.Counter
	queue    *prometheus.HistogramVec
	run      *prometheus.HistogramVec
	cpu      *prometheus.HistogramVec
	cut      *prometheus.CounterVec
}

// buckets are seconds from a millisecond to the longest class.
func buckets() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}
}

func newMeters(r *prometheus.Registry) *meters {
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "restar_sandbox_" + name, Help: help, Buckets: buckets()}, []string{"class"})
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "restar_sandbox_" + name, Help: help}, labels)
	}
	m := &meters{
		registry: r,
		calls:    counter("calls_total", "Calls that ended, by outcome and class.", "status", "class"),
		refused:  counter("refused_total", "Requests refused for want of room or because of draining, by HTTP code.", "code"),
		failed:   prometheus.NewCounter(prometheus.CounterOpts{Name: "restar_sandbox_infrastructure_failures_total", Help: "Runs that the sandbox itself failed; each is tried again."}),
		queue:    histogram("queue_seconds", "Time from acceptance to a run token."),
		run:      histogram("run_seconds", "Wall time of a call on its run token, without waiting."),
		cpu:      histogram("cpu_seconds", "CPU time of a call's whole process tree."),
		cut:      counter("truncated_total", "Outputs cut at their limit, by stream.", "stream"),
	}
	m.registry.MustRegister(m.calls, m.refused, m.failed, m.queue, m.run, m.cpu, m.cut,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// watch adds gauges of a desk.
func (m *meters) watch(d *desk) {
	gauge := func(name, help string, read func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "restar_sandbox_" + name, Help: help}, read))
	}
	locked := func(read func() int) func() float64 {
		return func() float64 {
			d.mu.Lock()
			defer d.mu.Unlock()
			return float64(read())
		}
	}
	gauge("running", "Calls running now.", locked(func() int { return d.running }))
	gauge("queued", "Calls waiting for a run token.", locked(d.queued))
	gauge("kept_results", "Results kept under an idempotency key.", locked(func() int { return d.ledger.order.Len() }))
	gauge("held_bytes", "Bytes charged for bodies, calls and results.", func() float64 { return float64(d.budget.held.Load()) })
	gauge("ready", "1 while the service takes calls.", func() float64 {
		if d.isDraining() || d.opt.Healthy() != nil {
			return 0
		}
		return 1
	})
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "restar_sandbox_isolation", Help: "1, with the isolation tier as a label.",
		ConstLabels: prometheus.Labels{"tier": string(d.opt.Tier)}}, func() float64 { return 1 }))
}

// ended counts a ticket's end.
func (m *meters) ended(t *ticket) {
	o, c := t.outcome, t.class.String()
	m.calls.WithLabelValues(o.status, c).Inc()
	m.queue.WithLabelValues(c).Observe(o.queue.Seconds())
	if o.attempts == 0 {
		return
	}
	m.run.WithLabelValues(c).Observe(o.run.Seconds())
	m.cpu.WithLabelValues(c).Observe(o.result.CPU.Seconds())
	if o.result.StdoutTruncated {
		m.cut.WithLabelValues("stdout").Inc()
	}
	if o.result.StderrTruncated {
		m.cut.WithLabelValues("stderr").Inc()
	}
}
