package telemetry

// ReportData is everything a report shows. Its order is the page's order; Render adds nothing and looks nothing up.
type ReportData struct {
	Run          string
	Recipe       string // the recipe's own name
	Facts        []Fact // what was asked and what it cost, in the order to show
	Evals        []Eval // before reinforcement learning first, then after each stage
	Steps        []Step // optimizer steps in order
	Iterations   []Iterations
	SFT          []LossPoint
	Curation     Curation
	Trajectories []Trajectory
}

// Fact is one line of the summary.
type Fact struct{ Name, Value string }

// Eval is one evaluation of one policy on held-out problems. Shares and scores are in [0, 1].
type Eval struct {
	Name              string  `json:"name"`
	Problems          int     `json:"problems"`
	Samples           int     `json:"samples"` // k
	Avg               float64 `json:"avg_at_k"`
	AvgLow            float64 `json:"avg_low"` // 95% interval
	AvgHigh           float64 `json:"avg_high"`
	Maj               float64 `json:"maj_at_k"`
	Pass              float64 `json:"pass_at_k"`
	CallsPerProblem   float64 `json:"calls_per_problem"`
	ErrorsPerProblem  float64 `json:"tool_errors_per_problem"`
	ToolErrorShare    float64 `json:"tool_error_share"`
	TokensPerResponse float64 `json:"tokens_per_response"`
	Unknown           int     `json:"unknown"` // samples without a verdict
}

// Step is what the report draws of one optimizer step.
type Step struct {
	Stage          string
	Step           int64
	Reward         float64 // mean over the round's samples
	ToolErrorShare float64 // errors among the round's tool calls
	// ToolErrorCorrect is the same among the calls of correct trajectories (rStar2-Agent Fig 4), not a number if they have none.
	ToolErrorCorrect float64
	Entropy          float64 // nats a token
	ResponseTokens   float64 // mean sampled tokens a trajectory
	GradNorm         float64 // before clipping
}

// Iterations are the scores of a stage that trains from its first policy again and again (STaR).
type Iterations struct {
	Stage  string
	Score  string    // what is scored
	Scores []float64 // 0 to 1; the first policy's, then those of iterations 1, 2, ...
	Best   int       // position of the one that the stage gives
}

// LossPoint is the fine-tuning loss of one step, in nats a token.
type LossPoint struct {
	Step int64
	Loss float64
}

// Curation counts what the data filters did.
type Curation struct {
	Read    int
	Kept    int
	Removed []Removal // in the order to show
}

// Removal counts the problems that one filter dropped.
type Removal struct {
	Reason string
	Count  int
}

// Role says who wrote a segment of a trajectory.
type Role string

// The writers of a trajectory.
const (
	RolePrompt Role = "prompt"
	RoleModel  Role = "model"
	RoleCall   Role = "call" // a tool call inside the model's text
	RoleTool   Role = "tool"
)

// Segment is a stretch of a trajectory's text by one writer.
type Segment struct {
	Role Role
	Text string
}

// Trajectory is one whole sample, shown as it was.
type Trajectory struct {
	Title    string // e.g. "stage2, problem 17, sample 3"
	Reward   float64
	Stop     string // why it ended
	Gold     string // the answer expected
	Answer   string // the answer found, if any
	Tokens   int    // sampled by the model
	Segments []Segment
}
