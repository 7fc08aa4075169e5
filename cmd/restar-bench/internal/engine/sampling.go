package engine

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/restar-rl/restar/cmd/restar-bench/internal/match"
)

// Lengths of sampled text. Prompts are short, so that what is measured is sampling.
const (
	promptIDs   = 32
	alone       = 128 // ids for one sequence
	together    = 64  // sequences at once
	togetherIDs = 48  // ids for each of them
)

// decoding samples one sequence: the weights are read once for each id, so the limit is the memory's.
func (r *runner) decoding() error {
	s := shapes[len(shapes)-1].sampling(1, promptIDs, alone)
	ours, err := r.restar("generate", s.in(bf16))
	if err != nil {
		return err
	}
	defer ours.Stop()
	exact, err := r.restar("generate", s.in(fp32))
	if err != nil {
		return err
	}
	defer exact.Stop()
	llama := r.llama(s)
	defer stop(llama)
	torch := r.python(torchNew, "torch_generate.py", s.in(bf16))
	defer stop(torch)
	mine, theirs, others := append(entries(ours, "2"), entries(exact, "2")...), entries(llama, "1", "2"), beside(torch, 2, "1", "2")
	all := append(append(append([]*match.Entry{}, mine...), theirs...), others...)
	if err := match.Play(r, all, match.Rules{Rounds: 6, Budget: 45 * time.Second, Wait: 2 * time.Minute, Slower: 1.3}); err != nil {
		return err
	}
	if err := failed(mine...); err != nil {
		return err
	}
	r.decoded("decode1_tokens_per_s_135m_bf16", mine[0])
	r.decoded("decode1_tokens_per_s_135m_fp32", mine[1])
	r.decoded("llamacpp_decode1_tokens_per_s_135m_bf16", theirs...)
	r.decoded("torch_newest_decode1_tokens_per_s_135m_bf16", others...)
	r.figures.Ratio("decode1_vs_llamacpp", "decode1_tokens_per_s_135m_bf16", "llamacpp_decode1_tokens_per_s_135m_bf16")
	r.figures.Ratio("decode1_vs_torch_newest", "decode1_tokens_per_s_135m_bf16", "torch_newest_decode1_tokens_per_s_135m_bf16")
	if limit := r.figures["read_gb_per_s_2_threads"]; limit > 0 {
		r.figures.Set("decode1_bandwidth_fraction", s.streamedBytes()*r.figures["decode1_tokens_per_s_135m_bf16"]/1e9/limit)
	}
	return nil
}

// beside are the entries of a peer that is only reported beside the match: some rounds do.
func beside(p *match.Process, rounds int, counts ...string) []*match.Entry {
	all := entries(p, counts...)
	for _, e := range all {
		e.Rounds = rounds
	}
	return all
}

// decoded records the highest rate of some ways to play a contestant.
func (r *runner) decoded(name string, ways ...*match.Entry) {
	for _, e := range ways {
		if e.Measured() {
			r.figures.Set(name, max(r.figures[name], e.Best.Rate))
		}
	}
	if err := match.Failure(ways...); err != nil && r.figures[name] == 0 {
		r.note(ways[0].Process.Name, err)
	}
}

// llama starts llama.cpp on a file of random weights, which is made if it is missing.
func (r *runner) llama(s Shape) *match.Process {
	job, err := json.Marshal(s)
	if err != nil {
		r.note(llamaCpp, err)
		return nil
	}
	file := filepath.Join(r.Peers, s.Name+"-bf16.gguf")
	if _, err := os.Stat(file); err != nil {
		if err := r.command(filepath.Join(r.Peers, "torch", "bin", "python"), filepath.Join(r.Scripts, "gguf_random.py"), string(job), bf16, file); err != nil {
			r.note(llamaCpp, err)
			return nil
		}
	}
	modules, err := filepath.Abs(filepath.Join(r.Peers, "llama", "node_modules"))
	if err != nil {
		r.note(llamaCpp, err)
		return nil
	}
	return r.peer(match.Spec{Name: llamaCpp, Command: []string{r.node, filepath.Join(r.Scripts, "llama.mjs"), modules, file, string(job)}})
}

// generating samples a batch, from prompts to the last id, as a rollout does.
func (r *runner) generating() error {
	for _, s := range r.chosen() {
		r.begin("sampling with", s)
		if err := r.generatingMatch(s.sampling(together, promptIDs, togetherIDs)); err != nil {
			return err
		}
	}
	last := shapes[len(shapes)-1].Name
	r.figures.Set("decode64_vs_torch", r.figures["decode64_vs_torch_"+last])
	return nil
}

func (r *runner) generatingMatch(s Shape) error {
	ours, err := r.restar("generate", s.in(bf16))
	if err != nil {
		return err
	}
	defer ours.Stop()
	exact, err := r.restar("generate", s.in(fp32))
	if err != nil {
		return err
	}
	defer exact.Stop()
	torch := r.python(torchDebian, "torch_generate.py", s.in(fp32))
	defer stop(torch)
	newest := r.python(torchNew, "torch_generate.py", s.in(fp32))
	defer stop(newest)
	half := r.python(torchNew, "torch_generate.py", s.in(bf16))
	defer stop(half)
	mine := append(entries(ours, "2"), entries(exact, "2")...)
	theirs, newer, halves := entries(torch, "1", "2"), beside(newest, 1, "2"), beside(half, 1, "2")
	all := append(append(append(append([]*match.Entry{}, mine...), theirs...), newer...), halves...)
	if err := match.Play(r, all, match.Rules{Rounds: 4, Budget: 45 * time.Second, Wait: 3 * time.Minute, Slower: 1.3}); err != nil {
		return err
	}
	if err := failed(mine...); err != nil {
		return err
	}
	r.generated(s, "decode64_tokens_per_s_"+s.Name+"_bf16", mine[0])
	r.generated(s, "decode64_tokens_per_s_"+s.Name+"_fp32", mine[1])
	r.generated(s, "torch_decode64_tokens_per_s_"+s.Name, theirs...)
	r.generated(s, "torch_newest_decode64_tokens_per_s_"+s.Name+"_fp32", newer...)
	r.generated(s, "torch_newest_decode64_tokens_per_s_"+s.Name+"_bf16", halves...)
	// Beside whole calls: the ids that follow once every prompt has been read.
	r.decoded("decode64_after_prompts_per_s_"+s.Name+"_bf16", mine[0])
	r.decoded("torch_decode64_after_prompts_per_s_"+s.Name, theirs...)
	r.figures.Ratio("decode64_after_prompts_vs_torch_"+s.Name, "decode64_after_prompts_per_s_"+s.Name+"_bf16", "torch_decode64_after_prompts_per_s_"+s.Name)
	r.figures.Ratio("decode64_vs_torch_"+s.Name, "decode64_tokens_per_s_"+s.Name+"_bf16", "torch_decode64_tokens_per_s_"+s.Name)
	return nil
}

// generated records the ids a second of whole calls of the fastest way to play a contestant.
func (r *runner) generated(s Shape, name string, ways ...*match.Entry) {
	e := match.Fastest(ways...)
	if e != nil {
		r.figures.Set(name, float64(s.Batch*s.New)/e.Best.Seconds)
	} else if err := match.Failure(ways...); err != nil {
		r.note(ways[0].Process.Name, err)
	}
}
