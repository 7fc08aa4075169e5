// Package activities is the durable face of the work: what a workflow may ask for, and the methods that do it.
//
// Every method is idempotent. What it produces lives in the object store under a key that only its input decides, is
// written once (the first write wins) and is read back by whoever comes second; an activity's result is a small
// reference with counts. A worker's memory is a cache of the store: losing it costs time, never work.
package activities

import "github.com/restar-rl/restar/workers/recipe"

type (
	// Recipe is what a run was asked to do.
	Recipe = recipe.Recipe
	// Stage is one of a recipe's stages.
	Stage = recipe.Stage
)

// Purposes of sampling. They are path segments of the store and streams of randomness.
const (
	PurposeRollout = "rollout"
	PurposeEval    = "eval"
	PurposeFilter  = "filter"
	PurposeHint    = "hint" // training problems with their answers behind them
)

// Task queues, one a role.
const (
	QueueOrchestrator = "orchestrator" // workflows
	QueueCPU          = "cpu"          // curation, selection, scoring, reports
	QueueRollout      = "rollout"      // the engine and the sandbox
	QueueTrainer      = "trainer"      // the optimizer; one trainer holds a run at a time
)

// StageSFT is the stage name of fine-tuning in the store; no reinforcement-learning stage may have it.
const StageSFT = "sft"

// Ref points at an object of the store and pins its content.
type Ref struct {
	Key    string `json:"key"`
	Digest string `json:"digest"` // sha256 of the content, hex
}

// Weights names one published version of a run's policy.
type Weights struct {
	Stage   string `json:"stage"`
	Version string `json:"version"` // "<stage>-<applied step, 6 digits>"
	Digest  string `json:"digest"`  // over names, shapes and bits of the tensors
}

// Dataset is a curated set of problems.
type Dataset struct {
	Ref
	Problems int `json:"problems"`
}

// CurateInput asks for the run's sets of problems.
type CurateInput struct {
	Run string `json:"run"`
}

// CurateResult is what curation kept.
type CurateResult struct {
	Train   Dataset        `json:"train"`
	HeldOut Dataset        `json:"held_out"`
	Demos   Dataset        `json:"demonstrations"`
	Report  Ref            `json:"report"`
	Removed map[string]int `json:"removed"` // by reason
}

// FineTuneInput asks for SFT steps From+1 to To.
type FineTuneInput struct {
	Run   string  `json:"run"`
	Demos Dataset `json:"demonstrations"`
	From  int     `json:"from"`
	To    int     `json:"to"`
}

// FineTuneResult is the state after the last step asked for.
type FineTuneResult struct {
	Weights Weights `json:"weights"`
	Loss    float64 `json:"loss"` // mean over the steps asked for, nats a token
	Tokens  int64   `json:"tokens"`
}

// SliceInput asks for some samples of one prompt. Purpose is one of those above.
type SliceInput struct {
	Run         string  `json:"run"`
	Stage       string  `json:"stage"`
	StageIndex  int     `json:"stage_index"`
	Purpose     string  `json:"purpose"`
	Round       string  `json:"round"` // the iteration as 6 digits, or an evaluation's name: the store's path segment
	Iteration   int     `json:"iteration"`
	Ordinal     int     `json:"ordinal"` // position of the prompt in the stage's order, or in the evaluated set
	Slice       int     `json:"slice"`
	FirstSample int     `json:"first_sample"`
	Samples     int     `json:"samples"`
	Problems    Dataset `json:"problems"`
	Weights     Weights `json:"weights"`
	Tokens      int     `json:"response_tokens"`
	Turns       int     `json:"turns"`
	Temperature float64 `json:"temperature"`
}

// SliceResult counts what a slice holds once every sample is final in the journal.
type SliceResult struct {
	Samples    int   `json:"samples"`
	Correct    int   `json:"correct"`
	Unknown    int   `json:"unknown"`
	Calls      int   `json:"calls"`
	CallErrors int   `json:"call_errors"`
	Truncated  int   `json:"truncated"`
	Tokens     int64 `json:"tokens"`         // sampled by the model
	Lost       int   `json:"lost,omitempty"` // given up for the infrastructure; they are among the unknown
}

