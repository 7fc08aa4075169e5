package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Layer is one thing that has to hold inside a slot, as a canary found it there.
type Layer struct {
	Name string
	OK   bool
	Fix  string // what gives the layer; "" when it holds
}

// Report is what a machine gives, for an operator to read.
type Report struct {
	Tier   Tier    // "" when not even tier B holds
	Reason string  // why it is not A
	Layers []Layer // as the canaries found them
	Facts  []Fact  // what the machine says of itself
	Err    error   // why no slot could be tried at all
}

// ErrLayer matches the refusal of a machine, or of a zygote, in which a required layer does not hold.
var ErrLayer = errors.New("isolation has holes")

func (r Report) refusal() error {
	var missing []string
	for _, l := range r.Layers {
		if !l.OK {
			missing = append(missing, l.Name+" ("+l.Fix+")")
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return infrastructure("preflight: %w: %d of %d layers do not hold: %s", ErrLayer, len(missing), len(r.Layers), strings.Join(missing, "; "))
}

// Fixes that several canaries share.
const (
	fixSeccomp    = "the system call filter is not in force: kernel with CONFIG_SECCOMP_FILTER"
	fixLandlock   = "boot with landlock in the lsm= list, kernel 5.13 or later with CONFIG_SECURITY_LANDLOCK"
	fixNamespaces = "sysctl user.max_user_namespaces > 0, kernel.unprivileged_userns_clone = 1; pod: hostUsers: false with SYS_ADMIN"
	fixCgroup     = "writable memory and pids cgroups (containerd cgroup_writable, CRI-O annotation " +
		"io.kubernetes.cri-o.cgroup2-mount-hierarchy-rw, systemd Delegate=yes), or a lower Limits value"
)

// canaries names what each key of canary.py proves, in the order of the report.
var canaries = []struct{ key, name, fix string }{
	{"descriptors", "no stray descriptors", fixNamespaces},
	{"inet", "no internet sockets", fixSeccomp},
	{"vsock", "no vsock", fixSeccomp},
	{"netlink", "no netlink", fixSeccomp},
	{"listener", "no network: a listener of the machine is out of reach", fixNamespaces},
	{"abstract", "no abstract sockets of the machine", fixNamespaces},
	{"host_file", "no files of the machine", fixNamespaces},
	{"read_only", "read-only root", fixNamespaces},
	{"tmp", "bounded /tmp", fixNamespaces},
	{"mount", "no mount", fixSeccomp},
	{"unshare", "no new namespaces", fixSeccomp},
	{"ptrace", "no ptrace", fixSeccomp},
	{"io_uring", "no io_uring", fixSeccomp},
	{"pid", "own pid namespace", fixNamespaces},
	{"uid", "own user namespace", fixNamespaces},
	{"host_pid", "no processes of the machine", fixNamespaces},
	{"memory", "bounded memory", fixCgroup},
	{"no_new_privs", "no_new_privs", fixSeccomp},
	{"seccomp", "system call filter", fixSeccomp},
	{"capabilities", "no capabilities", fixNamespaces},
	{"processes", "bounded processes", fixCgroup},
}

// preflight runs the canaries inside a slot of z.
func (p *Pool) preflight(ctx context.Context, z *zygote) (Report, error) {
	r := Report{Tier: p.tier, Reason: p.reason}
	bait, err := newBait()
	if err != nil {
		return r, err
	}
	defer bait.close()
	limits := canaryLimits(p.opt.Limits)
	sl, err := p.fork(z, limits, oneCall)
	if err != nil {
		return r, err
	}
	joined := sl.seat.group.joined(ctx, func() bool { return sl.awaitGone(0) })
	res, gone, err := execute(ctx, sl, Call{ID: "preflight", Code: bait.code(limits), Limits: limits})
	if gone {
		p.seats.give(sl.seat)
	}
	if err != nil {
		return r, err
	}
	held := map[string]bool{}
	if err := json.Unmarshal([]byte(res.Stdout), &held); err != nil || res.Status != Success {
		return r, infrastructure("preflight: the canaries ended with %s and said %q on stderr", res.Status, res.Stderr)
	}
	for _, c := range canaries {
		l := Layer{Name: c.name, OK: held[c.key]}
		if !l.OK {
			l.Fix = c.fix
		}
		r.Layers = append(r.Layers, l)
	}
	r.Layers = append(r.Layers, p.landlockLayer())
	if sl.seat.group != nil {
		r.Layers = append(r.Layers, groupLayer(joined))
	}
	return r, nil
}

// canaryLimits are the pool's, with the time that trying them takes on a busy machine, and no more processes and files than
// it takes to see that there is a limit.
func canaryLimits(l Limits) Limits {
	l.CPU, l.Wall = 10*time.Second, time.Minute
	l.Pids, l.TmpKB = min(l.Pids, defaultLimits.Pids), min(l.TmpKB, defaultLimits.TmpKB)
	return l
}

// landlockLayer is known from the kernel: its restrictions inside overlap with those of the mounts.
func (p *Pool) landlockLayer() Layer {
	if p.landlock() {
		return Layer{Name: "Landlock", OK: true}
	}
	return Layer{Name: "Landlock", Fix: fixLandlock}
}

// groupLayer is seen from outside: inside, each process meets limits of its own first.
func groupLayer(joined bool) Layer {
	l := Layer{Name: "memory and pids cgroups of the whole tree", OK: joined}
	if !joined {
		l.Fix = fixCgroup
	}
	return l
}

// bait is what the canaries must not reach on the machine.
type bait struct {
	tcp, abstract net.Listener
	file          *os.File
}

func newBait() (*bait, error) {
	f, err := os.CreateTemp("", "restar-canary-")
	if err != nil {
		return nil, fmt.Errorf("sandbox: preflight: %w", err)
	}
	b := &bait{file: f}
	b.tcp, err = net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		b.abstract, err = net.Listen("unix", "@restar-canary-"+strconv.Itoa(os.Getpid())+"-"+strconv.FormatInt(time.Now().UnixNano(), 36))
	}
	if err != nil {
		b.close()
		return nil, fmt.Errorf("sandbox: preflight: %w", err)
	}
	return b, nil
}

func (b *bait) code(l Limits) string {
	return strings.NewReplacer(
		"@PORT@", strconv.Itoa(b.tcp.Addr().(*net.TCPAddr).Port), "@ABSTRACT@", b.abstract.Addr().String()[1:], "@FILE@", b.file.Name(),
		"@TMP_KB@", strconv.Itoa(l.TmpKB), "@PID@", strconv.Itoa(os.Getpid()), "@MEMORY_MB@", strconv.Itoa(l.MemoryMB),
		"@PIDS@", strconv.Itoa(l.Pids)).Replace(canarySource)
}

func (b *bait) close() {
	for _, l := range []net.Listener{b.tcp, b.abstract} {
		if l != nil {
			l.Close()
		}
	}
	b.file.Close()
	os.Remove(b.file.Name())
}

// Probe finds out what isolation this machine gives, by starting a small pool and trying its layers.
func Probe(ctx context.Context) Report {
	opt, err := Options{Tier: TierB, Zygotes: 1, Warm: 1, MaxRunning: 1}.resolve()
	if err != nil {
		return Report{Err: err, Facts: facts()}
	}
	p, err := open(opt)
	if err != nil {
		return Report{Err: err, Facts: facts()}
	}
	defer p.Close()
	z, err := startZygote(ctx, p.opt, p.shelves[0].profile, p.filter)
	if err != nil {
		return Report{Reason: p.reason, Err: err, Facts: facts()}
	}
	defer z.stop()
	r, err := p.preflight(ctx, z)
	if r.Err, r.Facts = err, facts(); err != nil || r.refusal() != nil {
		r.Tier = ""
	}
	return r
}
