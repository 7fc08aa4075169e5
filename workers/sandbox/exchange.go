package sandbox

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// controlPair makes the socket of a zygote: own is waited on by the runtime's poller, because a thread that waits in a system
// call keeps the runtime's monitor awake, which then takes a core from the calls every few dozen microseconds.
func controlPair() (own *net.UnixConn, peer *os.File, err error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	peer = os.NewFile(uintptr(ends[1]), "zygote control")
	mine := os.NewFile(uintptr(ends[0]), "control of a zygote")
	defer mine.Close() // the connection has a duplicate
	conn, err := net.FileConn(mine)
	if err != nil {
		peer.Close()
		return nil, nil, err
	}
	return conn.(*net.UnixConn), peer, nil
}

// exchange sends one spawn request with its descriptors and returns the pidfd of the call's init. A request that gets no
// answer breaks the zygote, which ends it: what it would answer later belongs to nobody.
func (z *zygote) exchange(r spawnRequest, fds []int) (pidfd int, err error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.broken {
		return -1, infrastructure("zygote %d is broken", z.cmd.Process.Pid)
	}
	z.requests++
	r.ID = z.requests
	msg, err := binary.Append(nil, binary.LittleEndian, r)
	if err != nil {
		return -1, err
	}
	z.broken = true
	defer func() {
		if z.broken {
			_ = z.cmd.Process.Kill() // its keeper starts another
		}
	}()
	if err = z.control.SetDeadline(time.Now().Add(spawnDeadline)); err == nil {
		_, _, err = z.control.WriteMsgUnix(msg, unix.UnixRights(fds...), nil)
	}
	if err != nil {
		z.broken = !scarce(err)
		return -1, infrastructure("zygote %d does not take requests: %w", z.cmd.Process.Pid, err)
	}
	return z.reply(r.ID)
}

// scarce reports whether a message was not sent because the machine was short of something, which is not the zygote's fault.
func scarce(err error) bool {
	return slices.ContainsFunc([]error{unix.ETOOMANYREFS, unix.ENOBUFS, unix.ENOMEM}, func(e error) bool { return errors.Is(err, e) })
}

func (z *zygote) reply(id uint32) (int, error) {
	buf, oob := make([]byte, 8), make([]byte, unix.CmsgSpace(4))
	n, on, _, _, err := z.control.ReadMsgUnix(buf, oob)
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
