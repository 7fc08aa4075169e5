package engine

import (
	"time"

	"github.com/restar-rl/restar/cmd/restar-bench/internal/match"
)

// training plays whole optimizer steps: restar against Debian's PyTorch in turns, then the newest PyTorch in both precisions.
func (r *runner) training() error {
	for _, s := range r.chosen() {
		r.begin("training steps of", s)
		if err := r.trainingMatch(s); err != nil {
			return err
		}
		if err := r.newestTraining(s); err != nil {
			return err
		}
		r.figures.Ratio("train_vs_torch_"+s.Name, "train_tokens_per_s_"+s.Name+"_bf16", "torch_train_tokens_per_s_"+s.Name)
		r.figures.Ratio("train_memory_vs_torch", "train_peak_rss_mib_135m_torch", "train_peak_rss_mib_135m_ours")
		r.figures.Ratio("train_fp32_vs_torch_"+s.Name, "train_tokens_per_s_"+s.Name+"_fp32", "torch_train_tokens_per_s_"+s.Name)
	}
	return nil
}

// trainRules give small models many rounds and large ones few.
func trainRules(s Shape) match.Rules {
	rules := match.Rules{Rounds: 12, Budget: 20 * time.Second, Wait: 3 * time.Minute, Slower: 1.3}
	if s.Name == shapes[len(shapes)-1].Name {
		rules.Rounds, rules.Budget = 3, time.Minute
	}
	return rules
}

func (r *runner) trainingMatch(s Shape) error {
	exact, err := r.restar("train", s.in(fp32))
	if err != nil {
		return err
	}
	defer exact.Stop()
	rounded, err := r.restar("train", s.in(bf16))
	if err != nil {
		return err
	}
	defer rounded.Stop()
	torch := r.python(torchDebian, "torch_train.py", s.in(fp32))
	defer stop(torch)
	ours, theirs := append(entries(rounded, "2"), entries(exact, "2")...), entries(torch, "1", "2")
	if err := match.Play(r, append(ours, theirs...), trainRules(s)); err != nil {
		return err
	}
	if err := failed(ours...); err != nil {
		return err
	}
	r.trained(s, "train", "_bf16", "ours", ours[0])
	r.trained(s, "train", "_fp32", "ours_fp32", ours[1])
	r.trained(s, "torch_train", "", "torch", theirs...)
	return nil
}

func (r *runner) newestTraining(s Shape) error {
	var all [][]*match.Entry
	var played []*match.Entry
	for _, precision := range []string{fp32, bf16} {
		torch := r.python(torchNew, "torch_train.py", s.in(precision))
		defer stop(torch)
		all = append(all, beside(torch, 2, "1", "2"))
		played = append(played, all[len(all)-1]...)
	}
	if err := match.Play(r, played, trainRules(s)); err != nil {
		return err
	}
	r.trained(s, "torch_newest_train", "_fp32", "torch_newest", all[0]...)
	r.trained(s, "torch_newest_train", "_bf16", "torch_newest_bf16", all[1]...)
	return nil
}

// trained records the tokens a second of the faster of some ways to play a contestant, and the memory of the largest model.
func (r *runner) trained(s Shape, name, precision, memory string, ways ...*match.Entry) {
	e := match.Fastest(ways...)
	if e == nil {
		if err := match.Failure(ways...); err != nil {
			r.note(ways[0].Process.Name, err)
		}
		return
	}
	r.figures.Set(name+"_tokens_per_s_"+s.Name+precision, float64(s.rows())/e.Best.Seconds)
	if s.Name == shapes[len(shapes)-1].Name {
		r.figures.Set("train_peak_rss_mib_"+s.Name+"_"+memory, e.Best.PeakRSS/(1<<20))
	}
}
