package activities

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/restar-rl/restar/workers/store"
)

// errFault is a store that does not answer.
var errFault = errors.New("the store is gone")

// shaky fails the at-th change of a store, before or after it is made.
type shaky struct {
	store.Store
	at   int
	late bool

	mu  sync.Mutex
	n   int
	key string // of the change that failed
}

func (s *shaky) due(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n++; s.n == s.at {
		s.key = key
	}
	return s.n == s.at
}

func (s *shaky) Put(ctx context.Context, key string, body []byte, opt store.PutOptions) (store.ETag, error) {
	due := s.due(key)
	if due && !s.late {
		return "", fmt.Errorf("put %s: %w", key, errFault)
	}
	etag, err := s.Store.Put(ctx, key, body, opt)
	if due && err == nil {
		return "", fmt.Errorf("put %s, acknowledged late: %w", key, errFault)
	}
	return etag, err
}

func (s *shaky) Delete(ctx context.Context, key string) error {
	due := s.due(key)
	if due && !s.late {
		return fmt.Errorf("delete %s: %w", key, errFault)
	}
	err := s.Store.Delete(ctx, key)
	if due && err == nil {
		return fmt.Errorf("delete %s, acknowledged late: %w", key, errFault)
	}
	return err
}

// everyFault runs script on a store whose first, second, ... change fails, until none is left to fail. A step that fails is
// tried again, by the same process or by a new one. The end must be want.
func everyFault(t *testing.T, start map[string][]byte, want map[string]string, script []func(*bench) error) {
	t.Helper()
	for mode := range 4 {
		late, fresh := mode&1 == 1, mode&2 == 2
		for at := 1; ; at++ {
			st := store.NewMemory()
			for key, body := range start {
				put(t, st, key, body)
			}
			s := &shaky{Store: st, at: at, late: late}
			b := process(t, s)
			for i, step := range script {
				err := step(b)
				if err != nil && fresh {
					b = process(t, s)
				}
				if err != nil {
					err = step(b)
				}
				if err != nil {
					t.Fatalf("change %d (%s) failed, late %v: step %d of the script fails again: %v", at, s.key, late, i, err)
				}
			}
			what := fmt.Sprintf("change %d (%s) failed, late %v, new process %v", at, s.key, late, fresh)
			wantSame(t, what, canonical(t, st), want)
			if c, _ := audited(t, st); c.StepsAppliedTwice != 0 || c.TrajectoriesRegenerated != 0 {
				t.Fatalf("%s: audit counts %+v", what, c)
			}
			if s.key == "" {
				break
			}
		}
	}
}
