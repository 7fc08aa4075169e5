package agent

import (
	"encoding/json"
	"fmt"

	"github.com/restar-rl/restar/workers/engine"
)

// TurnRecord is one completed turn, ready for a journal: what the model sampled, what its calls came to, and what was appended
// for it to read. A trajectory is its prompt and its records, nothing else.
type TurnRecord struct {
	Key      string // of the trajectory
	Turn     int    // position in the trajectory
	IDs      []int32
	LogProbs []float32 // one per id
	Entropy  []float32 // one per id; nil if the engine measures none
	Finish   engine.Finish
	Version  string
	Calls    []ToolOutcome
	ToolIDs  []int32    // the tool block, re-opened assistant header included; empty if the trajectory stops here
	Stop     StopReason // why the trajectory is finished; "" if it goes on
	Timings  Timings
}

type turnRecordJSON struct {
	Format   int           `json:"format"`
	Key      string        `json:"key"`
	Turn     int           `json:"turn"`
	IDs      []int32       `json:"ids"`
	LogProbs bits          `json:"log_probs"`
	Entropy  bits          `json:"entropy"`
	Finish   engine.Finish `json:"finish"`
	Version  string        `json:"version"`
	Calls    []ToolOutcome `json:"calls,omitempty"`
	ToolIDs  []int32       `json:"tool_ids,omitempty"`
	Stop     StopReason    `json:"stop,omitempty"`
	Timings  Timings       `json:"timings"`
}

// Encode returns the record as compact JSON.
func (r *TurnRecord) Encode() ([]byte, error) {
	return json.Marshal(turnRecordJSON{
		recordFormat, r.Key, r.Turn, r.IDs, r.LogProbs, r.Entropy, r.Finish, r.Version, r.Calls, r.ToolIDs, r.Stop, r.Timings,
	})
}

// DecodeTurnRecord reads what Encode wrote. Unknown fields and anything behind the record are errors.
func DecodeTurnRecord(body []byte) (TurnRecord, error) {
	var j turnRecordJSON
	if err := decodeStrict(body, &j); err != nil {
		return TurnRecord{}, fmt.Errorf("turn record: %w", err)
	}
	if j.Format != recordFormat {
		return TurnRecord{}, fmt.Errorf("turn record has format %d, expected %d", j.Format, recordFormat)
	}
	r := TurnRecord{j.Key, j.Turn, j.IDs, j.LogProbs, j.Entropy.measured(), j.Finish, j.Version, j.Calls, j.ToolIDs, j.Stop, j.Timings}
	return r, r.check()
}

func (r *TurnRecord) check() error {
	n := len(r.IDs)
	if n == 0 || len(r.LogProbs) != n || r.Entropy != nil && len(r.Entropy) != n {
		return fmt.Errorf("turn %d of trajectory %s has %d ids, %d log-probs and %d entropies; the counts must agree and not be 0",
			r.Turn, r.Key, n, len(r.LogProbs), len(r.Entropy))
	}
	if (r.Stop == "") != (len(r.ToolIDs) > 0) {
		return fmt.Errorf("turn %d of trajectory %s stops with %q and appends %d tool tokens; it must do exactly one of the two",
			r.Turn, r.Key, r.Stop, len(r.ToolIDs))
	}
	return nil
}

// apply appends a turn. It is the only way a trajectory grows, while running and while being rebuilt.
func (t *Trajectory) apply(r TurnRecord) error {
	if err := r.check(); err != nil {
		return err
	}
	switch {
	case r.Key != t.Key:
		return fmt.Errorf("turn record of trajectory %s cannot continue trajectory %s", r.Key, t.Key)
	case r.Turn != len(t.Turns):
		return fmt.Errorf("trajectory %s has %d turns and was given turn %d; records must follow each other", t.Key, len(t.Turns), r.Turn)
	case t.Stop != "":
		return fmt.Errorf("trajectory %s is finished (%s) and cannot take turn %d", t.Key, t.Stop, r.Turn)
	case len(t.Turns) > 0 && r.Version != t.Version:
		return fmt.Errorf("trajectory %s was sampled with weights %q, its turn %d with %q; a trajectory has one version",
			t.Key, t.Version, r.Turn, r.Version)
	case len(t.Turns) > 0 && (r.Entropy == nil) != (t.Entropy == nil):
		return fmt.Errorf("turn %d of trajectory %s has entropies: %v, the turns before: %v; a trajectory has them all or none",
			r.Turn, t.Key, r.Entropy != nil, t.Entropy != nil)
	}
	start := len(t.IDs)
	if r.Entropy == nil {
		t.Entropy = nil
	}
	t.extend(r.IDs, r.LogProbs, r.Entropy, 1)
	t.extend(r.ToolIDs, make([]float32, len(r.ToolIDs)), make([]float32, len(r.ToolIDs)), 0)
	t.Turns = append(t.Turns, Turn{Start: start, End: start + len(r.IDs), Finish: r.Finish, Calls: r.Calls})
	t.Version, t.Stop, t.Timings = r.Version, r.Stop, t.Timings.plus(r.Timings)
	return nil
}

func (t *Trajectory) extend(ids []int32, logProbs, entropy []float32, mask uint8) {
	t.IDs = append(t.IDs, ids...)
	t.LogProbs = append(t.LogProbs, logProbs...)
	if t.Entropy != nil {
		t.Entropy = append(t.Entropy, entropy...)
	}
	for range ids {
		t.Mask = append(t.Mask, mask)
	}
}

// Rebuild returns the trajectory of a task after the recorded turns, to be given to Run as Task.Resume. records are all turns
// so far in order; none gives the trajectory at its prompt.
func Rebuild(task Task, records []TurnRecord) (Trajectory, error) {
	t := Trajectory{Key: task.Key(), Address: task.Address, Problem: task.Problem, PromptLen: len(task.Prompt), Entropy: []float32{}}
	t.extend(task.Prompt, make([]float32, len(task.Prompt)), make([]float32, len(task.Prompt)), 0)
	for _, r := range records {
		if err := t.apply(r); err != nil {
			return Trajectory{}, err
		}
	}
	return t, t.Check()
}