// Add sums two counts.
func (a SliceResult) Add(b SliceResult) SliceResult {
	a.Samples += b.Samples
	a.Correct += b.Correct
	a.Unknown += b.Unknown
	a.Calls += b.Calls
	a.CallErrors += b.CallErrors
	a.Truncated += b.Truncated
	a.Tokens += b.Tokens
	a.Lost += b.Lost
	return a
}

// SelectInput asks for the optimizer batch of one rollout round.
type SelectInput struct {
	Run          string  `json:"run"`
	Stage        string  `json:"stage"`
	StageIndex   int     `json:"stage_index"`
	Iteration    int     `json:"iteration"`
	Step         int64   `json:"step"` // the step that this batch would be
	FirstOrdinal int     `json:"first_ordinal"`
	Prompts      int     `json:"prompts"`
	Weights      Weights `json:"weights"` // the policy that sampled the round
	// Earlier rounds by the same policy that the batch is filled from too, oldest first (dynamic sampling).
	Earlier []Round `json:"earlier,omitempty"`
}

// Round is one rollout round of a stage.
type Round struct {
	Iteration    int `json:"iteration"`
	FirstOrdinal int `json:"first_ordinal"`
	Prompts      int `json:"prompts"`
}

// SelectResult is the chosen batch. Sequences 0 means that every group was rejected: no step, the round still counts.
type SelectResult struct {
	Batch          Ref     `json:"batch"`
	Sequences      int     `json:"sequences"`
	Groups         int     `json:"groups"`
	AllCorrect     int     `json:"all_correct"` // groups rejected since every reward was 1
	AllWrong       int     `json:"all_wrong"`
	Reward         float64 `json:"reward"`           // mean over all samples
	ToolErrorShare float64 `json:"tool_error_share"` // errors among the calls of all samples
	TruncatedShare float64 `json:"truncated_share"`
	UnknownGroups  int     `json:"unknown_groups,omitempty"` // left out whole, since a verdict in them is unknown
	LostGroups     int     `json:"lost_groups,omitempty"`    // of these, for a sample that the infrastructure lost
	Timings        Timings `json:"timings"`
	// More are the batches of the round's further optimizer steps, in order.
	More []Ref `json:"more,omitempty"`
	// Again asks for another round: the batch is not full, and nothing was written.
	Again bool `json:"again,omitempty"`
}

// Timings are measurements of one round and its step, in seconds. They differ between runs and are part of no digest.
type Timings struct {
	Rollout  float64 `json:"rollout_seconds"`  // from the round's first slice to its last
	Generate float64 `json:"generate_seconds"` // waiting for the engine, summed over trajectories
	Tools    float64 `json:"tools_seconds"`    // waiting for tool results, summed over trajectories
	Queue    float64 `json:"queue_seconds"`    // of that, before a sandbox slot was free
	ToolCPU  float64 `json:"tool_cpu_seconds"` // CPU time of the programs
	Verify   float64 `json:"verify_seconds"`   // waiting for verdicts, summed over trajectories
	Calls    int     `json:"calls"`
	Train    float64 `json:"train_seconds"`
}

// TrainInput asks for one optimizer step on one batch.
type TrainInput struct {
	Run        string `json:"run"`
	Stage      string `json:"stage"`
	StageIndex int    `json:"stage_index"`
	Iteration  int    `json:"iteration"`
	Update     int    `json:"update,omitempty"` // of the iteration's updates, from 0
	Step       int64  `json:"step"`
	Batch      Ref    `json:"batch"`
	// Timings of the round that gave the batch; they are stored beside the step's own and decide nothing.
	Timings Timings `json:"timings"`
}

// TrainResult is one applied step.
type TrainResult struct {
	Weights Weights     `json:"weights"`
	Metrics StepMetrics `json:"metrics"`
}

