package sandbox

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

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

// uninterrupted repeats a system call that a signal cut short. The Go runtime signals its threads, and calls on a socket
// with a deadline are never restarted by the kernel.
func uninterrupted(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}
