package telemetry

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestTemporalMetricsReachTheExporter(t *testing.T) {
	var out bytes.Buffer
	tel, err := Start(Options{Exporter: ExporterStdout, Out: &out, Service: "restar-test", Instance: "here"})
	if err != nil {
		t.Fatal(err)
	}
	h := tel.MetricsHandler().WithTags(map[string]string{"queue": "rollout"})
	h.Counter("tasks").Inc(3)
	h.Timer("latency").Record(time.Second)
	_, span := tel.Tracer.Start(t.Context(), "a-step")
	span.End()
	if err := tel.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"tasks", "latency", "a-step", "restar-test", "rollout"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("exported text lacks %q", want)
		}
	}
}

func TestWithoutAnExporterEverythingStillWorks(t *testing.T) {
	tel, err := Start(Options{})
	if err != nil {
		t.Fatal(err)
	}
	tel.MetricsHandler().Counter("tasks").Inc(1)
	if _, err := tel.Interceptor(); err != nil {
		t.Error(err)
	}
	if err := tel.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := Start(Options{Exporter: "pigeon"}); err == nil || !strings.Contains(err.Error(), "pigeon") {
		t.Errorf("unknown exporter gives %v, want an error that names it", err)
	}
}
