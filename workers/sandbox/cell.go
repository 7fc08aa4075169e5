package sandbox

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// tokenBytes of a cell's token: what a cell writes of its own on the channel does not end it by accident.
const tokenBytes = 16

// cell is one cell on a session's slot. It ends when the process says so with the cell's token and exit code, which is its
// own word as an exit code is, or when the process ends or is killed, which its init says.
type cell struct {
	*execution
	session *session
	token   [tokenBytes]byte
	replied chan []byte // one value: what came back on the channel, empty at its end
}

// cell runs c. The session is over afterwards if the result says so or there is an error.
func (s *session) cell(ctx context.Context, c Call) (Result, error) {
	x := &cell{execution: newExecution(s.slot, c), session: s, replied: make(chan []byte, 1)}
	x.meter = s.meter
	_, _ = rand.Read(x.token[:]) // never fails
	children, err := x.pipes()
	if err != nil {
		closeAll(children)
		x.closePipes()
		return Result{}, s.lost(infrastructure("cell %s of session %s: %w", c.ID, s.opt.ID, err))
	}
	s.meter.rebase()
	s.thaw()
	x.start(children)
	if x.watch(ctx) && s.halt() {
		return x.ended()
	}
	return x.killed(ctx)
}

// lost ends the session for a fault of the sandbox.
func (s *session) lost(err error) error {
	s.finish(fmt.Errorf("%w: %w", ErrSessionEnded, err))
	return err
}

// pipes makes the cell's own stdin, stdout and stderr and returns the ends for the process.
func (x *cell) pipes() (children []int, err error) {
	for _, p := range []struct {
		own  **os.File
		kind func() (int, int, error)
	}{{&x.stdin, toChild}, {&x.stdout, fromChild}, {&x.stderr, fromChild}} {
		own, other, err := p.kind()
		if err != nil {
			return children, err
		}
		*p.own = os.NewFile(uintptr(own), "cell pipe")
		children = append(children, other)
	}
	return children, nil
}

func (x *cell) closePipes() {
	for _, f := range []*os.File{x.stdin, x.stdout, x.stderr} {
		if f != nil {
			f.Close()
		}
	}
}

// start captures the outputs and sends the cell. What cannot be sent is seen as the end of the process.
func (x *cell) start(children []int) {
	x.capture()
	go func() {
		reply := make([]byte, tokenBytes+1)
		n, _ := io.ReadFull(x.slot.req, reply)
		x.replied <- reply[:n]
	}()
	head := append(x.token[:], header(x.call)[tokenBytes:]...)
	go func() {
		_ = sendFiles(x.slot.req, head, children)
		closeAll(children)
		_, _ = io.WriteString(x.slot.req, x.call.Code)
	}()
	deliver(x.stdin, x.call.Stdin)
}

// sendFiles sends data and descriptors in one message.
func sendFiles(to *os.File, data []byte, fds []int) error {
	raw, err := to.SyscallConn()
	if err != nil {
		return err
	}
	rights := unix.UnixRights(fds...)
	var sent error
	err = raw.Write(func(fd uintptr) bool {
		sent = unix.Sendmsg(int(fd), data, rights, nil, unix.MSG_NOSIGNAL)
		return sent != unix.EAGAIN
	})
	return errors.Join(err, sent)
}

// watch returns true when the process says that the cell has ended, false when the process has ended or has to be killed.
func (x *cell) watch(ctx context.Context) bool {
	tick := time.NewTimer(sampleEvery)
	defer tick.Stop()
	replied := x.replied
	for x.kill == ranAlone {
		select {
		case <-x.session.gone:
			return false
		case reply := <-replied:
			if code, ok := bytes.CutPrefix(reply, x.token[:]); ok && len(code) == 1 {
				x.status = code
				return true
			}
			if len(reply) > 0 {
				x.kill = forgery
			}
			replied = nil // the process has closed its channel, so it can only end
		case <-ctx.Done():
			x.kill = cancelled
		case <-tick.C:
			x.kill = x.look()
			tick.Reset(sampleEvery)
		}
	}
	return false
}

// ended is the result of a cell whose process goes on, stopped.
func (x *cell) ended() (Result, error) {
	x.clock.cpu = max(x.clock.cpu, x.meter.read().cpu)
	x.drain()
	res := x.outputs()
	res.ExitCode = int(x.status[0])
	status, err := x.judge(res, true)
	res.Status = status
	if status != Success && status != Error {
		res.SessionEnded = true
		x.session.finish(fmt.Errorf("%w: cell %s of session %s ended it with %s", ErrSessionEnded, x.call.ID, x.session.opt.ID, status))
	}
	return res, err
}

// drain reads what the stopped processes have written. Their ends of the pipes may stay open in them: what threads and
// children write there in later cells is dropped, without ever blocking or failing them.
func (x *cell) drain() {
	for _, f := range []*os.File{x.stdout, x.stderr} {
		_ = f.SetReadDeadline(time.Now())
	}
	<-x.streams
	<-x.streams
	keep := x.call.Limits.OutputKB << 10
	x.outText.rest(x.stdout, keep)
	x.errText.rest(x.stderr, keep)
	go discard(x.stdout)
	go discard(x.stderr)
}

// discard reads f until its last writer is gone.
func discard(f *os.File) {
	defer f.Close()
	if f.SetReadDeadline(time.Time{}) == nil {
		_, _ = io.Copy(io.Discard, f)
	}
}

// killed is the result of a cell whose process has ended or is to be killed, and its session with it.
func (x *cell) killed(ctx context.Context) (Result, error) {
	if x.kill == ranAlone && !x.session.isGone() {
		x.kill = unruly
	}
	if x.kill != ranAlone {
		x.clock.cpu = max(x.clock.cpu, x.meter.read().cpu)
	}
	x.stop(x.kill, 2)
	defer x.closePipes()
	res, err := x.lastResult()
	res.SessionEnded = true
	if x.kill == cancelled {
		err = ctx.Err()
	}
	why := err
	if why == nil {
		why = fmt.Errorf("cell %s of session %s ended it with %s", x.call.ID, x.session.opt.ID, res.Status)
	}
	x.session.finish(fmt.Errorf("%w: %w", ErrSessionEnded, why))
	return res, err
}

// lastResult reads the record of the session's init, whose sums are of all cells.
func (x *cell) lastResult() (Result, error) {
	select {
	case <-x.session.gone:
	case <-time.After(teardownDeadline):
		return Result{}, infrastructure("cell %s: the kernel did not end its processes within %v", x.call.ID, teardownDeadline)
	}
	rec, recorded, failure := parseRecord(x.session.status)
	if failure != "" {
		return Result{}, infrastructure("cell %s: %s", x.call.ID, failure)
	}
	res := x.outputs()
	if recorded {
		res.exit(rec)
		res.PeakKB, res.InitCPU, res.Faults = rec.peakKB, rec.init, rec.faults
		res.CPU = max(res.CPU, rec.cpu-x.session.spent)
	}
	var err error
	res.Status, err = x.judge(res, recorded)
	return res, err
}
