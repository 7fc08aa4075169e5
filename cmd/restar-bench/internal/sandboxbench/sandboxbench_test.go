package sandboxbench

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/restar-rl/restar/cmd/restar-bench/internal/match"
)

func TestACostIsThatOfTheWholeTree(t *testing.T) {
	busy := "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
	// The child's child burns the time; both are waited for, and the root lives on.
	cmd := exec.Command("/bin/sh", "-c", `/bin/sh -c '/usr/bin/python3 -c "$0"; true' "$0"; echo done; read line`, busy)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	if got := treeCPU(cmd.Process.Pid); got < 290*time.Millisecond || got > 2*time.Second {
		t.Errorf("the tree used %v, expected 300 ms and the starts of three programs", got)
	}
	in.Close()
	_ = cmd.Wait()
}

func TestAControlGroupCountsWhatJoinsIt(t *testing.T) {
	a := openAccount("test")
	defer a.close()
	if a.dir == "" {
		t.Skip("no control group that accounts CPU time can be made here")
	}
	args := a.wrap([]string{"/usr/bin/python3", "-c", "import os\nif os.fork() == 0:\n    import time\n    end = time.process_time() + 0.2\n    while time.process_time() < end: pass\n    os._exit(0)\nos.wait()"})
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got, err := a.usage(); err != nil || got < 190*time.Millisecond {
		t.Errorf("the group used %v, %v, expected at least 200 ms", got, err)
	}
	a.close()
	if _, err := os.Stat(a.dir); err == nil {
		t.Errorf("%s is still there", a.dir)
	}
}

func TestOnlySuccessesCount(t *testing.T) {
	var served atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ok := served.Add(1)%2 == 0
		if strings.HasSuffix(r.URL.Path, "long-batch") {
			fmt.Fprintf(w, `{"results":[{"run_success":true},{"run_success":%v}]}`, ok)
			return
		}
		fmt.Fprintf(w, `{"run_success":%v}`, ok)
	}))
	defer s.Close()
	c := &contestant{name: "fake", url: s.URL, cpu: &account{usage: func() (time.Duration, error) { return time.Duration(served.Load()) * time.Millisecond, nil }}}
	got, err := c.measure(context.WithoutCancel(t.Context()), load{"run", 3, 1}, []string{"a", "b"}, 20)
	if err != nil || got.calls != 20 || got.right != 10 || got.cpuMs() != 2 || len(got.latency) != 20 {
		t.Errorf("single calls: %+v, %v", got, err)
	}
	served.Store(0)
	got, err = c.measure(context.WithoutCancel(t.Context()), load{"batch", 1, 2}, []string{"a"}, 8)
	if err != nil || got.calls != 8 || got.right != 6 {
		t.Errorf("batches: %+v, %v", got, err)
	}
}

func TestARatioIsTheWorstOfItsParts(t *testing.T) {
	b := &bench{figures: match.Figures{}}
	for key, v := range map[string]float64{
		"restar_mixed_run8_cpu_ms": 10, "code-judge_mixed_run8_cpu_ms": 60, "restar_mixed_run8_per_s": 80, "code-judge_mixed_run8_per_s": 20,
		"restar_mixed_batch64_cpu_ms": 10, "code-judge_mixed_batch64_cpu_ms": 50, "restar_mixed_batch64_per_s": 90, "code-judge_mixed_batch64_per_s": 20,
	} {
		b.figures.Set(key, v)
	}
	b.ratios()
	if b.figures["mixed_vs_codejudge"] != 4 {
		t.Errorf("mixed_vs_codejudge is %v, expected 4, of the rate at run8", b.figures["mixed_vs_codejudge"])
	}
	if _, ok := b.figures["trivial_vs_codejudge"]; ok {
		t.Error("a ratio of what was not measured")
	}
	b.figures["burst_lost"], b.figures["p99_over_p50"] = 1, 2
	if missed := b.missed(); len(missed) != 1 || !strings.Contains(missed[0], "burst_lost is 1") {
		t.Errorf("missed %v, expected the lost call only", missed)
	}
}
