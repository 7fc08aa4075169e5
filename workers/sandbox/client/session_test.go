package client

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/sandbox/service"
)

func TestARemoteSessionKeepsItsState(t *testing.T) {
	p, err := sandbox.Start(deadline(t), sandbox.Options{Tier: tier(), Zygotes: 1, Warm: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	var lose atomic.Bool
	url := serve(t, p, service.Options{Sessions: p, Tier: p.Status().Tier}, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && lose.CompareAndSwap(true, false) {
				h.ServeHTTP(&silent{}, r) // the cell completes
				panic(http.ErrAbortHandler)
			}
			h.ServeHTTP(w, r)
		})
	})
	c := dial(t, Options{Endpoints: []string{url}, Tier: p.Status().Tier})
	for k := range 2 {
		s, err := c.Open(deadline(t), sandbox.SessionOptions{ID: fmt.Sprintf("task %d/turn 0", k), Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		cell := func(code, want string) {
			t.Helper()
			if r, err := s.Run(deadline(t), sandbox.Call{ID: "cell", Code: code}); err != nil || r.Stdout != want {
				t.Errorf("%s gave %+v, %v, expected %q", code, r, err, want)
			}
		}
		cell(fmt.Sprintf("x = %d", k), "")
		lose.Store(true)
		cell("x += 10\nx", fmt.Sprintf("%d\n", 10+k)) // and its lost answer does not run it twice
		cell("x", fmt.Sprintf("%d\n", 10+k))
		if k == 0 {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		} else if r, err := s.Run(deadline(t), sandbox.Call{Code: "import os\nos._exit(1)"}); err != nil || !r.SessionEnded {
			t.Errorf("a cell that ends its process: %+v, %v", r, err)
		}
		if _, err := s.Run(deadline(t), sandbox.Call{Code: "x"}); !errors.Is(err, sandbox.ErrSessionEnded) {
			t.Errorf("after its end: %v", err)
		}
	}
	if n := p.Status().Sessions; n != 0 {
		t.Errorf("%d sessions are open on the node", n)
	}
}

func TestARemoteSessionThatWasIdleHasEnded(t *testing.T) {
	p, err := sandbox.Start(deadline(t), sandbox.Options{Tier: tier(), Zygotes: 1, Warm: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	c := dial(t, Options{Endpoints: []string{serve(t, p, service.Options{Sessions: p, Tier: p.Status().Tier}, nil)}, Tier: p.Status().Tier})
	s, err := c.Open(deadline(t), sandbox.SessionOptions{ID: "x", Idle: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for p.Status().Sessions > 0 {
		time.Sleep(time.Millisecond)
	}
	for range 2 {
		_, err = s.Run(deadline(t), sandbox.Call{Code: "x"})
		if !errors.Is(err, sandbox.ErrSessionEnded) || errors.Is(err, sandbox.ErrInfrastructure) || !strings.Contains(err.Error(), "idle") {
			t.Errorf("got %v, expected the session's end as a pool tells it", err)
		}
	}
}

// silent is a response that nobody gets.
type silent struct{ header http.Header }

func (s *silent) Header() http.Header {
	if s.header == nil {
		s.header = http.Header{}
	}
	return s.header
}
func (s *silent) WriteHeader(int)             {}
func (s *silent) Write(b []byte) (int, error) { return len(b), nil }

func TestASessionDiesWithItsNodeAsInfrastructure(t *testing.T) {
	n := launch(t, "127.0.0.1:0")
	c := dial(t, Options{Endpoints: []string{n.url}, Tier: sandbox.TierB})
	s, err := c.Open(deadline(t), sandbox.SessionOptions{ID: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(deadline(t), sandbox.Call{Code: "x = 1"}); err != nil {
		t.Fatal(err)
	}
	kill(n.cmd.Process.Pid)
	_ = n.cmd.Wait()
	if _, err := s.Run(deadline(t), sandbox.Call{Code: "x"}); !errors.Is(err, sandbox.ErrInfrastructure) {
		t.Errorf("got %v, expected an infrastructure error", err)
	}
	if _, err := s.Run(deadline(t), sandbox.Call{Code: "x"}); !errors.Is(err, sandbox.ErrSessionEnded) {
		t.Errorf("and then %v, expected the session's end", err)
	}
}
