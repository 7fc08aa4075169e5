package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A layer that goes away while the pool runs is found by the next look, and the zygote gets no more calls.
func TestTheCanariesRunAgainInEveryZygote(t *testing.T) {
	p := openPool(t, Options{Zygotes: 2, Warm: 1})
	var gone atomic.Bool
	p.landlock = func() bool { return !gone.Load() }
	if err := p.launch(deadline(t)); err != nil {
		t.Fatal(err)
	}
	first := p.Status().Preflight
	if first.At.IsZero() || first.Err != nil {
		t.Fatalf("the preflight is %+v", first)
	}
	if err := unix.Kill(p.shelves[0].zygote(0).cmd.Process.Pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for p.Status().Zygotes < 2 || p.Status().Restarts == 0 {
		time.Sleep(time.Millisecond)
	}
	again := p.Status().Preflight
	if !again.At.After(first.At) || again.Err != nil {
		t.Errorf("after a restart the preflight is %+v, before %+v", again, first)
	}
	gone.Store(true)
	p.recheckAll()
	if s := p.Status(); !errors.Is(s.Preflight.Err, ErrLayer) || !strings.Contains(s.Preflight.Err.Error(), "Landlock") {
		t.Errorf("the preflight without Landlock is %v", s.Preflight.Err)
	}
	for p.Status().Zygotes > 0 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if r, err := p.Run(ctx, Call{Code: "print(1)"}); err == nil {
		t.Errorf("a call got %+v from a machine with a hole", r)
	}
}

func TestStartFailsClosedAndNamesTheLayer(t *testing.T) {
	for _, c := range []struct {
		without Layers
		tier    Tier
		says    []string
	}{
		{Layers{Seccomp: true}, testTier(), []string{"system call filter (", "no vsock (", "CONFIG_SECCOMP_FILTER"}},
		{Layers{Landlock: true}, testTier(), []string{"Landlock (", "lsm= list"}},
		{Layers{Cgroups: true}, TierA, []string{"tier A", "cgroup", "tier B"}},
	} {
		_, err := Start(deadline(t), Options{Tier: c.tier, Zygotes: 1, Warm: 1, Without: c.without})
		if !errors.Is(err, ErrInfrastructure) {
			t.Errorf("without %+v: got %v, expected an infrastructure error", c.without, err)
			continue
		}
		for _, s := range c.says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("without %+v: %v does not name %q", c.without, err, s)
			}
		}
	}
}

func TestTheTierIsSaid(t *testing.T) {
	p := startPool(t, Options{Tier: TierB, Zygotes: 1, Warm: 1, Without: Layers{Cgroups: true}})
	if r := run(t, p, "1"); r.Tier != TierB || p.Status().Reason == "" {
		t.Errorf("a pool without cgroups says tier %q because %q", r.Tier, p.Status().Reason)
	}
	p = startPool(t, Options{Tier: TierB, Zygotes: 1, Warm: 1})
	if r := run(t, p, "1"); r.Tier != testTier() {
		t.Errorf("tier %q, expected %q: what is accepted is a minimum", r.Tier, testTier())
	}
}

func TestProbeReportsEveryLayer(t *testing.T) {
	r := Probe(deadline(t))
	if r.Err != nil || r.Tier != testTier() || len(r.Layers) != len(canaries)+len(outside()) {
		t.Fatalf("got %+v", r)
	}
	for _, l := range r.Layers {
		if !l.OK || l.Fix != "" {
			t.Errorf("layer %+v", l)
		}
	}
}

// outside names the layers that are seen from outside a slot.
func outside() []string {
	if testTier() == TierA {
		return []string{"Landlock", "memory and pids cgroups of the whole tree"}
	}
	return []string{"Landlock"}
}

func TestACallThatDoesNotJoinItsCgroupIsAHole(t *testing.T) {
	dir := t.TempDir()
	procs := filepath.Join(dir, "cgroup.procs")
	if err := os.WriteFile(procs, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	g := &group{memory: dir, pids: dir}
	looks := 0
	ended := func() bool { looks++; return looks == 3 }
	if r := (Report{Layers: []Layer{groupLayer(g.joined(t.Context(), ended))}}); !errors.Is(r.refusal(), ErrLayer) || !strings.Contains(r.refusal().Error(), "cgroup") {
		t.Errorf("an empty cgroup is %v, expected a refusal that names it", r.refusal())
	}
	if looks != 3 {
		t.Errorf("%d looks at a process that had ended by the third", looks)
	}
	if err := os.WriteFile(procs, []byte("7\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := (Report{Layers: []Layer{groupLayer(g.joined(t.Context(), ended))}}); r.refusal() != nil {
		t.Error(r.refusal())
	}
}
