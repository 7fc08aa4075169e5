// Package workflows is the deterministic order of a run's work.
//
// A workflow decides and records; it never computes, reads a clock or touches the store. Its whole state is one struct
// that continue-as-new hands on unchanged. Everything large is a reference into the object store.
package workflows

import "github.com/restar-rl/restar/activities"

// Names of what a client may ask of a workflow.
const (
	QueryProgress = "progress" // every workflow of a run answers it
	UpdatePause   = "pause"
	UpdateResume  = "resume"
	UpdateStop    = "stop" // end after the step in progress, keep everything
)

// RunID is the workflow id of a run. The ids of all its workflows start with its name, so the UI lists them together.
func RunID(run string) string { return run }

// CurateID is the workflow id of a run's curation.
func CurateID(run string) string { return run + "/curate" }

// FineTuneID is the workflow id of a run's fine-tuning.
func FineTuneID(run string) string { return run + "/sft" }

// ReinforceID is the workflow id of one stage, by whatever algorithm.
func ReinforceID(run, stage string) string { return run + "/" + stage }

// EvaluateID is the workflow id of one evaluation.
func EvaluateID(run, name string) string { return run + "/eval/" + name }

// RolloutID is the workflow id of one round of sampling.
func RolloutID(run, stage, round string) string { return run + "/" + stage + "/" + round }

// Phases of a run, as progress shows them.
const (
	PhaseCurate   = "curate"
	PhaseFineTune = "fine-tune"
	PhaseFilter   = "filter"
	PhaseRollout  = "rollout"
	PhaseSelect   = "select"
	PhaseTrain    = "train"
	PhaseEvaluate = "evaluate"
	PhaseReport   = "report"
	PhasePaused   = "paused"
	PhaseStopped  = "stopped"
	PhaseDone     = "done"
)

// Progress is where a workflow is. Child names the workflow that knows more, if one is at work.
type Progress struct {
	Run      string                   `json:"run"`
	Phase    string                   `json:"phase"`
	Stage    string                   `json:"stage,omitempty"`
	Step     int64                    `json:"step"`  // optimizer steps of this phase
	Steps    int64                    `json:"steps"` // asked for
	Done     int                      `json:"done"`  // slices of the rollout round or evaluation
	Total    int                      `json:"total"`
	Child    string                   `json:"child,omitempty"`
	Paused   bool                     `json:"paused,omitempty"`
	Stopping bool                     `json:"stopping,omitempty"`
	Tokens   int64                    `json:"tokens"` // sampled by this workflow so far
	Last     *activities.StepMetrics  `json:"last,omitempty"`
	Loss     float64                  `json:"loss,omitempty"` // fine-tuning
	Counts   activities.SliceResult   `json:"counts"`         // of the round so far
	Evals    []activities.EvalResult  `json:"evals,omitempty"`
	Curated  *activities.CurateResult `json:"curated,omitempty"`
	Report   string                   `json:"report,omitempty"`  // key of the HTML report
	Problem  string                   `json:"problem,omitempty"` // what stands in the way, for people
}

// RunInput starts or attaches to a run. The recipe lies in the store under the run's name.
type RunInput struct {
	Run    string            `json:"run"`
	Recipe activities.Recipe `json:"recipe"`
}

// RunResult is a finished run.
type RunResult struct {
	Weights activities.Weights      `json:"weights"`
	Evals   []activities.EvalResult `json:"evals"`
	Report  activities.Ref          `json:"report"`
	Stopped bool                    `json:"stopped"`
}
