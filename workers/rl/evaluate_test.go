package rl

import (
	"math"
	"testing"
)

func graded(answers string, correct byte) []Graded {
	var g []Graded
	for i := range len(answers) {
		a := Graded{Answer: answers[i : i+1], Correct: answers[i] == correct}
		if answers[i] == '-' {
			a.Answer = ""
		}
		g = append(g, a)
	}
	return g
}

func TestAvgAtKWeighsProblemsEqually(t *testing.T) {
	got, err := AvgAtK([][]Graded{graded("1112", '1'), graded("22", '1')})
	if err != nil || got != 0.375 {
		t.Errorf("got %v, %v; want 0.375", got, err)
	}
}

func TestNormalIntervalOfProblemMeans(t *testing.T) {
	problems := [][]Graded{graded("11", '1'), graded("12", '1'), graded("22", '1'), graded("11", '1')}
	// Means 1, .5, 0, 1: mean .625, std .478714, half width 1.959964*.478714/2 = .469131, clipped above.
	iv, err := AvgInterval(problems)
	if err != nil || math.Abs(iv.Low-0.155869) > 1e-6 || iv.High != 1 {
		t.Errorf("interval %+v, %v", iv, err)
	}
}

func TestTrap24BootstrapIntervalIsReproducibleAndNearTheNormalOne(t *testing.T) {
	var problems [][]Graded
	for i := range 60 {
		problems = append(problems, graded([]string{"1111", "1122", "2222"}[i%3], '1'))
	}
	u := draws(3)
	at := func(i int) float64 { return u(i * 7 % 4093) }
	a, err := AvgBootstrap(problems, 2000, at)
	b, _ := AvgBootstrap(problems, 2000, at)
	n, _ := AvgInterval(problems)
	if err != nil || a != b || math.Abs(a.Low-n.Low) > 0.03 || math.Abs(a.High-n.High) > 0.03 {
		t.Errorf("bootstrap %+v and %+v, normal %+v, %v", a, b, n, err)
	}
}

func TestMajorityVote(t *testing.T) {
	for answers, want := range map[string]float64{
		"11122": 1, "11222": 0, "1122": 0.5, "1---": 1, "----": 0, "123": 1.0 / 3,
	} {
		if got, err := MajAtK([][]Graded{graded(answers, '1')}); err != nil || got != want {
			t.Errorf("%s: %v, want %v (%v)", answers, got, want, err)
		}
	}
}

func TestTrap24PassAtKIsTheUnbiasedEstimator(t *testing.T) {
	for n := 1; n <= 8; n++ {
		for c := 0; c <= n; c++ {
			for k := 1; k <= n; k++ {
				if got, want := passAtK(n, c, k), passByEnumeration(n, c, k); math.Abs(got-want) > 1e-12 {
					t.Errorf("n=%d c=%d k=%d: %v, want %v", n, c, k, got, want)
				}
			}
		}
	}
	if _, err := PassAtK([][]Graded{graded("12", '1')}, 3); err == nil {
		t.Error("pass@3 of two samples accepted")
	}
}

// passByEnumeration counts the k-subsets of n samples, the first c correct, that hold a correct one.
func passByEnumeration(n, c, k int) float64 {
	hit, all := 0, 0
	for set := range 1 << n {
		size := 0
		for i := range n {
			size += set >> i & 1
		}
		if size == k {
			all++
			hit += b2i(set&(1<<c-1) != 0)
		}
	}
	return float64(hit) / float64(all)
}

func TestMetricsRefuseProblemsWithoutSamples(t *testing.T) {
	for _, problems := range [][][]Graded{nil, {nil}} {
		_, e1 := AvgAtK(problems)
		_, e2 := MajAtK(problems)
		_, e3 := PassAtK(problems, 1)
		_, e4 := AvgInterval(problems)
		if e1 == nil || e2 == nil || e3 == nil || e4 == nil {
			t.Errorf("problems %v accepted: %v %v %v %v", problems, e1, e2, e3, e4)
		}
	}
}
