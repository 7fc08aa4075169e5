package sandbox

import (
	"bytes"
	"cmp"
	"encoding/binary"
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

// pipes makes the slot's five channels and returns the child's ends in the order of shim.c.
func (sl *slot) pipes(use purpose) (child []int, err error) {
	for _, p := range []struct {
		own  **os.File
		kind func() (own, other int, err error)
	}{{&sl.stdin, toChild}, {&sl.stdout, fromChild}, {&sl.stderr, fromChild}, {&sl.req, requests(use)}, {&sl.status, fromChild}} {
		own, other, err := p.kind()
		if err != nil {
			return child, infrastructure("pipe: %w", err)
		}
		child = append(child, other)
		*p.own = os.NewFile(uintptr(own), "slot pipe")
	}
	return child, nil
}

// toChild, fromChild and bothWays make a channel. The own end does not block.
func toChild() (own, other int, err error) {
	other, own, err = pipe()
	return own, other, cmp.Or(err, unblock(own))
}

func fromChild() (own, other int, err error) {
	own, other, err = pipe()
	return own, other, cmp.Or(err, unblock(own))
}

// unblock makes a descriptor that has no other flags non-blocking.
func unblock(fd int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_NONBLOCK)
	return err
}

func bothWays() (own, other int, err error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, -1, err
	}
	return ends[0], ends[1], unblock(ends[0])
}

func pipe() (reads, writes int, err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return -1, -1, err
	}
	return ends[0], ends[1], nil
}

func requests(use purpose) func() (int, int, error) {
	if use == manyCells {
		return bothWays
	}
	return toChild
}

// exchange sends one spawn request with its descriptors and returns the pidfd of the call's init. A request that gets no
// answer breaks the zygote: what it would answer later belongs to nobody.
func (z *zygote) exchange(r spawnRequest, fds []int) (pidfd int, err error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.broken {
		return -1, infrastructure("zygote %d is broken", z.cmd.Process.Pid)
	}
	z.broken = true
	if z.control < 0 {
		return -1, infrastructure("zygote %d is gone", z.cmd.Process.Pid)
	}
	z.requests++
	r.ID = z.requests
	var msg bytes.Buffer
	if err := binary.Write(&msg, binary.LittleEndian, r); err != nil {
		return -1, err
	}
	err = uninterrupted(func() error {
		return unix.Sendmsg(z.control, msg.Bytes(), unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
	})
	if err != nil {
		return -1, infrastructure("zygote %d does not take requests: %w", z.cmd.Process.Pid, err)
	}
	return z.reply(r.ID)
}

func (z *zygote) reply(id uint32) (int, error) {
	buf, oob := make([]byte, 8), make([]byte, unix.CmsgSpace(4))
	var n, on int
	err := uninterrupted(func() (err error) {
		n, on, _, _, err = unix.Recvmsg(z.control, buf, oob, unix.MSG_CMSG_CLOEXEC)
		return err
	})
	if err != nil || n != len(buf) {
		return -1, infrastructure("zygote %d did not answer a spawn request within %v (%d bytes): %v", z.cmd.Process.Pid, spawnDeadline, n, err)
	}
	if got := binary.LittleEndian.Uint32(buf); got != id {
		return -1, infrastructure("zygote answered request %d, expected %d", got, id)
	}
	z.broken = false
	if e := unix.Errno(binary.LittleEndian.Uint32(buf[4:])); e != 0 {
		return -1, infrastructure("zygote could not fork a call: %w", e)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:on])
	if err != nil || len(messages) != 1 {
		return -1, infrastructure("zygote sent %d descriptors, expected a pidfd: %v", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return -1, infrastructure("pidfd: %w", err)
	}
	return fds[0], nil
}

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

// uninterrupted repeats a system call that a signal cut short. The Go runtime signals its threads, and calls on a socket
// with a deadline are never restarted by the kernel.
func uninterrupted(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}
