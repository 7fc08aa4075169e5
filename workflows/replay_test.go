package workflows

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Histories of real runs, as their server kept them. A run under way must go on under new code, so these must replay for
// ever: a change of a workflow that breaks one needs workflow.GetVersion, not a new recording.
func TestRecordedHistoriesReplay(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded histories in testdata (%v)", err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			r := worker.NewWorkflowReplayer()
			Register(r)
			if err := r.ReplayWorkflowHistoryFromJSONFile(nil, path); err != nil {
				t.Error(err)
			}
		})
	}
}

// A replay that cannot fail proves nothing.
func TestAChangedWorkflowFailsItsReplay(t *testing.T) {
	r := worker.NewWorkflowReplayer()
	r.RegisterWorkflowWithOptions(FineTune, workflow.RegisterOptions{Name: "Reinforce"})
	if err := r.ReplayWorkflowHistoryFromJSONFile(nil, "testdata/reinforce.json"); err == nil {
		t.Error("another workflow replays the history of Reinforce")
	}
}

// TestRecordHistories records the histories of a run at RESTAR_RECORD=address,run. It is no test: it makes the fixtures.
func TestRecordHistories(t *testing.T) {
	address, run, ok := strings.Cut(os.Getenv("RESTAR_RECORD"), ",")
	if !ok {
		t.Skip("set RESTAR_RECORD=address,run to record histories, or address,run,stage those of a stage of STaR")
	}
	run, star, isStar := strings.Cut(run, ",")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := client.Dial(client.Options{HostPort: address, Namespace: "restar"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ids := map[string]string{
		"training-run": RunID(run), "curate": CurateID(run), "fine-tune": FineTuneID(run), "reinforce": ReinforceID(run, "stage1"),
		"reinforce-filter": ReinforceID(run, "stage2"), "rollout": RolloutID(run, "stage1", "000000"), "evaluate": EvaluateID(run, "stage1"),
	}
	if isStar {
		ids = map[string]string{"training-run-star": RunID(run), "star": ReinforceID(run, star)}
	}
	for name, id := range ids {
		record(ctx, t, c, name, id)
	}
}

func record(ctx context.Context, t *testing.T, c client.Client, name, id string) {
	t.Helper()
	h := &historypb.History{}
	events := c.GetWorkflowHistory(ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		h.Events = append(h.Events, e)
	}
	body, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("testdata", name+".json"), body, 0o644); err != nil {
		t.Fatal(err)
	}
}
