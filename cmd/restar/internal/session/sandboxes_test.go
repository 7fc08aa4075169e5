package session

import (
	"strings"
	"testing"

	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/spf13/pflag"
)

func TestAWorkerRefusesWhatIsNoSandboxService(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	var o WorkerOptions
	fs := pflag.NewFlagSet("worker", pflag.ContinueOnError)
	o.Register(fs)
	args := []string{"--temporal=nowhere.invalid:7233", "--s3=http://nowhere.invalid", "--bucket=b", "--roles=rollout", "--sandbox=http://sandbox-0:8088,sandbox-1:8088"}
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	err := Work(t.Context(), o)
	if fault.Code(err) != fault.User || !strings.Contains(err.Error(), `"sandbox-1:8088"`) || !strings.Contains(err.Error(), "base URL") {
		t.Errorf("got %v, expected the mistaken URL and what is expected", err)
	}
}
