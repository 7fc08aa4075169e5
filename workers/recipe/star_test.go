package recipe

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// self is the good recipe as one of STaR, with what a recipe may leave out left out.
func self() string {
	return strings.NewReplacer("rl: {", "rl: {algorithm: star, ",
		"steps: 2, prompts: 2, samples: 4, keep: 2,", "samples: 4, star: {iterations: 3, batch: 8},").Replace(good)
}

func TestARecipeOfSTaRIsCompletedFromThePaper(t *testing.T) {
	r, err := Parse([]byte(self()))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := *r.Stages[0].Star, (Star{Iterations: 3, FirstSteps: 40, Growth: 1.2, Batch: 8, Window: 1, Score: "train"}); got != want {
		t.Errorf("STaR is %+v, want %+v", got, want)
	}
	if r.Steps() != 40+48+57 || r.RL.PerProblem != 1 || r.RL.Decay != 0 {
		t.Errorf("%d steps, %d solutions of a problem, weight decay %v; want 145, 1 and 0", r.Steps(), r.RL.PerProblem, r.RL.Decay)
	}
	r, err = Parse([]byte(strings.Replace(self(), "batch: 8", "batch: 8, rationalize: true", 1)))
	if err != nil || r.Stages[0].Star.Hint != " The answer is {answer}." {
		t.Errorf("the hint is %q (%v)", r.Stages[0].Star.Hint, err)
	}
	var back Recipe
	if body, err := json.Marshal(r); err != nil || json.Unmarshal(body, &back) != nil || !reflect.DeepEqual(r, back) {
		t.Errorf("recipe changed over JSON (%v):\n%+v\n%+v", err, r, back)
	}
}

func TestTheExampleOfSTaRIsInOrder(t *testing.T) {
	if _, err := Read("../../deploy/recipes/star.yaml"); err != nil {
		t.Fatal(err)
	}
}

func TestAContradictionToSTaRNamesTheKey(t *testing.T) {
	for name, c := range map[string]struct{ text, from, to, want string }{
		"star elsewhere":     {self(), "algorithm: star, ", "", "stages[0].star is set"},
		"no star":            {good, "rl: {", "rl: {algorithm: star, ", "stages[0].star is not set"},
		"steps":              {self(), "samples: 4,", "samples: 4, steps: 9,", "stages[0].steps"},
		"keep":               {self(), "samples: 4,", "samples: 4, keep: 2,", "stages[0].keep"},
		"reset":              {self(), "samples: 4,", "samples: 4, reset_optimizer: true,", "stages[0].reset_optimizer"},
		"all correct":        {self(), "samples: 4,", "samples: 4, max_all_correct: 0.5,", "stages[0].max_all_correct"},
		"filter":             {self(), "samples: 4,", "samples: 4, filter: {samples: 2, problems: 3},", "stages[0].filter"},
		"selection":          {self(), "rl: {", "rl: {selection: paper, ", "rl.selection"},
		"kl":                 {self(), "rl: {", "rl: {kl_weight: 0.1, ", "rl.kl_weight"},
		"updates":            {self(), "rl: {", "rl: {updates_per_round: 2, ", "rl.updates_per_round"},
		"refill":             {self(), "rl: {", "rl: {equal_groups: refill, max_rounds: 3, ", "rl.equal_groups"},
		"learning rate":      {self(), ", learning_rate: 0.0001", "", "rl.learning_rate"},
		"evals amid":         {self(), "eval: {", "eval: {every_steps: 2, ", "eval.every_steps"},
		"no batch":           {self(), ", batch: 8", "", "stages[0].star.batch"},
		"no iterations":      {self(), "iterations: 3, ", "", "stages[0].star.iterations"},
		"shrinking":          {self(), "batch: 8", "batch: 8, growth: 0.9", "stages[0].star.growth"},
		"beyond all bounds":  {self(), "iterations: 3", "iterations: 900", "asks for more than"},
		"tolerance":          {self(), "batch: 8", "batch: 8, tolerance: 1", "stages[0].star.tolerance"},
		"window":             {self(), "batch: 8", "batch: 8, window: -1", "stages[0].star.window"},
		"score":              {self(), "batch: 8", "batch: 8, score: held_out", "stages[0].star.score"},
		"hint, no use":       {self(), "batch: 8", `batch: 8, hint: "{answer}"`, "stages[0].star.hint"},
		"hint, no answer":    {self(), "batch: 8", "batch: 8, rationalize: true, hint: please", "stages[0].star.hint"},
		"unknown key":        {self(), "batch: 8", "batch: 8, patience: 2", `no key "patience"`},
		"a fraction as step": {self(), "batch: 8", "batch: 8, first_steps: 2.5", "first_steps"},
		"a name with a dot":  {self(), "name: stage1", "name: stage1.001", "stages[0].name"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(c.text, c.from) {
				t.Fatalf("the test's own text lacks %q", c.from)
			}
			_, err := Parse([]byte(strings.Replace(c.text, c.from, c.to, 1)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one that says %s", err, c.want)
			}
		})
	}
}

func TestNamesOfIterationsAreNoNamesOfStages(t *testing.T) {
	r, err := Parse([]byte(self()))
	if err != nil {
		t.Fatal(err)
	}
	kept := r.Stages[0].Kept()
	if want := []string{"stage1.001", "stage1.002", "stage1.003"}; !reflect.DeepEqual(kept, want) {
		t.Errorf("kept as %q, want %q", kept, want)
	}
	for _, name := range kept {
		if ValidName(name) || StageName(name) != "stage1" || StageName("stage1") != "stage1" {
			t.Errorf("%s is a stage's own name: %v, of stage %s", name, ValidName(name), StageName(name))
		}
	}
}
