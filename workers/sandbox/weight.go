package sandbox

import (
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// Weights of one process in its group, and the largest of a group (cgroup v1 cpu.shares, v2 cpu.weight).
const (
	sharesOne, sharesMost = 1024, 262144
	weightOne, weightMost = 100, 10000
)

// weigh gives the pool's cgroup the CPU weight of the calls that run in it. The kernel shares a core first between the members
// of a parent group: a pool of the default weight would count as one process beside every other process of the machine,
// whatever it runs. Where there is no cpu controller nothing is to be done.
func (c *cgroups) weigh() {
	calls := 2 * runtime.GOMAXPROCS(0) // as many as run at once by default
	for _, controller := range c.order {
		dir := c.dirs[controller]
		for name, weight := range map[string]int{"cpu.shares": min(sharesOne*calls, sharesMost), "cpu.weight": min(weightOne*calls, weightMost)} {
			if unix.Access(filepath.Join(dir, name), unix.W_OK) == nil {
				_ = writeFile(dir, name, strconv.Itoa(weight)) // without it calls are slower beside others, and right
			}
		}
	}
}
