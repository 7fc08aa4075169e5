package sandbox

import (
	"time"

	"golang.org/x/sys/unix"
)

// result says what the call did, once nothing of it is left.
func (e *execution) result() (Result, error) {
	rec, ok, failure := parseRecord(e.status)
	res := e.outputs()
	res.CPU, res.PeakKB, res.InitCPU, res.Faults = max(e.clock.cpu, rec.cpu), rec.peakKB, rec.init, rec.faults
	if failure != "" {
		return res, infrastructure("call %s: %s", e.call.ID, failure)
	}
	if ok {
		res.exit(rec)
	}
	status, err := e.judge(res, ok)
	res.Status = status
	return res, err
}

// outputs is what can be said without knowing how the call ended.
func (e *execution) outputs() Result {
	return Result{Stdout: e.outText.text(), Stderr: e.errText.text(), StdoutTruncated: e.outText.truncated(), StderrTruncated: e.errText.truncated(),
		StdoutBytes: e.outText.total, StderrBytes: e.errText.total, Wall: time.Since(e.began), CPU: e.clock.cpu, Profile: e.slot.profile()}
}

func (r *Result) exit(rec record) {
	if rec.wait.Signaled() {
		r.Signal = int(rec.wait.Signal())
		return
	}
	r.ExitCode = rec.wait.ExitStatus()
}

// judge orders the reasons: what the pool did comes first, then a record's own word. A call over its CPU limit is a
// time-out even if it ended between two looks, so that the phase of the looks decides nothing.
func (e *execution) judge(r Result, recorded bool) (Status, error) {
	failed := r.Signal != 0 || r.ExitCode != 0 || !recorded
	switch {
	case e.flooded.Load():
		return OutputLimit, nil
	case r.CPU >= e.call.Limits.CPU, e.kill == timeLimit && !recorded:
		return Timeout, nil
	case failed && e.outOfMemory():
		return OOM, nil
	case e.kill == forgery, e.kill == unruly:
		return Killed, nil
	case e.kill == starvation && !recorded:
		return "", infrastructure("call %s: starved, it got %v of CPU in %v although it was ready to run (own time %v, limits %v CPU, %v wall)",
			e.call.ID, r.CPU, r.Wall.Round(time.Millisecond), (e.clock.cpu + e.clock.blocked).Round(time.Millisecond), e.call.Limits.CPU, e.call.Limits.Wall)
	case !recorded:
		return "", infrastructure("call %s: lost with its zygote", e.call.ID)
	case r.Signal == int(unix.SIGXCPU):
		return Timeout, nil
	case r.Signal != 0:
		return Killed, nil
	case r.ExitCode != 0:
		return Error, nil
	}
	return Success, nil
}

// outOfMemory reports whether the pool or the kernel killed a process of the call for its memory.
func (e *execution) outOfMemory() bool {
	g := e.slot.seat.group
	return e.kill == memoryLimit || g != nil && g.oomKills() > 0
}
