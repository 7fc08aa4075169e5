package training

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workflows"
)

func TestFiguresAreMeansOverTheStepsOfAllStages(t *testing.T) {
	s := store.NewMemory()
	put := func(stage string, iteration int, x activities.Timings) {
		body, err := json.Marshal(x)
		if err == nil {
			_, err = s.Put(t.Context(), store.TimingsKey("r", stage, iteration, 0), body, store.PutOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put("a", 0, activities.Timings{Rollout: 10, Generate: 25, Tools: 10, Verify: 5, ToolCPU: 3, Train: 2})
	put("b", 3, activities.Timings{Rollout: 20, Generate: 0, Tools: 5, Train: 4})
	r := recipe.Recipe{Stages: []recipe.Stage{{Name: "a"}, {Name: "b"}}}
	out := workflows.RunResult{Evals: []activities.EvalResult{{Avg: 0.25, ToolErrorShare: 0.5}, {Avg: 0.3}, {Avg: 0.75, ToolErrorShare: 0.125}}}
	f, err := figures(t.Context(), s, "r", r, out, 3*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string][2]float64{
		"steps": {float64(f.Steps), 2}, "rollout": {f.RolloutSeconds, 15}, "sandbox": {f.SandboxSeconds, (2.5 + 20) / 2}, "train": {f.TrainSeconds, 3},
		"verify": {f.VerifySeconds, 1.25 / 2}, "tool CPU": {f.ToolCPUSeconds, 1.5},
		"sft": {f.PassSFT, 0.25}, "final": {f.PassFinal, 0.75}, "gain": {f.Gain, 50}, "errors": {f.ToolErrorFinal, 0.125}, "minutes": {f.Minutes, 3},
	} {
		if math.Abs(c[0]-c[1]) > 1e-12 {
			t.Errorf("%s is %v, want %v", name, c[0], c[1])
		}
	}
}
