package recipe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/restar-rl/restar/workers/rl"
)

// starAlgorithm is the algorithm whose stages carry Star.
const starAlgorithm = "star"

// What an iteration of STaR is judged by.
const (
	ScoreTrain   = "train"    // share of correct samples on the round's problems: STaR's own figure, for which nothing more is sampled
	ScoreHeldOut = "held-out" // avg@k of an evaluation on held-out problems
)

// AnswerMark is where a hint has the problem's answer.
const AnswerMark = "{answer}"

// Star makes a stage self-taught reasoning (STaR, Zelikman et al. 2022, Alg 1): the policy's correct samples fine-tune the
// stage's first policy anew, the result samples again, and so on until its score stands still. A key left out has its default.
type Star struct {
	Iterations int     `yaml:"iterations" json:"iterations"`   // at most; before that the plateau ends the stage
	FirstSteps int     `yaml:"first_steps" json:"first_steps"` // optimizer steps of the first iteration; 40 (§4.1)
	Growth     float64 `yaml:"growth" json:"growth"`           // times as many in each that follows; 1.2 (§4.1)
	Batch      int     `yaml:"batch" json:"batch"`             // solutions a step
	Window     int     `yaml:"window" json:"window"`           // iterations that must bring something; 1
	Tolerance  float64 `yaml:"tolerance" json:"tolerance"`     // more than so much, of a score from 0 to 1
	Score      string  `yaml:"score" json:"score"`             // train or held-out; train
	// Rationalize samples the problems without a correct sample again with Hint behind them, which is taken away for training (§3.3).
	Rationalize bool   `yaml:"rationalize" json:"rationalize,omitempty"`
	Hint        string `yaml:"hint" json:"hint,omitempty"`
}

// complete sets what was left out.
func (s *Star) complete() {
	if s.FirstSteps == 0 {
		s.FirstSteps = rl.STaRFirstSteps
	}
	if s.Growth == 0 {
		s.Growth = rl.STaRGrowth
	}
	if s.Window == 0 {
		s.Window = 1
	}
	if s.Score == "" {
		s.Score = ScoreTrain
	}
	if s.Rationalize && s.Hint == "" {
		s.Hint = " The answer is " + AnswerMark + "."
	}
}

// maxIterations keeps the names of iterations in order: they are padded to 3 digits.
const maxIterations = 999

// Iteration is the name under which the store keeps an iteration of the stage, from 1; 0 is the policy that it begins with. No
// stage of a recipe has such a name.
func (s Stage) Iteration(i int) string { return fmt.Sprintf("%s.%03d", s.Name, i) }

// Kept are the names under which the store keeps the stage's steps: its own, or those of its iterations.
func (s Stage) Kept() []string {
	if s.Star == nil {
		return []string{s.Name}
	}
	var out []string
	for i := range s.Star.Iterations {
		out = append(out, s.Iteration(i+1))
	}
	return out
}

// StageName is the stage that a name in the store belongs to.
func StageName(kept string) string {
	name, _, _ := strings.Cut(kept, ".")
	return name
}

// MostSteps is the number of optimizer steps that the stage has if nothing ends it early.
func (s Stage) MostSteps() int {
	if s.Star == nil {
		return s.Steps
	}
	n, err := rl.STaRTotal(s.Star.Iterations, s.Star.FirstSteps, s.Star.Growth)
	if err != nil {
		return 0
	}
	return n
}

// check reports what is wrong with the stage's own keys of STaR, and which of the others say something that STaR decides.
func (s *Star) check(c *checks, at string, of Stage, e Eval) {
	c.within(at+"star.iterations", s.Iterations, maxIterations)
	c.within(at+"star.first_steps", s.FirstSteps, maxSteps)
	c.that(finite(s.Growth) && s.Growth >= 1 && s.Growth <= 10, at+"star.growth", s.Growth, "1 to 10")
	if n, err := rl.STaRTotal(s.Iterations, s.FirstSteps, s.Growth); err != nil || n > maxSteps {
		*c = append(*c, fmt.Errorf("%sstar asks for more than %d steps in %d iterations; lower iterations, first_steps or growth", at, maxSteps, s.Iterations))
	}
	c.within(at+"star.batch", s.Batch, 1<<16)
	c.within(at+"star.window", s.Window, maxIterations)
	c.that(finite(s.Tolerance) && s.Tolerance >= 0 && s.Tolerance < 1, at+"star.tolerance", s.Tolerance, "0 to below 1: scores are shares of 1")
	c.that(slices.Contains([]string{ScoreTrain, ScoreHeldOut}, s.Score), at+"star.score", s.Score, ScoreTrain+" or "+ScoreHeldOut)
	c.that(s.Rationalize == (s.Hint != ""), at+"star.hint", fmt.Sprintf("%q", s.Hint), "a text with rationalize: true, none without")
	c.that(s.Hint == "" || strings.Contains(s.Hint, AnswerMark) && len(s.Hint) <= maxText, at+"star.hint", fmt.Sprintf("%q", s.Hint),
		fmt.Sprintf("a text with the mark %s, at most %d bytes", AnswerMark, maxText))
	c.that(of.Steps == 0, at+"steps", of.Steps, "nothing with star, whose iterations have star.first_steps and grow")
	c.that(of.Keep == 0, at+"keep", of.Keep, "nothing with star: rl.correct_per_problem says how many samples of a problem train")
	c.that(of.Prompts >= 0 && of.Prompts <= 1<<16, at+"prompts", of.Prompts, "0 (every problem) to 65536 an iteration")
	c.that(of.Samples >= 1 && of.Samples < 1<<16, at+"samples", of.Samples, "1 to 65535")
	c.that(!of.ResetOptimizer, at+"reset_optimizer", of.ResetOptimizer, "nothing with star: every iteration has a fresh optimizer")
	c.that(of.MaxAllCorrect == 0, at+"max_all_correct", of.MaxAllCorrect, "nothing with star, which ends at its plateau")
	c.that(of.Filter == nil, at+"filter", "set", "nothing with star, which learns from problems that it solves")
	c.that(e.EverySteps == 0, "eval.every_steps", e.EverySteps, "0 with star: a policy in the midst of an iteration is not published; star.score may be held-out")
}
