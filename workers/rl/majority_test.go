package rl

import (
	"fmt"
	"math"
	"math/bits"
	"testing"
)

// every is MajAtK averaged over all subsets of k samples, one by one.
func every(t *testing.T, samples []Graded, k int) float64 {
	t.Helper()
	sum, n := 0.0, 0
	for set := range 1 << len(samples) {
		if bits.OnesCount(uint(set)) != k {
			continue
		}
		var chosen []Graded
		for i, s := range samples {
			if set>>i&1 == 1 {
				chosen = append(chosen, s)
			}
		}
		m, err := MajAtK([][]Graded{chosen})
		if err != nil {
			t.Fatal(err)
		}
		sum += m
		n++
	}
	return sum / float64(n)
}

func TestMajorityOfFewerSamplesIsTheMeanOverTheirSubsets(t *testing.T) {
	seen := map[string]bool{}
	for i := range 60 {
		var samples []Graded
		for j := range 8 {
			answer := (i*7 + j*j*(i+3)) % (2 + i%5)
			g := Graded{Answer: fmt.Sprint(answer), Correct: answer == 1 || (i%7 == 0 && answer == 2)}
			if answer == 0 && i%2 == 0 {
				g = Graded{}
			}
			samples = append(samples, g)
		}
		for k := 1; k <= len(samples); k++ {
			got, err := MajAt([][]Graded{samples}, k)
			if err != nil {
				t.Fatal(err)
			}
			want := every(t, samples, k)
			if math.Abs(got-want) > 1e-12 {
				t.Errorf("samples %v: maj@%d is %v, want %v", samples, k, got, want)
			}
			seen[fmt.Sprintf("%.3f", want)] = true
		}
	}
	if len(seen) < 20 {
		t.Errorf("the cases have %d different values only", len(seen))
	}
}

func TestMajorityOfOneIsPassAtOneAndOfAllIsMajorityAtK(t *testing.T) {
	problems := [][]Graded{
		{{"1", true}, {"1", true}, {"2", false}, {"", false}},
		{{"3", false}, {"4", true}, {"3", false}, {"5", false}},
	}
	one, err := MajAt(problems, 1)
	avg, err2 := AvgAtK(problems)
	if err != nil || err2 != nil || math.Abs(one-avg) > 1e-12 {
		t.Errorf("maj@1 is %v, avg %v (%v, %v)", one, avg, err, err2)
	}
	all, err := MajAt(problems, 4)
	maj, err2 := MajAtK(problems)
	if err != nil || err2 != nil || math.Abs(all-maj) > 1e-12 {
		t.Errorf("maj@4 is %v, want %v (%v, %v)", all, maj, err, err2)
	}
	for _, k := range []int{0, 5} {
		if _, err := MajAt(problems, k); err == nil {
			t.Errorf("maj@%d of 4 samples is no error", k)
		}
	}
	if _, err := MajAt(nil, 1); err == nil {
		t.Error("a mean over no problems is no error")
	}
}

func TestMajorityOfManySamplesHasTheSameBitsEveryTime(t *testing.T) {
	var samples []Graded
	for i := range 96 { // choose(96, 48) is beyond 2^53
		samples = append(samples, Graded{Answer: fmt.Sprint(i * i % 13), Correct: i*i%13 == 4})
	}
	first, err := MajAt([][]Graded{samples}, 48)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if again, err := MajAt([][]Graded{samples}, 48); again != first || err != nil {
			t.Fatalf("maj@48 is %v and then %v, %v", first, again, err)
		}
	}
}
