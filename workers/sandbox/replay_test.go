package sandbox

import (
	"strings"
	"testing"
)

// world prints whatever could differ between two runs of the same call.
const world = `
import datetime, os, random, secrets, sys, tempfile, time, uuid
print(random.random(), random.Random().random(), random.SystemRandom().random(), secrets.token_hex(4), uuid.uuid4(), os.urandom(3))
random.seed()
print(random.random(), hash('a'), {'a', 'b', 'c', 'd'}, id(object()), object())
print(time.time(), time.time_ns(), time.ctime(), time.strftime('%H:%M:%S'), time.localtime().tm_year)
print(datetime.datetime.now(), datetime.datetime.utcnow(), datetime.date.today(), datetime.datetime.today(), datetime.datetime.now(datetime.timezone.utc))
print(os.getpid(), os.getppid(), os.getuid(), os.uname().nodename, os.getcwd(), sys.argv, sorted(os.environ.items()))
print(tempfile.mkdtemp(), [id(x) for x in ([], {}, 'x' * 5)])
start = time.time()
while time.time() - start < 0.1: time.sleep(0.01)
print(time.time() - start)
`

func TestAReplayGivesTheSameText(t *testing.T) {
	first := startPool(t, Options{Preload: Lite(), Zygotes: 2})
	want := run(t, first, world)
	if want.Status != Success {
		t.Fatalf("got %+v", want)
	}
	for i := range 6 {
		if r := run(t, first, world); r.Stdout != want.Stdout {
			t.Errorf("run %d differs:\n%s\n%s", i, r.Stdout, want.Stdout)
		}
	}
	if r := run(t, startPool(t, Options{Preload: Lite(), Zygotes: 1}), world); r.Stdout != want.Stdout {
		t.Errorf("another pool differs:\n%s\n%s", r.Stdout, want.Stdout)
	}
	r := runCall(t, first, Call{Code: world, Seed: 2})
	if a, b := strings.Fields(r.Stdout)[0], strings.Fields(want.Stdout)[0]; a == b {
		t.Errorf("seeds 1 and 2 both give %s", a)
	}
}

func TestNumpyFollowsTheSeedPreloadedOrNot(t *testing.T) {
	needModule(t, "numpy")
	const code = "import numpy as np\nprint(np.random.rand(2), np.random.default_rng().random())"
	for _, preload := range [][]string{nil, {"numpy"}} {
		p := startPool(t, Options{Preload: preload, Zygotes: 1})
		a, b := run(t, p, code), run(t, p, code)
		if a.Status != Success || a.Stdout != b.Stdout {
			t.Errorf("preload %v: %+v and %+v", preload, a, b)
		}
		if c := runCall(t, p, Call{Code: code, Seed: 2}); c.Stdout == a.Stdout {
			t.Errorf("preload %v: seeds 1 and 2 both give %s", preload, a.Stdout)
		}
	}
}

func TestTheClockKeepsItsTypes(t *testing.T) {
	p := startPool(t, Options{Zygotes: 1})
	r := run(t, p, `
import copy, datetime, pickle, time
n = datetime.datetime.now()
assert type(n) is datetime.datetime and repr(n).startswith('datetime.datetime(2025, 1, 1, 0, 0'), repr(n)
assert pickle.loads(pickle.dumps(n)) == n == copy.deepcopy(n)
class D(datetime.datetime): pass
assert type(D.now()) is D
assert time.gmtime(0).tm_year == 1970 and time.strftime('%Y', time.gmtime(0)) == '1970'
assert time.clock_gettime(time.CLOCK_REALTIME) < 1735689601 and time.monotonic() <= time.monotonic()
a = time.perf_counter(); time.sleep(0.01); assert time.perf_counter() - a >= 0.01
'fine'`)
	if r.Stdout != "'fine'\n" {
		t.Errorf("got %+v", r)
	}
}
