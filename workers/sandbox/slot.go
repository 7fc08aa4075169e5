package sandbox

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// slot is one forked, locked-down process that waits for its request. It serves one call.
type slot struct {
	zygote *zygote     // nil of a subprocess
	plain  *subprocess // nil of a zygote's child
	seat   *seat
	limits Limits // what it was forked with
	stdin  *os.File
	stdout *os.File
	stderr *os.File
	req    *os.File
	status *os.File

	mu    sync.Mutex // a kill may come from anywhere, and a closed number may be another slot's by then
	pidfd int
}

// spawnRequest is struct request of shim.c, little-endian.
type spawnRequest struct {
	ID, UID, TmpKB, Inodes, Session        uint32
	CPUSeconds, Fsize, Nofile, Nproc, Data uint64
}

const (
	slotFiles  = 256  // descriptors of one process
	slotInodes = 4096 // files in /tmp
	// cpuSlack keeps the kernel's per-process CPU limit behind the pool's own: it only matters when the pool is stopped.
	cpuSlack = 2
)

// purpose is what a slot is forked for.
type purpose uint32

const (
	oneCall   purpose = iota
	manyCells         // its request channel is a socket, which carries the cells and their streams
)

// spawn forks a slot in seat. The slot owns the seat afterwards; on error the caller keeps it.
func (z *zygote) spawn(s *seat, l Limits, use purpose) (*slot, error) {
	sl := &slot{zygote: z, seat: s, limits: l, pidfd: -1}
	child, err := sl.pipes(use)
	defer closeAll(child)
	if err == nil {
		err = s.apply(l)
	}
	if err == nil {
		sl.pidfd, err = z.exchange(sl.request(use), append(child, s.procs()...))
	}
	if err != nil {
		sl.close()
		return nil, err
	}
	return sl, nil
}

func (sl *slot) request(use purpose) spawnRequest {
	l := sl.limits
	uid := 0
	if sl.zygote.ranged {
		uid = firstSeat + sl.seat.index
	}
	return spawnRequest{UID: uint32(uid), TmpKB: uint32(l.TmpKB), Inodes: slotInodes, Session: uint32(use),
		CPUSeconds: backstop(longestCall), Fsize: uint64(l.TmpKB) << 10,
		Nofile: slotFiles, Nproc: uint64(l.Pids), Data: uint64(l.MemoryMB) << 20}
}

// backstop is the kernel's CPU limit of each process, in seconds, for a call with that limit.
func backstop(cpu time.Duration) uint64 { return uint64((cpu+time.Second-1)/time.Second) + cpuSlack }

// kill ends the slot's init, and with it everything in its namespace; or the group of a subprocess.
func (sl *slot) kill() {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	switch {
	case sl.pidfd < 0:
		return
	case sl.plain != nil:
		sl.plain.kill()
	}
	_ = unix.PidfdSendSignal(sl.pidfd, unix.SIGKILL, nil, 0)
}

// profile names the zygote's, "" of a subprocess.
func (sl *slot) profile() string {
	if sl.zygote == nil {
		return ""
	}
	return sl.zygote.profile
}

// sharedKB is the anonymous memory that every process of the slot shares with the zygote at first.
func (sl *slot) sharedKB() int64 {
	if sl.zygote == nil {
		return 0
	}
	return sl.zygote.anonKB
}

// awaitGone waits until the kernel has torn down the slot's pid namespace.
func (sl *slot) awaitGone(d time.Duration) bool {
	for end := time.Now().Add(d); ; {
		p := []unix.PollFd{{Fd: int32(sl.pidfd), Events: unix.POLLIN}}
		n, err := unix.Poll(p, int(max(time.Until(end).Milliseconds(), 0)))
		if n > 0 {
			return true
		}
		if err != unix.EINTR {
			return false
		}
	}
}

func (sl *slot) close() {
	for _, f := range []*os.File{sl.stdin, sl.stdout, sl.stderr, sl.req, sl.status} {
		if f != nil {
			f.Close()
		}
	}
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.pidfd >= 0 {
		unix.Close(sl.pidfd)
		sl.pidfd = -1
	}
}
