package recipe

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"regexp"
)

// Names become path segments of store keys and workflow ids, so they are kept to one safe alphabet.
var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)

// Validate reports every value that cannot work, each with its key, what was found and what was expected.
func (r Recipe) Validate() error {
	var c checks
	c.that(r.Version == 1, "version", r.Version, "1")
	c.that(nameForm.MatchString(r.Name), "name", r.Name, "lower-case letters, digits and hyphens, at most 40")
	c.that(r.Numerics == "exact", "numerics", r.Numerics, "exact (the only mode of the CPU backend)")
	c.that(r.Precision == "fp32" || r.Precision == "bf16", "precision", r.Precision, "fp32 or bf16")
	r.Model.check(&c)
	r.Data.check(&c, len(r.Stages) > 0)
	r.Agent.check(&c)
	r.Sandbox.check(&c)
	r.SFT.check(&c, r.Data)
	algorithm, unusable := r.RL.Parameters()
	if len(r.Stages) > 0 {
		r.RL.check(&c, unusable)
		r.RL.checkUnread(&c, algorithm)
	}
	c.that(len(r.Stages) < 200, "stages", len(r.Stages), "fewer than 200 stages (8 bits of a random choice's address)")
	seen := map[string]bool{"sft": true, "inputs": true, "model": true, "report": true, "audit": true} // names the store uses itself
	for i, s := range r.Stages {
		at := fmt.Sprintf("stages[%d].", i)
		s.check(&c, at, seen)
		if unusable == nil {
			s.checkAlgorithm(&c, at, algorithm)
		}
		star := r.RL.Algorithm == starAlgorithm
		c.that(star == (s.Star != nil), at+"star", set(s.Star != nil), fmt.Sprintf("set with rl.algorithm %s and only with it; the algorithm is %q", starAlgorithm, r.RL.Algorithm))
		if s.Star != nil {
			s.Star.check(&c, at, s, r.Eval)
		} else {
			s.checkRounds(&c, at)
			c.that(star || r.RL.Selection != "all" || s.Keep == s.Samples, at+"keep", s.Keep,
				fmt.Sprintf("samples (%d): rl.selection %q keeps every sample", s.Samples, r.RL.Selection))
		}
		seen[s.Name] = true
	}
	r.Eval.check(&c)
	c.within("checkpoint.every_steps", r.Checkpoint.Every, maxSteps)
	c.that(r.RL.KLRefresh == 0 || r.RL.KLRefresh >= r.Checkpoint.Every*r.Checkpoint.Keep, "rl.kl_refresh_steps", r.RL.KLRefresh,
		fmt.Sprintf("0, or checkpoint.every_steps times checkpoint.keep (%d) or more: a replay from the oldest checkpoint needs its references", r.Checkpoint.Every*r.Checkpoint.Keep))
	c.that(r.Checkpoint.Keep >= 2 && r.Checkpoint.Keep <= maxSteps, "checkpoint.keep", r.Checkpoint.Keep, "2 or more: the newest may be in the process of being saved")
	r.checkLengths(&c)
	return errors.Join(c...)
}

// checkLengths makes sure that the longest allowed trajectory has a position for every token.
func (r Recipe) checkLengths(c *checks) {
	if r.Model.Init == nil {
		return
	}
	for i, s := range r.Stages {
		need := r.Agent.MaxPromptTokens + s.ResponseTokens
		c.that(need <= r.Model.Init.MaxPosition, fmt.Sprintf("stages[%d].response_tokens", i), need,
			fmt.Sprintf("agent.max_prompt_tokens + response_tokens <= model.init.max_position_embeddings (%d)", r.Model.Init.MaxPosition))
	}
	need := r.Agent.MaxPromptTokens + r.Eval.Tokens
	c.that(need <= r.Model.Init.MaxPosition, "eval.response_tokens", need,
		fmt.Sprintf("agent.max_prompt_tokens + response_tokens <= model.init.max_position_embeddings (%d)", r.Model.Init.MaxPosition))
}

