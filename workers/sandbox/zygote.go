package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// startDeadline covers a cold import of the scientific libraries from disk on a machine with all cores busy.
	startDeadline = 3 * time.Minute
	// spawnDeadline is thousands of times the cost of a spawn: only a stopped zygote or a hung kernel exceeds it.
	spawnDeadline = 30 * time.Second
)

// zygote is a warm interpreter that calls are forked from.
type zygote struct {
	cmd      *exec.Cmd
	profile  string
	anonKB   int64         // its own anonymous memory, which every call shares at first
	ranged   bool          // ids are a range, so each seat has its own
	dead     chan struct{} // closed when the process has been reaped
	turn     chan struct{} // holds a value while a slot is forked: who has waited for it looks at the shelf first
	mu       sync.Mutex    // one request at a time on the control socket
	control  *net.UnixConn
	requests uint32
	broken   bool
}

// startZygote returns once the zygote has preloaded and is ready to fork calls, or has been killed because ctx ended.
func startZygote(ctx context.Context, o Options, kind profile, filter []byte) (*zygote, error) {
	control, peer, err := controlPair()
	if err != nil {
		return nil, infrastructure("control socket: %w", err)
	}
	z := &zygote{profile: kind.name, control: control, dead: make(chan struct{}), turn: make(chan struct{}, 1)}
	err = z.launch(o, kind, filter, peer)
	peer.Close()
	if err != nil {
		control.Close()
		return nil, err
	}
	waiting := context.AfterFunc(ctx, func() { _ = z.cmd.Process.Kill() })
	defer waiting()
	if err := z.awaitReady(o, kind); err != nil {
		z.stop()
		return nil, cmp.Or(ctx.Err(), err)
	}
	z.anonKB = statusKB(z.cmd.Process.Pid, "RssAnon")
	return z, nil
}

func (z *zygote) launch(o Options, kind profile, filter []byte, control *os.File) error {
	attr := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
			unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
		Pdeathsig: unix.SIGKILL, Setsid: true,
	}
	ranged, err := mapIDs(attr)
	if err != nil {
		return infrastructure("user namespace: %w", err)
	}
	z.ranged = ranged
	config, err := json.Marshal(stageFor(o, kind, filter, ranged))
	if err != nil {
		return err
	}
	z.cmd = &exec.Cmd{Path: "/proc/self/exe", Args: []string{childName}, Env: []string{stageVar + "=" + string(config)},
		ExtraFiles: []*os.File{control}, SysProcAttr: attr}
	return z.supervise()
}

func stageFor(o Options, kind profile, filter []byte, ranged bool) stage {
	s := stage{Python: o.Python, Filter: filter, Zygote: zygoteConfig{Preload: append([]string{}, kind.preload...), Texts: o.Texts, LandlockABI: landlockABI()}}
	if ranged {
		s.Zygote.Range = 1
	}
	if o.Without.Seccomp {
		s.Filter = nil
	}
	if o.Without.Landlock {
		s.Zygote.LandlockABI = 0
	}
	if s.Zygote.LandlockABI < landlockScopes {
		s.Zygote.Namespaces = unix.CLONE_NEWNET
	}
	return s
}

// supervise starts the process from a thread that lives as long as it does: a parent-death signal belongs to the thread.
func (z *zygote) supervise() error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := z.cmd.Start()
		started <- err
		if err == nil {
			_ = z.cmd.Wait()
			close(z.dead)
		}
	}()
	if err := <-started; err != nil {
		return infrastructure("user namespaces: %w; %s", err, namespaceFix())
	}
	return nil
}

func (z *zygote) awaitReady(o Options, kind profile) error {
	if err := z.control.SetDeadline(time.Now().Add(startDeadline)); err != nil {
		return infrastructure("control socket: %w", err)
	}
	buf := make([]byte, 4096)
	n, err := z.control.Read(buf)
	text := string(buf[:n])
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return infrastructure("waiting for the zygote to preload %v for %v: %w", kind.preload, startDeadline, err)
	case text == "R":
		return nil
	case strings.HasPrefix(text, "Epreload "):
		module, _, _ := strings.Cut(strings.TrimPrefix(text, "Epreload "), ":")
		return fmt.Errorf("sandbox: preload module %q is not importable by %s: install the Debian package %s (%s)",
			module, o.Python, debianPackage(module), text[1:])
	case strings.HasPrefix(text, "E"):
		return infrastructure("zygote: %s", text[1:])
	}
	return infrastructure("zygote ended before it was ready: run %s -c pass to see whether the interpreter works", o.Python)
}

func (z *zygote) alive() bool {
	select {
	case <-z.dead:
		return false
	default:
		return true
	}
}

// queue is where to wait for the zygote's turn, nil for no zygote.
func (z *zygote) queue() chan<- struct{} {
	if z == nil {
		return nil
	}
	return z.turn
}

// usable reports whether the zygote lives and answers.
func (z *zygote) usable() bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.alive() && !z.broken
}

// stop kills the zygote, and with it every call forked from it, and waits until it is reaped.
func (z *zygote) stop() {
	_ = z.cmd.Process.Kill()
	<-z.dead
	z.mu.Lock()
	defer z.mu.Unlock()
	z.control.Close()
}

// landlockScopes is the version that keeps abstract sockets apart. Before it every call needs a network namespace of its own,
// whose end costs the kernel a serial worker; otherwise the calls of a zygote share an empty one.
const landlockScopes = 6

// landlockABI is the kernel's version of Landlock, 0 where it is off.
func landlockABI() int {
	const version = 1
	r, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, version)
	if e != 0 {
		return 0
	}
	return int(r)
}
