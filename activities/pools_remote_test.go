package activities

import (
	"context"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/sandbox/service"
	"github.com/restar-rl/restar/workers/store"
)

// zeros is a sandbox whose programs print 0.
type zeros struct{ runs atomic.Int64 }

func (z *zeros) Run(context.Context, sandbox.Call) (sandbox.Result, error) {
	z.runs.Add(1)
	return sandbox.Result{Status: sandbox.Success, Stdout: "0\n"}, nil
}

func TestACallRunsOnTheSandboxServicesOfTheRecipe(t *testing.T) {
	var z zeros
	s, err := service.New(service.Options{Runner: &z, Tier: sandbox.TierB})
	must(t, err)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	st, _ := toyRun(t)
	in := sliceOf(t, st)
	in.FirstSample, in.Samples = 1, 1 // the sample that calls once, then answers
	b := process(t, st)
	pools := &Pools{Endpoints: []string{server.URL}}
	t.Cleanup(pools.Close)
	writing(t, b, in.Weights.Version)
	b.ro.Pools = pools
	if got := call[SliceResult](b, b.ro.Slice, in); got.Correct != 1 || got.Calls != 1 || got.CallErrors != 0 || z.runs.Load() != 1 {
		t.Fatalf("%+v after %d runs on the service, want one call and a correct answer", got, z.runs.Load())
	}
	records, err := store.ReadJournal(t.Context(), st, sliceJournal(in))
	must(t, err)
	logs, err := readLogs(records)
	must(t, err)
	if text := logs.final[1].Turns[0].Calls[0].Text; !strings.Contains(text, "stdout: 0\n") {
		t.Fatalf("the tool says %q, want what the service answered", text)
	}
	named := b.rec.Sandbox
	named.Endpoints = []string{server.URL}
	fromRecipe := &Pools{}
	t.Cleanup(fromRecipe.Close)
	r, err := fromRecipe.Get(t.Context(), named)
	must(t, err)
	if got, err := r.Run(t.Context(), sandbox.Call{}); err != nil || got.Stdout != "0\n" || z.runs.Load() != 2 {
		t.Fatalf("a recipe's own endpoint gave %+v, %v", got, err)
	}
}
