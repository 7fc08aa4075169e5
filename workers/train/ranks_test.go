package train

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/restar-rl/restar/workers/collective"
	"github.com/restar-rl/restar/workers/model"
)

// A rank that the tests below start is this test binary itself, told so by the environment.
const (
	rankEnv      = "RESTAR_TEST_RANK"
	addressesEnv = "RESTAR_TEST_ADDRESSES"
)

func TestMain(m *testing.M) {
	if rank := os.Getenv(rankEnv); rank != "" {
		os.Exit(followAsProcess(rank))
	}
	os.Exit(m.Run())
}

func followAsProcess(rank string) int {
	o := collective.Options{Addresses: strings.Split(os.Getenv(addressesEnv), ","), Name: "test", Patience: time.Minute}
	if _, err := fmt.Sscan(rank, &o.Rank); err != nil {
		return 2
	}
	g, err := collective.Join(context.Background(), o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	err = Follow(context.Background(), g, model.New)
	fmt.Fprintln(os.Stderr, err)
	return 0
}

// lead makes s rank 0 of a group of processes.
func lead(t *testing.T, s *State, size int) (processes []*exec.Cmd) {
	t.Helper()
	dir, at := t.TempDir(), make([]string, size)
	for r := range at {
		at[r] = "unix:" + filepath.Join(dir, fmt.Sprint(r))
	}
	for r := 1; r < size; r++ {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
		c.Env = append(os.Environ(), fmt.Sprintf("%s=%d", rankEnv, r), addressesEnv+"="+strings.Join(at, ","), "GOMAXPROCS=1")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		processes = append(processes, c)
	}
	g, err := collective.Join(t.Context(), collective.Options{Addresses: at, Name: "test", Patience: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = g.Close()
		for _, c := range processes {
			_ = c.Wait()
		}
	})
	if err := s.Lead(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	return processes
}

// steps applies steps from to to and returns the last one's metrics.
func steps(t *testing.T, s *State, from, to int64) (m Metrics) {
	t.Helper()
	for step := from; step <= to; step++ {
		var err error
		obj := Objective{Kind: PolicyGradient, Clip: testObjective().Clip, KLBeta: 0.1, Importance: 2}
		if m, err = Step(t.Context(), s, withOptional(someBatch(t, tinyModel(t, 7), 21, int(step))), step, obj, testOptimizer()); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func whole(t *testing.T, s *State) []model.Tensor {
	t.Helper()
	ts, err := s.Tensors(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range ts {
		ts[i].Data = slices.Clone(ts[i].Data)
	}
	return ts
}

func TestTrap09TheNumberOfRankProcessesChangesNoBit(t *testing.T) {
	inEveryShapeAndPrecision(t, rankProcesses)
}

func rankProcesses(t *testing.T, shape maker) {
	one := NewState(shape(t, 1))
	wantMetrics := steps(t, one, 1, 3)
	if wantMetrics.GradNorm == 0 {
		t.Fatal("the last step has no gradient")
	}
	want := whole(t, one)
	for _, size := range []int{2, 4, 8} {
		s := NewState(shape(t, 1))
		lead(t, s, size)
		if got := steps(t, s, 1, 3); got != wantMetrics {
			t.Errorf("%d ranks: metrics %+v, want %+v", size, got, wantMetrics)
		}
		if name := differ(whole(t, s), want); name != "" {
			t.Errorf("%d ranks: %s differs", size, name)
		}
		if s.WeightsDigest() != one.WeightsDigest() {
			t.Errorf("%d ranks: other weights", size)
		}
	}
}

func TestTrap13RanksWithoutSequencesChangeNoBit(t *testing.T) {
	inEveryShape(t, ranksWithoutSequences)
}

func ranksWithoutSequences(t *testing.T, shape maker) {
	b := Batch{someBatch(t, shape(t, 7), 3, 1).Sequences[:2]}
	one, four := NewState(shape(t, 1)), NewState(shape(t, 1))
	lead(t, four, 4)
	for _, s := range []*State{one, four} {
		if _, err := Step(t.Context(), s, b, 1, testObjective(), testOptimizer()); err != nil {
			t.Fatal(err)
		}
	}
	if name := differ(whole(t, four), whole(t, one)); name != "" {
		t.Errorf("two sequences over four ranks: %s differs", name)
	}
}

func TestACheckpointOfFourRanksLoadsOnOneAndOnTwo(t *testing.T) {
	inEveryShape(t, checkpointOfFourRanks)
}

func checkpointOfFourRanks(t *testing.T, shape maker) {
	straight := NewState(shape(t, 1))
	steps(t, straight, 1, 4)
	want := whole(t, straight)

	four := NewState(shape(t, 1))
	lead(t, four, 4)
	steps(t, four, 1, 2)
	raw, err := model.EncodeSafetensors(whole(t, four), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1, 2} {
		saved, _, err := model.DecodeSafetensors(raw)
		if err != nil {
			t.Fatal(err)
		}
		s := NewState(shape(t, 2))
		if err := s.LoadTensors(saved); err != nil {
			t.Fatal(err)
		}
		if size > 1 {
			lead(t, s, size)
		}
		steps(t, s, 3, 4)
		if name := differ(whole(t, s), want); name != "" {
			t.Errorf("continued on %d ranks: %s differs", size, name)
		}
	}
}

func TestEachRankHoldsTheMomentsOfItsOwnTensorsOnly(t *testing.T) {
	s := NewState(tinyModel(t, 1))
	lead(t, s, 4)
	held, all := 0, 0
	for i, p := range s.Model.Params() {
		held, all = held+len(s.M[i].Data), all+len(p.Data)
	}
	if held == 0 || held > all/2 { // the embedding is a third of this model
		t.Errorf("rank 0 holds moments of %d of %d weights", held, all)
	}
}

func TestALostRankBreaksTheStateAndNamesTheRank(t *testing.T) {
	s := NewState(tinyModel(t, 1))
	processes := lead(t, s, 2)
	steps(t, s, 1, 1)
	if err := processes[0].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	b := someBatch(t, tinyModel(t, 7), 21, 2)
	_, err := Step(t.Context(), s, b, 2, testObjective(), testOptimizer())
	if err == nil || !strings.Contains(err.Error(), "rank 1") || !strings.Contains(err.Error(), "load it again") {
		t.Errorf("a step without rank 1 gave %v", err)
	}
	if _, again := Step(t.Context(), s, b, 2, testObjective(), testOptimizer()); !errors.Is(again, errors.Unwrap(err)) && again.Error() != err.Error() {
		t.Errorf("the broken state took another step: %v", again)
	}
	if _, err := s.Tensors(t.Context()); err == nil {
		t.Error("the broken state was saved")
	}
}

func TestABadBatchDoesNotReachTheRanks(t *testing.T) {
	s := NewState(tinyModel(t, 1))
	lead(t, s, 2)
	if _, err := Step(t.Context(), s, Batch{}, 1, testObjective(), testOptimizer()); !errors.Is(err, ErrBatch) {
		t.Errorf("empty batch: %v", err)
	}
	steps(t, s, 1, 1)
}
