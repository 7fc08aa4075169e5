package service

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// memoryWatch refuses calls while the machine is short of memory. It looks at most once in lookEvery.
type memoryWatch struct {
	available func() (int64, error)
	least     int64

	mu     sync.Mutex
	looked time.Time
	free   int64
}

const lookEvery = 250 * time.Millisecond

func newMemoryWatch(available func() (int64, error), least int64) *memoryWatch {
	return &memoryWatch{available: available, least: least}
}

// short reports whether too little memory is available. A machine that does not tell is not short.
func (w *memoryWatch) short() (free int64, short bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now(); now.Sub(w.looked) > lookEvery {
		w.looked = now
		free, err := w.available()
		if err != nil {
			free = w.least
		}
		w.free = free
	}
	return w.free, w.free < w.least
}

// availableMemory is what the kernel could give without swapping, bytes, and less where a memory cgroup gives less.
func availableMemory() (int64, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) < 2 || fields[0] != "MemAvailable:" {
			continue
		}
		kb, err := strconv.ParseInt(fields[1], 10, 64)
		return min(kb<<10, cgroupRoom()), err
	}
	return 0, fmt.Errorf("/proc/meminfo has no MemAvailable")
}

// cgroupRoom is what the process's memory cgroup has left in a container (v2, then v1), file cache that can be dropped not
// counted; without a limit it is no bound.
func cgroupRoom() int64 {
	const none = int64(1) << 62
	for _, at := range []struct{ limit, used, stat, cache string }{
		{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat", "inactive_file"},
		{"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes", "/sys/fs/cgroup/memory/memory.stat", "total_inactive_file"},
	} {
		limit, err := number(at.limit)
		if err != nil {
			continue // no such file, or "max"
		}
		used, err := number(at.used)
		if err != nil {
			continue
		}
		return max(limit-used+field(at.stat, at.cache), 0)
	}
	return none
}

func number(path string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

// field is a number of a file of names and numbers, 0 if it is not there.
func field(path, name string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && key == name {
			n, _ := strconv.ParseInt(value, 10, 64)
			return n
		}
	}
	return 0
}