func (m Model) check(c *checks) {
	c.that((m.From == "") != (m.Init == nil), "model", fmt.Sprintf("from=%q init=%v", m.From, m.Init != nil), "exactly one of from and init")
	if m.Init == nil {
		return
	}
	i := *m.Init
	c.within("model.init.hidden_size", i.Hidden, 1<<16)
	c.within("model.init.num_hidden_layers", i.Layers, 1<<10)
	c.within("model.init.num_attention_heads", i.Heads, 1<<10)
	c.within("model.init.num_key_value_heads", i.KVHeads, 1<<10)
	c.that(i.KVHeads > 0 && i.Heads%max(i.KVHeads, 1) == 0, "model.init.num_key_value_heads", i.KVHeads, fmt.Sprintf("a divisor of num_attention_heads (%d)", i.Heads))
	c.that(i.HeadDim > 0 && i.HeadDim <= 1024 && i.HeadDim%2 == 0, "model.init.head_dim", i.HeadDim, "an even number from 2 to 1024 (rotary pairs)")
	c.within("model.init.intermediate_size", i.Intermediate, 1<<18)
	c.that(i.Vocab >= 320 && i.Vocab <= 1<<20, "model.init.vocab_size", i.Vocab, "320 (256 bytes, the markers and room for merges) to 1048576")
	c.that(finite(i.RopeTheta) && i.RopeTheta > 1, "model.init.rope_theta", i.RopeTheta, "a number above 1")
	c.within("model.init.max_position_embeddings", i.MaxPosition, 1<<20)
}

func (d Data) check(c *checks, training bool) {
	g := d.Generated()
	for key, n := range map[string]int{"problems": g.Problems, "held_out": g.HeldOut, "demonstrations": g.Demos} {
		c.that(n >= 0 && n <= 1<<24, "data.generate."+key, n, "0 to 16777216")
	}
	if training {
		c.that((d.Problems != "") != (g.Problems > 0), "data.problems", d.Problems, "either a file, or data.generate.problems")
	}
	share := finite(d.HeldOutShare) && d.HeldOutShare > 0 && d.HeldOutShare < 1
	sources := 0
	for _, set := range []bool{d.HeldOut != "", share, g.HeldOut > 0} {
		if set {
			sources++
		}
	}
	c.that(sources == 1, "data.held_out", d.HeldOut, "exactly one of a file, held_out_share between 0 and 1, and data.generate.held_out")
	c.that(d.HeldOutShare == 0 || share, "data.held_out_share", d.HeldOutShare, "between 0 and 1")
	c.that(d.Demos == "" || g.Demos == 0, "data.demonstrations", d.Demos, "a file or data.generate.demonstrations, not both")
	c.that(d.NGram >= 4 && d.NGram <= 64, "data.decontamination_ngram", d.NGram, "4 to 64 words")
	c.that(d.HeldOutOverlap == "ngram" || d.HeldOutOverlap == "text", "data.held_out_overlap", d.HeldOutOverlap, "ngram or text")
}

func (a Agent) check(c *checks) {
	c.that(a.Tool != "", "agent.tool", a.Tool, "the tool's name")
	c.that(a.CallsPerTurn >= 1 && a.CallsPerTurn <= 16, "agent.calls_per_turn", a.CallsPerTurn, "1 to 16")
	c.that(a.StreamChars >= 16 && a.StreamChars <= 1<<20, "agent.stream_chars", a.StreamChars, "16 to 1048576")
	c.that(a.ResponseChars >= 64 && a.ResponseChars <= 1<<20, "agent.tool_response_chars", a.ResponseChars, "64 to 1048576")
	c.within("agent.max_prompt_tokens", a.MaxPromptTokens, 1<<20)
}

// maxText bounds a template of texts: it is written for every failure.
const maxText = 1 << 10

