package sandbox

import "time"

// starvedFactor times the wall limit is how long a call may take on a machine that gives it no CPU. A node that gives a
// call less than a tenth of a core is overloaded, and the call belongs elsewhere.
const starvedFactor = 10

// verdict is what a clock says about a running call.
type verdict int

const (
	within  verdict = iota
	expired         // the call's own doing
	starved         // the machine's
)

// clock decides time-outs. The call's own time is the CPU time of its tree plus the wall time in which none of its threads
// wanted a CPU; waiting for a CPU, or for a disk, counts against nobody until the machine is declared starved.
type clock struct {
	limits       Limits
	elapsed, cpu time.Duration
	blocked      time.Duration
}

// observe takes one sample: wall time since the call began, CPU time of its tree so far, and whether any of its threads
// was running, waiting for a CPU or waiting for a device at this moment.
func (c *clock) observe(elapsed, cpu time.Duration, wantsCPU bool) verdict {
	wall, used := elapsed-c.elapsed, max(cpu-c.cpu, 0)
	c.elapsed, c.cpu = elapsed, max(cpu, c.cpu)
	if !wantsCPU {
		c.blocked += max(wall-used, 0)
	}
	switch {
	case c.cpu >= c.limits.CPU, c.cpu+c.blocked >= c.limits.Wall:
		return expired
	case elapsed >= starvedFactor*c.limits.Wall:
		return starved
	}
	return within
}
