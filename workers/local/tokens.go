package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
)

// keptAfterEnd is how long a token stays listed after its activity returned:
// the answer may still be on its way to the server when the worker dies.
// Failing an activity that did complete is refused by the server, harmlessly.
const keptAfterEnd = 10 * time.Second

// OpenActivity is one attempt of an activity that a worker has begun. Token is
// what the server knows the attempt by; a later attempt has another.
type OpenActivity struct {
	Token    []byte    `json:"token"`
	Type     string    `json:"type"`
	Workflow string    `json:"workflow"`
	Activity string    `json:"activity"`
	Attempt  int32     `json:"attempt"`
	Ended    time.Time `json:"ended,omitzero"` // when it returned
}

// TaskTokens is a worker interceptor that keeps a file of the worker's open
// activities, so that whoever sees the worker die can fail them at once
// instead of waiting for their heartbeat timeouts.
type TaskTokens struct {
	interceptor.WorkerInterceptorBase
	path string

	mu   sync.Mutex
	open []OpenActivity
}

// TokensFile is where a worker of a folder keeps its open activities.
func TokensFile(dir, worker string) string {
	return filepath.Join(dir, "tokens", worker+tokensExt)
}

const tokensExt = ".json"

// NewTaskTokens begins an empty file at path.
func NewTaskTokens(path string) (*TaskTokens, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, userf("folder of %s cannot be made (%v); fix its permissions", path, err)
	}
	t := &TaskTokens{path: path}
	return t, t.write()
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (t *TaskTokens) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	a := &tokenActivity{tokens: t}
	a.Next = next
	return a
}

type tokenActivity struct {
	interceptor.ActivityInboundInterceptorBase
	tokens *TaskTokens
}

// ExecuteActivity lists the activity while it runs.
func (a *tokenActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	info := activity.GetInfo(ctx)
	if info.IsLocalActivity { // retried with its workflow task
		return a.Next.ExecuteActivity(ctx, in)
	}
	if err := a.tokens.begin(info); err != nil {
		return nil, fmt.Errorf("list activity %s as open: %w", info.ActivityType.Name, err)
	}
	defer a.tokens.end(info.TaskToken)
	return a.Next.ExecuteActivity(ctx, in)
}

func (t *TaskTokens) begin(info activity.Info) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open = append(t.open, OpenActivity{
		Token: info.TaskToken, Type: info.ActivityType.Name, Workflow: info.WorkflowExecution.ID,
		Activity: info.ActivityID, Attempt: info.Attempt,
	})
	return t.write()
}

func (t *TaskTokens) end(token []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for i := range t.open {
		if t.open[i].Ended.IsZero() && slices.Equal(t.open[i].Token, token) {
			t.open[i].Ended = now
		}
	}
	t.open = slices.DeleteFunc(t.open, func(o OpenActivity) bool {
		return !o.Ended.IsZero() && now.Sub(o.Ended) > keptAfterEnd
	})
	// A list that is too long costs a refused call each, and the next begin
	// reports what keeps it from being written.
	_ = t.write()
}

// write replaces the file; the caller holds t.mu.
func (t *TaskTokens) write() error {
	body, err := json.Marshal(t.open)
	if err != nil {
		return fmt.Errorf("encode %s: %w", t.path, err)
	}
	return writeAtomic(t.path, append(body, '\n'))
}

// TakeTokens returns what a dead worker left in its file, and removes the
// file, so that the worker's next life begins its own. No file is no activity.
func TakeTokens(path string) ([]OpenActivity, error) {
	body, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the open activities of a dead worker: %w", err)
	}
	var open []OpenActivity
	if err := json.Unmarshal(body, &open); err != nil {
		return nil, fmt.Errorf("open activities of a dead worker, %s: %w", path, err)
	}
	return open, os.Remove(path)
}

// TakeAllTokens is TakeTokens of every worker of a folder: for a supervisor
// that starts after the whole tree was killed.
func TakeAllTokens(dir string) ([]OpenActivity, error) {
	files, err := os.ReadDir(filepath.Join(dir, "tokens"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the open activities of dead workers: %w", err)
	}
	var all []OpenActivity
	for _, f := range files {
		if worker, ok := strings.CutSuffix(f.Name(), tokensExt); ok {
			open, err := TakeTokens(TokensFile(dir, worker))
			if err != nil {
				return all, err
			}
			all = append(all, open...)
		}
	}
	return all, nil
}
