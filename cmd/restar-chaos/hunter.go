package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// hunter kills processes of a run at their moments.
type hunter struct {
	trial *trial
	begin time.Time
	left  []kill
	done  []string
	last  *kill // the newest kill, while it is to be confirmed that the command died of it
}

// hunt kills until the command ends.
func (h *hunter) hunt(ctx context.Context, supervisor int, done <-chan struct{}) {
	ready := time.Now().Add(calmAfterKill)
	for len(h.left) > 0 {
		wait := max(time.Until(h.begin.Add(h.left[0].after)), time.Until(ready))
		select {
		case <-ctx.Done():
			return
		case <-done:
			return
		case <-time.After(wait):
		}
		h.kill(supervisor)
		ready = time.Now().Add(calmAfterKill)
	}
}

// kill carries out the next kill of the plan, if its victim is there.
func (h *hunter) kill(supervisor int) {
	next := h.left[0]
	if !h.strike(next.victim, supervisor) {
		return
	}
	h.left = h.left[1:]
	if next.victim == theTree || next.victim == theSupervisor {
		h.last = &next
	}
}

// confirm takes back a kill of the supervisor that the command did not die of: it had ended just before.
func (h *hunter) confirm(killed bool) {
	if h.last != nil && !killed {
		h.left = append([]kill{*h.last}, h.left...)
		h.done = h.done[:len(h.done)-1]
	}
	h.last = nil
}

// strike kills one victim with SIGKILL and reports whether it was there. Of a whole tree that is the supervisor, the first
// of its processes: the others may be dead already, or be killed by the kernel with it.
func (h *hunter) strike(v victim, supervisor int) bool {
	pids := h.pids(v, supervisor)
	if len(pids) == 0 || syscall.Kill(pids[0], syscall.SIGKILL) != nil {
		return false
	}
	for _, pid := range pids[1:] {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	what := fmt.Sprintf("%s at %.1f s", v, time.Since(h.begin).Seconds())
	fmt.Println("killed", what)
	h.done = append(h.done, what)
	return true
}

// pids are the processes of a victim. The supervisor notes its children in pids.json.
func (h *hunter) pids(v victim, supervisor int) []int {
	children := map[string]int{}
	if body, err := os.ReadFile(filepath.Join(h.trial.dir, "pids.json")); err == nil {
		if err := json.Unmarshal(body, &children); err != nil {
			return nil
		}
	}
	of := func(name string) []int {
		if pid := children[name]; pid > 0 {
			return []int{pid}
		}
		return nil
	}
	switch v {
	case theSupervisor:
		return []int{supervisor}
	case theServer:
		return of("devserver")
	case theTrainer:
		return of("trainer")
	case theRollout:
		return of("rollout")
	case theSandbox:
		return firstChild(of("rollout"))
	case theRank:
		return firstChild(of("trainer"))
	}
	all := []int{supervisor}
	for _, name := range []string{"devserver", "trainer", "rollout"} {
		all = append(all, of(name)...)
	}
	return all
}

// firstChild is a child process of a worker, if the worker is there and has one.
func firstChild(worker []int) []int {
	if worker == nil {
		return nil
	}
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", worker[0]))
	if err != nil {
		return nil
	}
	for _, path := range tasks {
		body, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(string(body)) {
			if child, err := strconv.Atoi(field); err == nil {
				return []int{child}
			}
		}
	}
	return nil
}
