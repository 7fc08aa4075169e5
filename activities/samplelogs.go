package activities

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/store"
)

// Keys of journal records: what a sample's record is.
const (
	turnPrefix  = "turn/"
	finalPrefix = "final/"
)

func turnKey(sample int) string  { return turnPrefix + strconv.Itoa(sample) }
func finalKey(sample int) string { return finalPrefix + strconv.Itoa(sample) }

// sampleLogs are the samples of a slice as its journal has them.
type sampleLogs struct {
	turns map[int][]agent.TurnRecord

	mu    sync.Mutex
	final map[int]agent.Trajectory
}

// readLogs sorts a journal's records by sample. A second final record of a sample means that it was made twice.
func readLogs(records []store.Record) (*sampleLogs, error) {
	logs := &sampleLogs{turns: map[int][]agent.TurnRecord{}, final: map[int]agent.Trajectory{}}
	for _, r := range records {
		if err := logs.read(r); err != nil {
			return nil, fmt.Errorf("journal record %s: %w", r.Key, err)
		}
	}
	return logs, nil
}

func (l *sampleLogs) read(r store.Record) error {
	if digits, ok := strings.CutPrefix(r.Key, turnPrefix); ok {
		sample, err := strconv.Atoi(digits)
		if err != nil {
			return err
		}
		turn, err := agent.DecodeTurnRecord(r.Value)
		l.turns[sample] = append(l.turns[sample], turn)
		return err
	}
	digits, ok := strings.CutPrefix(r.Key, finalPrefix)
	if !ok {
		return fmt.Errorf("want a key that begins with %s or %s", turnPrefix, finalPrefix)
	}
	sample, err := strconv.Atoi(digits)
	if err != nil {
		return err
	}
	t, err := agent.DecodeTrajectory(r.Value)
	if err != nil {
		return err
	}
	return l.add(sample, t)
}

// add takes a finished trajectory. The same sample twice is an error: it was generated again.
func (l *sampleLogs) add(sample int, t agent.Trajectory) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, dup := l.final[sample]; dup {
		return fmt.Errorf("sample %d of %s has two final records", sample, t.Key)
	}
	l.final[sample] = t
	return nil
}

func (l *sampleLogs) isFinal(sample int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.final[sample]
	return ok
}

// unfinished lists a slice's samples without a final record.
func (l *sampleLogs) unfinished(in SliceInput) []int {
	var out []int
	for i := in.FirstSample; i < in.FirstSample+in.Samples; i++ {
		if !l.isFinal(i) {
			out = append(out, i)
		}
	}
	return out
}

// samples returns a slice's trajectories in order; each must be final.
func (l *sampleLogs) samples(in SliceInput) ([]agent.Trajectory, error) {
	var out []agent.Trajectory
	for i := in.FirstSample; i < in.FirstSample+in.Samples; i++ {
		t, ok := l.final[i]
		if !ok {
			return nil, fmt.Errorf("sample %d of prompt %d is not final", i, in.Ordinal)
		}
		out = append(out, t)
	}
	return out, nil
}

func (l *sampleLogs) count(in SliceInput) (SliceResult, error) {
	all, err := l.samples(in)
	var out SliceResult
	for i := range all {
		out = out.Add(countOne(&all[i]))
	}
	return out, err
}

func countOne(t *agent.Trajectory) SliceResult {
	c := t.Counts()
	out := SliceResult{Samples: 1, Calls: c.Calls, CallErrors: c.Errors, Tokens: int64(c.Sampled)}
	switch t.Verdict.Outcome {
	case agent.Correct:
		out.Correct = 1
	case agent.Unknown:
		out.Unknown = 1
	}
	if t.Truncated() {
		out.Truncated = 1
	}
	if t.Stop == agent.Lost {
		out.Lost = 1
	}
	return out
}