func (s Sandbox) check(c *checks) {
	c.that(s.Isolation == "A" || s.Isolation == "B", "sandbox.isolation", s.Isolation, "A (memory cgroup) or B (per-process limits)")
	c.that(finite(s.CPUSecs) && s.CPUSecs > 0 && s.CPUSecs <= 600, "sandbox.cpu_seconds", s.CPUSecs, "above 0, at most 600")
	c.that(finite(s.WallSecs) && s.WallSecs >= s.CPUSecs && s.WallSecs <= 3600, "sandbox.wall_seconds", s.WallSecs, fmt.Sprintf("cpu_seconds (%v) to 3600", s.CPUSecs))
	c.that(s.MemoryMB >= 64 && s.MemoryMB <= 1<<20, "sandbox.memory_mb", s.MemoryMB, "64 to 1048576")
	for i, e := range s.Endpoints {
		u, err := url.Parse(e)
		ok := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
		c.that(ok, fmt.Sprintf("sandbox.endpoints[%d]", i), e, "the base URL of a sandbox service, such as http://sandbox-0:8088")
	}
	c.that(len(s.Endpoints) == 0 || s.CPUSecs <= 60 && s.WallSecs <= 180, "sandbox.cpu_seconds", s.CPUSecs, "at most 60 (and wall_seconds at most 180) with sandbox.endpoints: longer calls run in a pool of the worker's own")
	c.that(len(s.Texts.Located) <= maxText && len(s.Texts.Unlocated) <= maxText, "sandbox.texts", s.Texts, fmt.Sprintf("at most %d bytes each", maxText))
	c.that(len(s.Endpoints) == 0 || s.Texts == Texts{}, "sandbox.texts", s.Texts, "nothing with sandbox.endpoints: the texts of services are given where they are started")
	c.that(len(s.Endpoints) == 0 || len(s.Preload) == 0, "sandbox.preload", s.Preload, "nothing with sandbox.endpoints: what the services preload is given where they are started")
}

func (s SFT) check(c *checks, d Data) {
	c.that(s.Steps >= 0 && s.Steps <= maxSteps, "sft.steps", s.Steps, "0 to 1000000")
	if s.Steps == 0 {
		return
	}
	has := d.Demos != "" || d.Generated().Demos > 0
	c.that(has, "sft.steps", s.Steps, "0, or data.demonstrations (or data.generate.demonstrations) to learn from")
	c.within("sft.batch", s.Batch, 1<<16)
	c.rate("sft.learning_rate", s.LR)
	c.that(s.Schedule == "cosine" || s.Schedule == "constant", "sft.schedule", s.Schedule, "cosine or constant")
	c.that(s.Warmup >= 0 && s.Warmup <= s.Steps, "sft.warmup_steps", s.Warmup, fmt.Sprintf("0 to steps (%d)", s.Steps))
	c.that(finite(s.Decay) && s.Decay >= 0, "sft.weight_decay", s.Decay, "0 or more")
	c.within("sft.save_every", s.SaveEvery, maxSteps)
}

func (r RL) check(c *checks, unusable error) {
	c.that(r.Verifier == "native" || r.Verifier == "symbolic" || r.Verifier == "compat", "rl.verifier", r.Verifier, "native, symbolic or compat")
	c.that(r.Verifier != "compat" || !r.StrictAnswers, "rl.strict_answers", r.StrictAnswers, "false with verifier compat, which has its own extraction")
	if unusable != nil {
		*c = append(*c, fmt.Errorf("rl: %w", unusable))
	}
	c.rate("rl.learning_rate", r.LR)
	c.that(r.Warmup >= 0 && r.Warmup <= maxSteps, "rl.warmup_steps", r.Warmup, "0 to 1000000")
	c.that(finite(r.Decay) && r.Decay >= 0, "rl.weight_decay", r.Decay, "0 or more")
	c.that(r.Beta1 >= 0 && r.Beta1 < 1, "rl.beta1", r.Beta1, "0 to below 1")
	c.that(r.Beta2 > 0 && r.Beta2 < 1, "rl.beta2", r.Beta2, "above 0, below 1")
	c.that(finite(r.MaxGradNorm) && r.MaxGradNorm > 0, "rl.max_grad_norm", r.MaxGradNorm, "above 0")
	c.that(r.Temperature == 1, "rl.temperature", r.Temperature, "1: the trainer's log-probs are those of the untempered policy")
}