// StepMetrics are the deterministic figures of one rollout round and its step, as stored under metrics/<iteration>.json.
type StepMetrics struct {
	Stage          string  `json:"stage"`
	Iteration      int     `json:"iteration"`
	Step           int64   `json:"step"`
	Loss           float64 `json:"loss"`
	GradNorm       float64 `json:"grad_norm"`
	RatioMax       float64 `json:"ratio_max"`
	ClipLow        float64 `json:"clip_low_share"`
	ClipHigh       float64 `json:"clip_high_share"`
	Entropy        float64 `json:"entropy"`
	Tokens         int64   `json:"tokens"`
	Sequences      int     `json:"sequences"`
	Skipped        string  `json:"skipped,omitempty"` // why the step changed nothing
	Reward         float64 `json:"reward"`
	ToolErrorShare float64 `json:"tool_error_share"`
	CallsPerSample float64 `json:"calls_per_sample"`
	TruncatedShare float64 `json:"truncated_share"`
	ResponseTokens float64 `json:"response_tokens"` // mean sampled tokens a trajectory
	AllCorrect     int     `json:"all_correct"`
	AllWrong       int     `json:"all_wrong"`
	Groups         int     `json:"groups"`
	UnknownGroups  int     `json:"unknown_groups,omitempty"`      // left out whole, since a verdict in them is unknown
	LostGroups     int     `json:"lost_groups,omitempty"`         // of these, for a sample that the infrastructure lost
	UnknownShare   float64 `json:"unknown_share,omitempty"`       // of samples
	DuplicateShare float64 `json:"duplicate_share,omitempty"`     // of calls, those that repeat an earlier one of their trajectory
	CorrectCalls   int     `json:"correct_calls,omitempty"`       // in correct trajectories (rStar2-Agent Fig 4)
	CorrectErrors  int     `json:"correct_call_errors,omitempty"` // of these
	WeightsDigest  string  `json:"weights_digest"`
}

// CheckpointInput asks for a durable copy of the whole training state as of one step.
type CheckpointInput struct {
	Run        string `json:"run"`
	Stage      string `json:"stage"`
	StageIndex int    `json:"stage_index"`
	Step       int64  `json:"step"`
}

// BeginStageInput asks for a stage's first training state: the end of the stage before it, optimizer reset if asked.
type BeginStageInput struct {
	Run        string  `json:"run"`
	Stage      string  `json:"stage"`
	StageIndex int     `json:"stage_index"`
	From       Weights `json:"from"` // last weights of the stage before
	Step       int64   `json:"step"` // applied steps before this stage
}

// FilterInput asks which problems the stage's first policy does not solve every time.
type FilterInput struct {
	Run        string  `json:"run"`
	Stage      string  `json:"stage"`
	StageIndex int     `json:"stage_index"`
	Problems   Dataset `json:"problems"`
	Tried      int     `json:"tried"`   // ordinals 0 to Tried-1 were sampled
	Samples    int     `json:"samples"` // of each
}

// ScoreInput asks for the result of one evaluation.
type ScoreInput struct {
	Run      string  `json:"run"`
	Stage    string  `json:"stage"`
	Name     string  `json:"name"`
	Problems Dataset `json:"problems"`
	Count    int     `json:"count"`
	Samples  int     `json:"samples"`
	Weights  Weights `json:"weights"`
}

// EvalResult is one evaluation of one policy on held-out problems.
type EvalResult struct {
	Name              string  `json:"name"`
	Stage             string  `json:"stage"`
	Version           string  `json:"version"`
	Problems          int     `json:"problems"`
	Samples           int     `json:"samples"`
	Temperature       float64 `json:"temperature"`
	Avg               float64 `json:"avg_at_k"` // mean pass@1 over samples
	AvgLow            float64 `json:"avg_low"`  // 95% bootstrap interval over problems
	AvgHigh           float64 `json:"avg_high"`
	Maj               float64 `json:"maj_at_k"`
	Pass              float64 `json:"pass_at_k"`
	CallsPerProblem   float64 `json:"calls_per_problem"`
	ErrorsPerProblem  float64 `json:"tool_errors_per_problem"`
	ToolErrorShare    float64 `json:"tool_error_share"`
	TokensPerResponse float64 `json:"tokens_per_response"`
	Unknown           int     `json:"unknown"`
}

// ExportInput asks for a policy as a Hugging Face folder.
type ExportInput struct {
	Run     string  `json:"run"`
	Weights Weights `json:"weights"`
}

// ExportResult lists the folder's files in the store.
type ExportResult struct {
	Prefix string   `json:"prefix"`
	Files  []string `json:"files"`
}

// ReportInput asks for the run's HTML report.
type ReportInput struct {
	Run     string `json:"run"`
	Stopped bool   `json:"stopped"`
}

// ReportResult says where the report is.
type ReportResult struct {
	Report Ref `json:"report"`
}
