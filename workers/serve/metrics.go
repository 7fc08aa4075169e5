package serve

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// metrics are a server's measurements, for Prometheus to read.
type metrics struct {
	registry  *prometheus.Registry
	prompt    metric.Int64Counter // tokens of prompts
	generated metric.Int64Counter // tokens told to clients
	requests  metric.Int64Counter
	seconds   metric.Float64Histogram // of requests
	toFirst   metric.Float64Histogram // from a request to its answer's first token
}

// latencies are the bounds of the histograms, from a token of a small model to the longest request.
var latencies = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600}

func newMetrics(g Generator, q *queue) (*metrics, error) {
	m := &metrics{registry: prometheus.NewRegistry()}
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(m.registry), otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("serve: metrics: %w", err)
	}
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter)).Meter("github.com/restar-rl/restar")
	var errs [6]error
	m.prompt, errs[0] = meter.Int64Counter("restar.prompt.tokens", metric.WithDescription("Tokens of prompts"))
	m.generated, errs[1] = meter.Int64Counter("restar.generated.tokens", metric.WithDescription("Tokens sampled for clients"))
	m.requests, errs[2] = meter.Int64Counter("restar.requests", metric.WithDescription("Requests by endpoint and status"))
	m.seconds, errs[3] = meter.Float64Histogram("restar.request.duration", metric.WithUnit("s"), metric.WithDescription("Time of a request"), metric.WithExplicitBucketBoundaries(latencies...))
	m.toFirst, errs[4] = meter.Float64Histogram("restar.time_to_first_token", metric.WithUnit("s"), metric.WithDescription("Time from a request to an answer's first token"), metric.WithExplicitBucketBoundaries(latencies...))
	errs[5] = observe(meter, g, q)
	for _, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("serve: metrics: %w", err)
		}
	}
	return m, nil
}

// observe reads the engine's and the queue's state whenever somebody asks for the metrics.
func observe(meter metric.Meter, g Generator, q *queue) error {
	gauge := func(name, text string) (metric.Int64ObservableGauge, error) {
		return meter.Int64ObservableGauge(name, metric.WithDescription(text))
	}
	answers, err := gauge("restar.answers", "Answers under way, by state")
	if err != nil {
		return err
	}
	blocks, err := gauge("restar.kv.blocks", "Blocks of the KV cache, by state")
	if err != nil {
		return err
	}
	tokens, err := meter.Int64ObservableCounter("restar.engine.tokens", metric.WithDescription("Tokens of the engine: sampled, computed for prompts, found in the KV cache"))
	if err != nil {
		return err
	}
	events, err := meter.Int64ObservableCounter("restar.engine.events", metric.WithDescription("Steps, preemptions and evictions of the engine"))
	if err != nil {
		return err
	}
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := g.Stats()
		waiting, running := q.counts()
		state := func(key, name string) metric.ObserveOption { return metric.WithAttributes(attribute.String(key, name)) }
		o.ObserveInt64(answers, int64(waiting), state("state", "waiting"))
		o.ObserveInt64(answers, int64(running), state("state", "running"))
		o.ObserveInt64(blocks, int64(s.FreeBlocks), state("state", "free"))
		o.ObserveInt64(blocks, int64(s.IdleBlocks), state("state", "idle"))
		o.ObserveInt64(blocks, int64(s.TotalBlocks-s.FreeBlocks-s.IdleBlocks), state("state", "used"))
		o.ObserveInt64(tokens, s.GeneratedTokens, state("kind", "generated"))
		o.ObserveInt64(tokens, s.PrefillTokens, state("kind", "prefilled"))
		o.ObserveInt64(tokens, s.CachedTokens, state("kind", "cached"))
		o.ObserveInt64(events, s.Steps, state("kind", "steps"))
		o.ObserveInt64(events, s.Preemptions, state("kind", "preemptions"))
		o.ObserveInt64(events, s.Evictions, state("kind", "evictions"))
		return nil
	}, answers, blocks, tokens, events)
	return err
}

// request counts a finished request.
func (m *metrics) request(endpoint string, status int, took time.Duration) {
	at := metric.WithAttributes(attribute.String("endpoint", endpoint), attribute.String("status", strconv.Itoa(status)))
	m.requests.Add(context.Background(), 1, at)
	m.seconds.Record(context.Background(), took.Seconds(), metric.WithAttributes(attribute.String("endpoint", endpoint)))
}

// first counts an answer's first token.
func (m *metrics) first(waited time.Duration) {
	m.toFirst.Record(context.Background(), waited.Seconds())
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
