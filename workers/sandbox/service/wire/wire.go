// Package wire is the native protocol of the sandbox service: what its clients send and receive as JSON.
//
// A Result is typed: what a program did (Status success, error, timeout, oom, killed, output_limit) is final and is never
// retried; cancelled, rejected and infra_error say that nothing is known of the program.
package wire

// Paths of the native endpoint.
const (
	ExecutePath = "/v1/execute"       // POST a Request, receive a Result
	BatchPath   = "/v1/execute/batch" // POST a Batch, receive one Result a line (NDJSON), as calls end
	CallPath    = "/v1/calls/"        // DELETE + call id cancels
	SessionPath = "/v1/sessions"      // POST opens; POST {id}/execute runs in it; DELETE {id} ends it
	StatusPath  = "/v1/status"        // GET a Status
)

// Statuses beyond those of package sandbox.
const (
	Cancelled  = "cancelled"   // by a client, or by the call's deadline while it ran
	Rejected   = "rejected"    // never started: no room, draining, or its deadline passed in the queue
	InfraError = "infra_error" // the sandbox failed; nothing is known of the program
)

// Request is one call.
type Request struct {
	// CallID is the idempotency key, at most 256 bytes: a second request with it joins the call, or gets its kept result.
	// Without one the call cannot be joined or cancelled by name.
	CallID    string `json:"call_id,omitempty"`
	RolloutID string `json:"rollout_id,omitempty"` // unit of fairness: rollouts take turns
	Code      string `json:"code"`
	Stdin     string `json:"stdin,omitempty"`
	Seed      uint64 `json:"seed,omitempty"` // of random, numpy.random and os.urandom
	Limits    Limits `json:"limits,omitzero"`
	// Isolation is the least tier accepted, A or B; "" takes what the node gives. A node that gives less refuses.
	Isolation string `json:"isolation,omitempty"`
	// DeadlineMs bounds queueing and running together, milliseconds from receipt; 0 is none. It is relative, so that clocks
	// of two machines need not agree.
	DeadlineMs int64 `json:"deadline_ms,omitempty"`
}

// Limits bounds one call; zero fields take the service's defaults. Class sets CPUMs and WallMs where they are zero.
type Limits struct {
	Class    string `json:"class,omitempty"` // S, M or L: 5, 30 or 60 s
	CPUMs    int64  `json:"cpu_ms,omitempty"`
	WallMs   int64  `json:"wall_ms,omitempty"`
	MemoryMB int    `json:"memory_mb,omitempty"`
	Pids     int    `json:"pids,omitempty"`
	Cores    int    `json:"cores,omitempty"` // of CPU bandwidth for the whole tree
	TmpKB    int    `json:"tmp_kb,omitempty"`
	OutputKB int    `json:"output_kb,omitempty"` // kept of stdout and of stderr each
}

// Result is the end of one call.
type Result struct {
	CallID          string `json:"call_id,omitempty"`
	Status          string `json:"status"`
	Reason          string `json:"reason,omitempty"` // of cancelled, rejected and infra_error
	ExitCode        int    `json:"exit_code"`
	Signal          int    `json:"signal,omitempty"`
	Stdout          string `json:"stdout"`
	Stderr          string `json:"stderr"`
	StdoutTruncated bool   `json:"stdout_truncated,omitempty"`
	StderrTruncated bool   `json:"stderr_truncated,omitempty"`
	StdoutBytes     int64  `json:"stdout_bytes,omitempty"` // written in all, also what was not kept
	StderrBytes     int64  `json:"stderr_bytes,omitempty"`
	Timing          Timing `json:"timing"`
	PageFaults      int64  `json:"page_faults,omitempty"` // minor faults of the whole tree
	Profile         string `json:"profile,omitempty"`     // of the interpreter it was forked from
	SessionEnded    bool   `json:"session_ended,omitempty"`
	PeakKB          int64  `json:"peak_kb,omitempty"`
	Retryable       bool   `json:"retryable,omitempty"` // the call did not complete and may be sent to another node
	RetryAfterMs    int64  `json:"retry_after_ms,omitempty"`
	Attempts        int    `json:"attempts,omitempty"` // runs on this node, infrastructure failures included
	Joined          bool   `json:"joined,omitempty"`   // the call had been submitted before under its id
	Node            string `json:"node,omitempty"`
	Tier            string `json:"isolation_tier,omitempty"`
}

// Timing tells waiting from running, in milliseconds.
type Timing struct {
	QueueMs float64 `json:"queue_ms"`
	RunMs   float64 `json:"run_ms"`
	CPUMs   float64 `json:"cpu_ms"`                // of the program's tree
	InitMs  float64 `json:"init_cpu_ms,omitempty"` // CPU of building its namespaces and reaping it
}

// Session asks for a process that keeps its state from cell to cell. A cell is a Request to its execute path; of its limits
// only cpu_ms, wall_ms and output_kb are the cell's.
type Session struct {
	SessionID string `json:"session_id,omitempty"` // made up when empty
	RolloutID string `json:"rollout_id,omitempty"`
	Seed      uint64 `json:"seed,omitempty"`
	Limits    Limits `json:"limits,omitzero"` // of every cell, and of memory, processes and files for the session
	Small     bool   `json:"small,omitempty"` // nothing preloaded but standard modules
	IdleMs    int64  `json:"idle_ms,omitempty"`
	Isolation string `json:"isolation,omitempty"`
}

// Batch is several calls whose results come as they end, in any order: give each a CallID.
type Batch struct {
	Calls []Request `json:"calls"`
}

// Status is a service's state at one moment.
type Status struct {
	Node        string         `json:"node"`
	Ready       bool           `json:"ready"`
	Draining    bool           `json:"draining"`
	Tier        string         `json:"isolation_tier"`
	Running     int            `json:"running"`
	Queued      map[string]int `json:"queued"` // by class
	HeldBytes   int64          `json:"held_bytes"`
	KeptResults int            `json:"kept_results"`
}

// Error is the body of a refusal that concerns the request and not a call.
type Error struct {
	Error string `json:"error"`
}
