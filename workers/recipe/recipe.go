// Package recipe is what a user asks for: one YAML file that fixes a whole run.
//
// A recipe is strict: an unknown key, a value out of range or a combination that cannot work is an error that names the
// key, what was found and what was expected. A recipe that passes Validate is complete: no component adds a default of
// its own later, so two runs of the same recipe, seed and inputs are the same run.
package recipe

// Recipe is one training run.
type Recipe struct {
	Version    int        `yaml:"version" json:"version"` // format of this file: 1
	Name       string     `yaml:"name" json:"name"`
	Seed       uint64     `yaml:"seed" json:"seed"`
	Numerics   string     `yaml:"numerics" json:"numerics"`   // exact
	Precision  string     `yaml:"precision" json:"precision"` // of the operands of matrix products: fp32 or bf16
	Recompute  bool       `yaml:"recompute" json:"recompute"` // activations in the backward pass: less memory, more work, the same bits
	Model      Model      `yaml:"model" json:"model"`
	Data       Data       `yaml:"data" json:"data"`
	Agent      Agent      `yaml:"agent" json:"agent"`
	Sandbox    Sandbox    `yaml:"sandbox" json:"sandbox"`
	SFT        SFT        `yaml:"sft" json:"sft"`
	RL         RL         `yaml:"rl" json:"rl"`
	Stages     []Stage    `yaml:"stages" json:"stages"` // none: the model is evaluated only
	Eval       Eval       `yaml:"eval" json:"eval"`
	Checkpoint Checkpoint `yaml:"checkpoint" json:"checkpoint"`
	// NumericsID names the backend, instruction set and kernel version whose bits the run holds; set when a run starts.
	NumericsID string `yaml:"-" json:"numerics_id,omitempty"`
}

// Model says where the policy comes from: a Hugging Face folder, or a Qwen3 configuration initialised from scratch.
type Model struct {
	From string     `yaml:"from" json:"from,omitempty"` // Hugging Face folder with config.json, tokenizer.json and safetensors
	Init *ModelInit `yaml:"init" json:"init,omitempty"`
}

// ModelInit is a Qwen3 architecture to initialise from scratch, with the tokenizer of a folder or a BPE trained on the run's
// own text.
type ModelInit struct {
	Tokenizer    string  `yaml:"tokenizer" json:"tokenizer,omitempty"` // Hugging Face folder with tokenizer.json; empty: trained
	Hidden       int     `yaml:"hidden_size" json:"hidden_size"`
	Layers       int     `yaml:"num_hidden_layers" json:"num_hidden_layers"`
	Heads        int     `yaml:"num_attention_heads" json:"num_attention_heads"`
	KVHeads      int     `yaml:"num_key_value_heads" json:"num_key_value_heads"`
	HeadDim      int     `yaml:"head_dim" json:"head_dim"`
	Intermediate int     `yaml:"intermediate_size" json:"intermediate_size"`
	Vocab        int     `yaml:"vocab_size" json:"vocab_size"`
	RopeTheta    float64 `yaml:"rope_theta" json:"rope_theta"`
	MaxPosition  int     `yaml:"max_position_embeddings" json:"max_position_embeddings"`
}

// Data names the problems, the held-out problems and the demonstrations. Each comes from a file or is generated.
type Data struct {
	Problems     string    `yaml:"problems" json:"problems,omitempty"`             // JSONL of {problem, answer}
	HeldOut      string    `yaml:"held_out" json:"held_out,omitempty"`             // JSONL, for evaluation only
	HeldOutShare float64   `yaml:"held_out_share" json:"held_out_share,omitempty"` // or this share of the curated Problems
	Demos        string    `yaml:"demonstrations" json:"demonstrations,omitempty"` // JSONL of SFT demonstrations
	Benchmarks   []string  `yaml:"benchmarks" json:"benchmarks,omitempty"`         // JSONL files that training problems must not overlap
	Generate     *Generate `yaml:"generate" json:"generate,omitempty"`
	NGram        int       `yaml:"decontamination_ngram" json:"decontamination_ngram"` // words; rStar2-Agent §5.1 uses 8
	// HeldOutOverlap says how training problems are kept apart from held-out ones: ngram as for benchmarks, or text for
	// sets whose problems share wordings by design and differ in their numbers.
	HeldOutOverlap string `yaml:"held_out_overlap" json:"held_out_overlap"`
}

// Generate asks for generated integer-answer problems and demonstrations of the tool format; 0 means none of a kind.
type Generate struct {
	Problems int `yaml:"problems" json:"problems"`
	HeldOut  int `yaml:"held_out" json:"held_out"`
	Demos    int `yaml:"demonstrations" json:"demonstrations"`
}

// Agent is the tool protocol of a rollout (rStar2-Agent §2.1).
type Agent struct {
	System          string `yaml:"system_prompt" json:"system_prompt"` // empty: the protocol's own text
	Tool            string `yaml:"tool" json:"tool"`                   // its name; jupyter_code keeps its state from call to call
	CallsPerTurn    int    `yaml:"calls_per_turn" json:"calls_per_turn"`
	StreamChars     int    `yaml:"stream_chars" json:"stream_chars"`               // stdout and stderr are each cut to this
	ResponseChars   int    `yaml:"tool_response_chars" json:"tool_response_chars"` // then the whole response, in the middle
	MaxPromptTokens int    `yaml:"max_prompt_tokens" json:"max_prompt_tokens"`     // longer problems are removed by curation
	// ExecutionTime ends tool responses with code-judge's line of that name. What a model reads then depends on the clock, so a
	// run that is played again is another one.
	ExecutionTime bool `yaml:"execution_time" json:"execution_time,omitempty"`
}

