package session

import (
	"strings"
	"testing"

	"github.com/restar-rl/restar/cmd/restar/internal/fault"
)

func TestAWorkerRefusesWhatIsNoSandboxService(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	o := WorkerOptions{Options: Options{Temporal: "nowhere.invalid:7233", S3: "http://nowhere.invalid", Bucket: "b"}, Roles: []string{"rollout"}, Sandboxes: []string{"http://sandbox-0:8088", "sandbox-1:8088"}}
	err := Work(t.Context(), o)
	if fault.Code(err) != fault.User || !strings.Contains(err.Error(), `"sandbox-1:8088"`) || !strings.Contains(err.Error(), "base URL") {
		t.Errorf("got %v, expected the mistaken URL and what is expected", err)
	}
}
