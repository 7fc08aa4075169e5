package training

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workflows"
)

func TestAModelsProtocolIsReadStrictly(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, activities.AgentFile)
	for text, want := range map[string]string{
		`{"tool": "run_python", "calls_per_turn": 2}`: "",
		`{"tool": "run_python", "calls_per_trun": 2}`: "calls_per_trun",
		`{"tool": "run_python"} {}`:                   "text after the JSON object",
		`{"tool": `:                                   "unexpected EOF",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var a recipe.Agent
		err := Evaluation{Model: dir}.protocol(&a)
		if want == "" {
			if err != nil || a.Tool != "run_python" || a.CallsPerTurn != 2 {
				t.Errorf("%s: read as %+v (%v)", text, a, err)
			}
			continue
		}
		if fault.Code(err) != fault.User || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v, want one that names %s and %q", text, err, path, want)
		}
	}
}

func TestARunThatGainsTooLittleFailsWhereAGainIsDemanded(t *testing.T) {
	out := workflows.RunResult{Evals: []activities.EvalResult{{Avg: 0.25}, {Avg: 0.5}}}
	for demand, ok := range map[float64]bool{0: true, 20: true, 25: true, 30: false} {
		err := gained(Options{RequireGain: demand}, out)
		if (err == nil) != ok || !ok && !strings.Contains(err.Error(), "gained 25.0 points of held-out pass@1, want at least 30") {
			t.Errorf("gain 25 with %v demanded: error %v", demand, err)
		}
	}
	if gained(Options{RequireGain: 20}, workflows.RunResult{}) == nil {
		t.Error("a run without evaluations has gained")
	}
}
