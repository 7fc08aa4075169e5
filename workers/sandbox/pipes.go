package sandbox

import (
	"cmp"
	"os"

	"golang.org/x/sys/unix"
)

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

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}