func (s Stage) check(c *checks, at string, seen map[string]bool) {
	c.that(nameForm.MatchString(s.Name) && !seen[s.Name], at+"name", s.Name, "a name of its own (lower-case letters, digits, hyphens; not sft, inputs, model, report or audit)")
	c.that(s.ResponseTokens >= 16 && s.ResponseTokens <= 1<<20, at+"response_tokens", s.ResponseTokens, "16 to 1048576")
	c.that(s.Turns >= 1 && s.Turns < 4096, at+"turns", s.Turns, "1 to 4095")
	if s.LR != 0 {
		c.rate(at+"learning_rate", s.LR)
	}
	c.that(finite(s.MaxAllCorrect) && s.MaxAllCorrect >= 0 && s.MaxAllCorrect < 1, at+"max_all_correct", s.MaxAllCorrect, "0 (off) to below 1")
	c.that(s.Window >= 0 && s.Window <= 1000, at+"window", s.Window, "0 to 1000 rounds")
	c.that(s.Window == 0 || s.MaxAllCorrect > 0, at+"window", s.Window, "0 without max_all_correct")
	if f := s.Filter; f != nil {
		c.that(f.Samples >= 1 && f.Samples < 1<<16, at+"filter.samples", f.Samples, "1 to 65535")
		c.within(at+"filter.problems", f.Problems, 1<<24)
	}
}

// checkRounds reports what is wrong with a stage whose rounds are one batch each.
func (s Stage) checkRounds(c *checks, at string) {
	c.within(at+"steps", s.Steps, maxSteps)
	c.within(at+"prompts", s.Prompts, 1<<16)
	c.that(s.Samples >= 2 && s.Samples < 1<<16, at+"samples", s.Samples, "2 to 65535")
	c.that(s.Keep >= 2 && s.Keep <= s.Samples, at+"keep", s.Keep, fmt.Sprintf("2 to samples (%d)", s.Samples))
}

func set(is bool) string {
	if is {
		return "set"
	}
	return "not set"
}

func (e Eval) check(c *checks) {
	c.within("eval.problems", e.Problems, 1<<24)
	c.that(e.Samples >= 1 && e.Samples < 1<<16, "eval.samples", e.Samples, "1 to 65535")
	c.that(finite(e.Temperature) && e.Temperature >= 0 && e.Temperature <= 2, "eval.temperature", e.Temperature, "0 to 2")
	c.that(e.Turns >= 1 && e.Turns < 4096, "eval.turns", e.Turns, "1 to 4095")
	c.that(e.Tokens >= 16 && e.Tokens <= 1<<20, "eval.response_tokens", e.Tokens, "16 to 1048576")
	c.that(e.EverySteps >= 0 && e.EverySteps <= maxSteps, "eval.every_steps", e.EverySteps, "0 to 1000000")
}

// checks gathers what is wrong with a recipe.
type checks []error

func (c *checks) that(ok bool, key string, found any, expected string) {
	if !ok {
		*c = append(*c, fmt.Errorf("%s is %v, want %s", key, found, expected))
	}
}

// within demands a count from 1 to most. The maxima are far beyond any run, and small enough that no product of counts
// overflows and every number fits its place in a store key or a random choice's address.
func (c *checks) within(key string, n, most int) {
	c.that(n >= 1 && n <= most, key, n, fmt.Sprintf("1 to %d", most))
}

// maxSteps is the largest count of steps or rounds: keys pad numbers to 6 digits.
const maxSteps = 1_000_000

func (c *checks) rate(key string, lr float64) {
	c.that(finite(lr) && lr > 0 && lr <= 0.1, key, lr, "above 0, at most 0.1")
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
