// Package telemetry is what people read: metrics and traces while a run works, tables and a report when it has ended.
//
// Nothing here decides anything and nothing here is part of a run's canonical content: losing all of it changes no bit of
// the weights. A report is a pure function of its data and asks nothing of the network.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/interceptor"
)

// ExporterNone and ExporterStdout are where measurements may go.
const (
	ExporterNone   = "none"
	ExporterStdout = "stdout" // JSON lines to Options.Out
)

// metricInterval is how often metrics are written: often enough to see a stall within a minute.
const metricInterval = 15 * time.Second

// shutdownTimeout bounds the last flush: telemetry never holds up a process that wants to end.
const shutdownTimeout = 5 * time.Second

// Options choose where measurements go.
type Options struct {
	Exporter string    // ExporterNone (also "") or ExporterStdout
	Out      io.Writer // for ExporterStdout
	Service  string    // OpenTelemetry service name, e.g. "restar-worker"
	Instance string    // who among the service's processes, e.g. host and role
}

// Telemetry holds one process's meter and tracer. Both are always usable; without an exporter they cost next to nothing.
type Telemetry struct {
	Meter  metric.Meter
	Tracer trace.Tracer
	close  []func(context.Context) error
}

// scope names this program's own instruments.
const scope = "github.com/restar-rl/restar"

// Start sets measurement up. The caller closes it.
func Start(o Options) (*Telemetry, error) {
	switch o.Exporter {
	case "", ExporterNone:
		return &Telemetry{Meter: metricnoop.NewMeterProvider().Meter(scope), Tracer: tracenoop.NewTracerProvider().Tracer(scope)}, nil
	case ExporterStdout:
		return startStdout(o)
	}
	return nil, fmt.Errorf("telemetry exporter is %q, want %s or %s", o.Exporter, ExporterNone, ExporterStdout)
}

func startStdout(o Options) (*Telemetry, error) {
	if o.Out == nil {
		return nil, errors.New("telemetry exporter stdout has no writer")
	}
	metrics, err := stdoutmetric.New(stdoutmetric.WithWriter(o.Out))
	if err != nil {
		return nil, fmt.Errorf("telemetry metrics: %w", err)
	}
	traces, err := stdouttrace.New(stdouttrace.WithWriter(o.Out))
	if err != nil {
		return nil, fmt.Errorf("telemetry traces: %w", err)
	}
	res := resource.NewSchemaless(attribute.String("service.name", o.Service), attribute.String("service.instance.id", o.Instance))
	mp := sdkmetric.NewMeterProvider(sdkmetric.WithResource(res),
		sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metrics, sdkmetric.WithInterval(metricInterval))))
	tp := sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithBatcher(traces))
	return &Telemetry{Meter: mp.Meter(scope), Tracer: tp.Tracer(scope), close: []func(context.Context) error{tp.Shutdown, mp.Shutdown}}, nil
}

// MetricsHandler feeds the Temporal client's and workers' own metrics into the meter.
func (t *Telemetry) MetricsHandler() client.MetricsHandler {
	return opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{Meter: t.Meter})
}

// Interceptor traces workflows and activities across processes.
func (t *Telemetry) Interceptor() (interceptor.Interceptor, error) {
	return opentelemetry.NewTracingInterceptor(opentelemetry.TracerOptions{Tracer: t.Tracer})
}

// Close writes what is still held. It waits for the exporter, at most shutdownTimeout.
func (t *Telemetry) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	var errs []error
	for _, c := range t.close {
		errs = append(errs, c(ctx))
	}
	return errors.Join(errs...)
}
