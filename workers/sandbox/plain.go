package sandbox

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// subprocess is a program of an insecure pool: an interpreter of its own with resource limits in a folder of its own, with
// this user's rights on the machine. Only what keeps its process group is killed with it.
type subprocess struct {
	cmd  *exec.Cmd
	dir  string
	over atomic.Bool // the group has been killed for the last time; its number may be another's
}

// plainConfig is what zygote.py is told when it is a subprocess.
type plainConfig struct {
	Preload []string  `json:"preload"`
	Texts   Texts     `json:"texts"`
	Plain   plainMode `json:"plain"`
}

type plainMode struct {
	Session bool             `json:"session"`
	Limits  map[string]int64 `json:"limits"` // name of a resource limit: value; DATA is on top of the interpreter's own
}

// subprocess starts an interpreter that waits for its request like a warm slot.
func (p *Pool) subprocess(l Limits, use purpose) (*slot, error) {
	seat, err := p.seats.take()
	if err != nil {
		return nil, err
	}
	sl := &slot{plain: &subprocess{}, seat: seat, limits: l, pidfd: -1}
	child, err := sl.pipes(use)
	if err == nil {
		err = sl.plain.start(p.opt, l, use, child, &sl.pidfd)
	}
	if err != nil {
		closeAll(child)
		sl.close()
		p.seats.give(seat)
		return nil, infrastructure("subprocess: %w", err)
	}
	p.count.spawn(0)
	return sl, nil
}

// start takes over the child's ends of the pipes when it succeeds.
func (s *subprocess) start(o Options, l Limits, use purpose, child []int, pidfd *int) error {
	config, err := json.Marshal(plainConfig{Preload: []string{}, Texts: o.Texts, Plain: plainMode{Session: use == manyCells, Limits: map[string]int64{
		"CORE": 0, "CPU": int64(backstop(longestCall)), "DATA": int64(l.MemoryMB) << 20, "FSIZE": int64(l.TmpKB) << 10, "NOFILE": slotFiles}}})
	if err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "restar-insecure-"); err != nil {
		return err
	}
	files := make([]*os.File, len(child))
	for i, fd := range child {
		files[i] = os.NewFile(uintptr(fd), "subprocess pipe")
	}
	env := append(strings.Fields(callEnv), "HOME="+s.dir, "TMPDIR="+s.dir, "SANDBOX_CONFIG="+string(config))
	s.cmd = &exec.Cmd{Path: o.Python, Args: []string{o.Python, "-B", "-s", "-P", "-c", string(zygoteSource)}, Dir: s.dir, Env: env,
		Stdin: files[0], Stdout: files[1], Stderr: files[2], ExtraFiles: files[3:4],
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL, PidFD: pidfd}}
	if err := s.supervise(files); err != nil {
		return errors.Join(err, os.RemoveAll(s.dir))
	}
	return nil
}

// supervise starts the process on a thread that lives as long as it does, and writes the status record that an init would.
func (s *subprocess) supervise(files []*os.File) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := s.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		for _, f := range files[:4] {
			f.Close()
		}
		_ = s.cmd.Wait()
		s.kill()
		s.over.Store(true)
		_, _ = files[4].Write(s.record())
		files[4].Close()
		_ = os.RemoveAll(s.dir)
	}()
	return <-started
}

// record is struct record of init.c.
func (s *subprocess) record() []byte {
	usage, status := s.cmd.ProcessState.SysUsage().(*syscall.Rusage), s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	micros := func(t syscall.Timeval) uint64 { return uint64(t.Nano()) / uint64(time.Microsecond) }
	b := binary.LittleEndian.AppendUint32([]byte{'S'}, uint32(status))
	b = binary.LittleEndian.AppendUint32(b, uint32(usage.Minflt))
	for _, v := range []uint64{micros(usage.Utime), micros(usage.Stime), uint64(usage.Maxrss), 0} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// kill ends the process group.
func (s *subprocess) kill() {
	if s.cmd != nil && s.cmd.Process != nil && !s.over.Load() {
		_ = unix.Kill(-s.cmd.Process.Pid, unix.SIGKILL)
	}
}
