package sandbox

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAnInsecurePoolSaysSoOnEveryCall(t *testing.T) {
	var log bytes.Buffer
	p := startPool(t, Options{Insecure: true, Preload: Lite(), Log: slog.New(slog.NewTextHandler(&log, nil))})
	for _, c := range []struct {
		call   Call
		status Status
		stdout string
		stderr string
	}{
		{Call{ID: "one", Code: "int(input()) + 1", Stdin: "41\n"}, Success, "42\n", ""},
		{Call{ID: "two", Code: "1 / 0"}, Error, "", "ZeroDivisionError at line 1: division by zero\n  1 / 0\n"},
		{Call{ID: "three", Code: "print('a')\nwhile True: pass", Limits: Limits{CPU: 300 * time.Millisecond}}, Timeout, "a\n", ""},
		{Call{ID: "four", Code: "x = bytearray(4 << 30)"}, Error, "", "MemoryError at line 1: \n  x = bytearray(4 << 30)\n"},
		{Call{ID: "five", Code: "import os, subprocess\nsubprocess.Popen(['sleep', '31337'])\nprint(os.listdir('.'))"}, Success, "[]\n", ""},
		{Call{ID: "six", Code: "import os\nos.kill(os.getpid(), 11)"}, Killed, "", ""},
	} {
		r, err := p.Run(deadline(t), c.call)
		if err != nil || r.Status != c.status || r.Stdout != c.stdout || r.Stderr != c.stderr || r.Tier != TierNone {
			t.Errorf("call %s: got %+v, %v", c.call.ID, r, err)
		}
		if !strings.Contains(log.String(), "INSECURE call\" call="+c.call.ID) {
			t.Errorf("call %s is not in the log:\n%s", c.call.ID, log.String())
		}
	}
	s := openSession(t, p, SessionOptions{})
	runCell(t, s, "x = 5")
	if r := runCell(t, s, "x + 1"); r.Stdout != "6\n" {
		t.Errorf("a session gave %+v", r)
	}
	if n := strings.Count(log.String(), "INSECURE call\" call=cell"); n != 2 {
		t.Errorf("%d of 2 cells are in the log:\n%s", n, log.String())
	}
	s.Close()
	if who := sleepers(); len(who) > 0 {
		t.Errorf("processes %v survived", who)
	}
	if left, _ := filepath.Glob("/tmp/restar-insecure-*"); len(left) > 0 {
		t.Errorf("folders %v are left", left)
	}
}

func TestLayersLeftOutForABenchmarkAreSaid(t *testing.T) {
	p := startPool(t, Options{Insecure: true, Zygotes: 1, Without: Layers{Seccomp: true, Landlock: true, Cgroups: true}})
	if r := run(t, p, "1"); r.Stdout != "1\n" || r.Tier != TierNone {
		t.Errorf("got %+v", r)
	}
	if s := p.Status(); s.Tier != TierNone || s.Reason == "" {
		t.Errorf("status is %+v", s)
	}
}
