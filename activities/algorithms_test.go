package activities

import (
	"fmt"
	"strings"
	"testing"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/train"
)

// parameters are values of the rl section, some of which contradict each other or the toy's stages.
var parameters = []struct {
	key    string
	values []string
}{
	{"selection", []string{"paper", "code", "all"}}, {"penalty", []string{"paper", "code"}}, {"min_positive", []string{"0", "1", "2", "5"}},
	{"min_negative", []string{"0", "3", "4"}}, {"equal_groups", []string{"reject", "keep", "refill"}}, {"max_rounds", []string{"0", "1", "2"}},
	{"reward", []string{"binary", "signed"}}, {"overlong", []string{"keep", "soft", "filter"}}, {"overlong_ramp_tokens", []string{"0", "1", "400", "401"}},
	{"supervision", []string{"outcome", "process"}}, {"baseline", []string{"mean-std", "mean"}}, {"loss_norm", []string{"token-mean", "sequence-mean", "constant"}},
	{"loss_constant_tokens", []string{"0", "7"}}, {"ratio", []string{"token", "sequence", "weight"}}, {"clip_low", []string{"0", "0.2", "1"}},
	{"dual_clip", []string{"0", "3"}}, {"updates_per_round", []string{"1", "2", "3", "4"}}, {"kl_weight", []string{"0", "0.1"}},
	{"kl_estimator", []string{"k1", "k2", "k3"}}, {"high_entropy_share", []string{"1", "0.5", "0.1"}}, {"correct_per_problem", []string{"0", "2"}},
}

// draw makes the nth combination: an algorithm and about two changes to it.
func draw(n int) (section string, pick func(count int) int) {
	key, at := philox.NewKey(23), philox.Address{Purpose: philox.Shuffle, Ordinal: n}
	pick = func(count int) int {
		at.Token++
		return key.IntN(at, count)
	}
	names := []string{"grpo", "grpo-roc", "dapo", "deepseekmath", "dr-grpo", "gspo", "cispo", "rft"}
	section = "algorithm: " + names[pick(len(names))]
	for _, p := range parameters {
		if pick(9) == 0 {
			section += ", " + p.key + ": " + p.values[pick(len(p.values))]
		}
	}
	return section, pick
}

func TestEveryAlgorithmThatARecipeIsAllowedChoosesAndTrains(t *testing.T) {
	st, _ := toyRun(t)
	b := process(t, st)
	tok, err := b.sel.Runs.Tokenizer(t.Context(), benchRun)
	must(t, err)
	allowed, refusals, steps := 0, 0, 0
	for n := range 1500 {
		section, pick := draw(n)
		text := strings.Replace(toyText, "rl: {", "rl: {"+section+", ", 1)
		if pick(2) == 0 {
			text = strings.NewReplacer("keep: 8", "keep: 16", "samples: 4, keep: 2", "samples: 4, keep: 4").Replace(text)
		}
		rec, err := recipe.Parse([]byte(text))
		if err != nil {
			refusals++
			continue
		}
		allowed++
		alg, err := rec.RL.Parameters()
		must(t, err)
		alg.MaxRounds = min(alg.MaxRounds, 1)
		c := newChooser(rec, alg, selectOf(3))
		c.tok = tok
		for i := range 3 {
			c.read(30+i, drawn(30+i, pick))
		}
		if again, err := c.choose(); err != nil || again {
			t.Errorf("%s: choosing: another round %v, %v", section, again, err)
			continue
		}
		if allowed%5 != 0 {
			continue
		}
		for u, part := range c.parts() {
			if err := stepOn(t, b, rec, part.Batch); err != nil {
				t.Errorf("%s: update %d: %v", section, u, err)
			}
			steps++
		}
	}
	if allowed < 200 || refusals < 200 || steps < 40 {
		t.Errorf("%d recipes were allowed, %d refused, %d steps taken; that is too few of a kind", allowed, refusals, steps)
	}
}

// drawn is a group of which each sample is right or wrong, long or not, and tidy or not, by chance.
func drawn(ordinal int, pick func(int) int) []agent.Trajectory {
	all := make([]agent.Trajectory, 16)
	for s := range all {
		e := []ended{right(), wrong(), wrong()}[pick(3)]
		e.calls, e.errors = 2, pick(3)
		e.truncated = e.outcome == agent.Wrong && pick(6) == 0
		all[s] = e.trajectory(ordinal, s)
		all[s].Entropy[2], all[s].Entropy[3] = float32(pick(100)), float32(pick(100))
	}
	return all
}

// stepOn takes a step on a chosen batch; one of nothing asks for none.
func stepOn(t *testing.T, b *bench, rec Recipe, batch train.Batch) error {
	t.Helper()
	if len(batch.Sequences) == 0 {
		return nil
	}
	alg, err := rec.RL.Parameters()
	must(t, err)
	for i := range batch.Sequences {
		if alg.KLBeta > 0 {
			batch.Sequences[i].RefLogProbs = batch.Sequences[i].LogProbs
		}
	}
	m, err := b.tr.skeleton(t.Context(), benchRun)
	must(t, err)
	metrics, err := train.Step(t.Context(), train.NewState(m), batch, 1, objective(alg), optimizer(rec, "one"))
	if err == nil && metrics.Skipped != "" {
		err = fmt.Errorf("skipped: %s", metrics.Skipped)
	}
	return err
}
