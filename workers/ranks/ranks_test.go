package ranks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/train"
)

// The ranks that these tests start are this test binary itself.
func TestMain(m *testing.M) {
	if os.Getenv(GroupEnv) != "" {
		if err := Follow(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func state(t *testing.T) *train.State {
	t.Helper()
	m, err := model.New(model.Config{VocabSize: 31, HiddenSize: 16, IntermediateSize: 24, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 8,
		MaxPosition: 512, RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true, InitializerRange: 0.3}, 5)
	if err != nil {
		t.Fatal(err)
	}
	return train.NewState(m)
}

func batch() (b train.Batch) {
	for i := range 12 {
		s := train.Sequence{Ordinal: i, IDs: make([]int32, 5+3*i), Mask: make([]uint8, 5+3*i), LogProbs: make([]float32, 5+3*i)}
		for t := range s.IDs {
			s.IDs[t] = int32((7*i + 3*t) % 31)
			if t > 1 {
				s.Mask[t] = 1
			}
		}
		b.Sequences = append(b.Sequences, s)
	}
	return b
}

func step(t *testing.T, s *train.State, n int64) {
	t.Helper()
	if _, err := train.Step(t.Context(), s, batch(), n, train.Objective{Kind: train.SFT}, train.Optimizer{LR: 0.01, Beta1: 0.9, Beta2: 0.99, ClipNorm: 1}); err != nil {
		t.Fatal(err)
	}
}

func TestRankProcessesStepWithTheBitsOfOneAndEndWithTheirGroup(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	alone := state(t)
	step(t, alone, 1)
	var log bytes.Buffer
	p := Processes{Count: 4, Command: []string{os.Args[0]}, Log: &log}
	for range 2 { // a group can be followed by another
		s := state(t)
		end, err := p.Lead(t.Context(), s, "test")
		if err != nil {
			t.Fatal(err, log.String())
		}
		step(t, s, 1)
		if s.WeightsDigest() != alone.WeightsDigest() {
			t.Error("four processes gave other weights than one")
		}
		begin := time.Now()
		end() // returns when all processes have ended
		if took := time.Since(begin); took > endPatience {
			t.Errorf("the ranks had to be killed after %v", took)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "restar-ranks-*")); len(left) > 0 || log.Len() > 0 {
		t.Errorf("left behind: %v, log %q", left, log.String())
	}
}

func TestARankThatCannotStartEndsTheAttemptAtOnce(t *testing.T) {
	begin := time.Now()
	_, err := Processes{Count: 2, Command: []string{"/bin/false"}}.Lead(t.Context(), state(t), "test")
	if err == nil || !strings.Contains(err.Error(), "rank 1 ended") || time.Since(begin) > joinPatience/2 {
		t.Errorf("after %v: %v", time.Since(begin), err)
	}
	if _, err := (Processes{Count: 2, Command: []string{"/nowhere"}}).Lead(t.Context(), state(t), "test"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
	for _, n := range []int{0, 3, 16} {
		if _, err := (Processes{Count: n}).Lead(t.Context(), state(t), "test"); err == nil {
			t.Errorf("%d ranks accepted", n)
		}
	}
}

func TestWhatIsNoRankIsToldSo(t *testing.T) {
	if err := Follow(t.Context()); err == nil || !strings.Contains(err.Error(), GroupEnv) {
		t.Errorf("%v", err)
	}
}