// Sandbox limits one tool call.
type Sandbox struct {
	Isolation string   `yaml:"isolation" json:"isolation"` // A: memory cgroup; B: per-process limits
	CPUSecs   float64  `yaml:"cpu_seconds" json:"cpu_seconds"`
	WallSecs  float64  `yaml:"wall_seconds" json:"wall_seconds"`
	MemoryMB  int      `yaml:"memory_mb" json:"memory_mb"`
	Preload   []string `yaml:"preload" json:"preload,omitempty"` // Python modules imported once, before calls are forked
	// Endpoints are base URLs of sandbox services (restar sandbox serve) that run the calls; none: the worker's own pool does.
	Endpoints []string `yaml:"endpoints" json:"endpoints,omitempty"`
	Texts     Texts    `yaml:"texts" json:"texts,omitzero"`
}

// Texts is what a failed program leaves on stderr, with the marks {type}, {line}, {message} and {source}. What is left out reads as
// rStar2-Agent's released executor has it: "{type} at line {line}: {message}\n  {source}\n" and "{type}: {message}\n".
type Texts struct {
	Located   string `yaml:"located" json:"located,omitempty"`     // an exception with a line of the program to blame
	Unlocated string `yaml:"unlocated" json:"unlocated,omitempty"` // one without
	Traceback bool   `yaml:"traceback" json:"traceback,omitempty"` // CPython's own traceback instead of both
	NoEcho    bool   `yaml:"no_echo" json:"no_echo,omitempty"`     // the value of a last expression is not printed
}

// SFT is non-reasoning fine-tuning on demonstrations (rStar2-Agent §4.1). Steps 0 leaves the model as it is.
type SFT struct {
	Steps     int     `yaml:"steps" json:"steps"`
	Batch     int     `yaml:"batch" json:"batch"` // demonstrations a step
	LR        float64 `yaml:"learning_rate" json:"learning_rate"`
	Schedule  string  `yaml:"schedule" json:"schedule"` // constant or cosine
	Warmup    int     `yaml:"warmup_steps" json:"warmup_steps"`
	Decay     float64 `yaml:"weight_decay" json:"weight_decay"`
	SaveEvery int     `yaml:"save_every" json:"save_every"` // steps between checkpoints
}

// Stage is one stage of reinforcement learning.
type Stage struct {
	Name           string `yaml:"name" json:"name"`
	Steps          int    `yaml:"steps" json:"steps"`
	Prompts        int    `yaml:"prompts" json:"prompts"` // a step
	Samples        int    `yaml:"samples" json:"samples"` // a prompt: 2G
	Keep           int    `yaml:"keep" json:"keep"`       // G
	ResponseTokens int    `yaml:"response_tokens" json:"response_tokens"`
	Turns          int    `yaml:"turns" json:"turns"`
	ResetOptimizer bool   `yaml:"reset_optimizer" json:"reset_optimizer"`
	// LR is the stage's own learning rate; 0 is rl.learning_rate.
	LR float64 `yaml:"learning_rate" json:"learning_rate,omitempty"`
	// MaxAllCorrect ends the stage early once more than this share of its groups was all-correct over the last Window rounds:
	// rStar2-Agent left its second stage at 0.7 (§4.3). 0 is off.
	MaxAllCorrect float64 `yaml:"max_all_correct" json:"max_all_correct,omitempty"`
	Window        int     `yaml:"window" json:"window,omitempty"` // rounds; 0 is 1
	Filter        *Filter `yaml:"filter" json:"filter,omitempty"`
	Star          *Star   `yaml:"star" json:"star,omitempty"` // of algorithm star, in place of steps and keep; prompts are then an iteration's
}

// Filter drops the problems that the stage's first policy already solves every time (rStar2-Agent §4.3, stage 3).
type Filter struct {
	Samples  int `yaml:"samples" json:"samples"`
	Problems int `yaml:"problems" json:"problems"` // at most this many problems of the set are tried and kept
}

// Eval is evaluation on held-out problems, before RL and after each stage.
type Eval struct {
	Problems    int     `yaml:"problems" json:"problems"`
	Samples     int     `yaml:"samples" json:"samples"` // k of avg@k, maj@k and pass@k
	Temperature float64 `yaml:"temperature" json:"temperature"`
	Turns       int     `yaml:"turns" json:"turns"`
	Tokens      int     `yaml:"response_tokens" json:"response_tokens"`
	EverySteps  int     `yaml:"every_steps" json:"every_steps"` // 0: only at stage ends
}

// Checkpoint says how often the whole training state is saved and how many saves are kept.
type Checkpoint struct {
	Every int `yaml:"every_steps" json:"every_steps"`
	Keep  int `yaml:"keep" json:"keep"`
}

// Generated is what the recipe asks the generator for, zero where it asks for nothing.
func (d Data) Generated() Generate {
	if d.Generate == nil {
		return Generate{}
	}
	return *d.Generate
}

// Steps is the number of optimizer steps that the stages ask for in all.
func (r Recipe) Steps() int {
	n := 0
	for _, s := range r.Stages {
		n += s.MostSteps()
	}
	return n
}

// FirstStep is the number of optimizer steps that earlier stages ask for.
func (r Recipe) FirstStep(stage int) int {
	return Recipe{Stages: r.Stages[:stage]}.Steps()
}

// LongestTrajectory is the number of tokens that a prompt and a response may have together.
func (r Recipe) LongestTrajectory() int {
	n := r.Eval.Tokens
	for _, s := range r.Stages {
		n = max(n, s.ResponseTokens)
	}
	return r.Agent.MaxPromptTokens + n
}
