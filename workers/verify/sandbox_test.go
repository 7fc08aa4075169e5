package verify

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/restar-rl/restar/workers/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.MaybeChild()
	code := m.Run()
	if shared.pool != nil {
		shared.pool.Close()
	}
	os.Exit(code)
}

// shared is one pool for the tests: starting one imports sympy.
var shared struct {
	once sync.Once
	pool *sandbox.Pool
	err  error
}

// testDeadline bounds every wait of a test; nothing is asserted about time.
const testDeadline = 3 * time.Minute

func deadline(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testDeadline)
	t.Cleanup(cancel)
	return ctx
}

// pool returns the shared pool, or skips where this machine has no namespaces.
func pool(t testing.TB) *sandbox.Pool {
	t.Helper()
	shared.once.Do(func() {
		tier := sandbox.TierB
		if os.Geteuid() == 0 {
			tier = sandbox.TierA
		}
		shared.pool, shared.err = sandbox.Start(deadline(t), SandboxOptions(tier))
	})
	if shared.err != nil && os.Geteuid() == 0 && !errors.Is(shared.err, sandbox.ErrLayer) {
		t.Fatalf("no sandbox with sympy starts as root: %v", shared.err)
	}
	if shared.err != nil {
		t.Skipf("the symbolic path is not tested: no sandbox with sympy starts here: %v", shared.err)
	}
	return shared.pool
}
