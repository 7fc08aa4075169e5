package rl

import (
	"fmt"
	"math"
	"sort"
)

// Graded is one evaluated sample: its canonical answer ("" if none was found) and whether it is correct. Samples whose
// verdict is unknown are left out by the caller and reported beside the metrics.
type Graded struct {
	Answer  string
	Correct bool
}

// Interval is a two-sided confidence interval of a mean.
type Interval struct{ Low, High float64 }

// normalQuantile95 is the 97.5% quantile of the standard normal distribution: a two-sided 95% interval.
const normalQuantile95 = 1.959963984540054

// AvgAtK is the mean over problems of the share of correct samples (average pass@1 over k samples, rStar2-Agent §5.1).
// Problems without samples are an error: they would silently count as nothing.
func AvgAtK(problems [][]Graded) (float64, error) {
	means, err := problemMeans(problems)
	if err != nil {
		return 0, err
	}
	return mean(means), nil
}

// AvgInterval is the normal 95% interval of AvgAtK with the problems as the sampled units: a benchmark of 30 questions is
// uncertain through its questions, however many samples each gets. Bounds are clipped to [0, 1]; one problem gives [0, 1].
func AvgInterval(problems [][]Graded) (Interval, error) {
	means, err := problemMeans(problems)
	if err != nil {
		return Interval{}, err
	}
	if len(means) < 2 {
		return Interval{0, 1}, nil
	}
	m, std := meanStd(means)
	half := normalQuantile95 * std / math.Sqrt(float64(len(means)))
	return Interval{max(0, m-half), min(1, m+half)}, nil
}

// AvgBootstrap is the 95% percentile bootstrap interval of AvgAtK over problems. Draw i of rounds*len(problems) is
// uniform(i), so the interval can be computed again to the bit.
func AvgBootstrap(problems [][]Graded, rounds int, uniform func(i int) float64) (Interval, error) {
	means, err := problemMeans(problems)
	if err != nil {
		return Interval{}, err
	}
	if rounds < 1 {
		return Interval{}, fmt.Errorf("bootstrap has %d rounds; it needs at least 1", rounds)
	}
	n := len(means)
	resampled := make([]float64, rounds)
	for r := range resampled {
		var sum float64
		for j := range n {
			sum += means[min(n-1, int(uniform(r*n+j)*float64(n)))]
		}
		resampled[r] = sum / float64(n)
	}
	sort.Float64s(resampled)
	return Interval{quantile(resampled, 0.025), quantile(resampled, 0.975)}, nil
}

// quantile returns the nearest-rank quantile of sorted values.
func quantile(sorted []float64, q float64) float64 {
	return sorted[min(len(sorted)-1, max(0, int(math.Ceil(q*float64(len(sorted))))-1))]
}

// MajAtK is the mean over problems of whether the most frequent answer is correct. Samples without an answer do not vote.
// Answers that tie for first share the credit, which is the expectation of a fair tie-break and needs no draw.
func MajAtK(problems [][]Graded) (float64, error) {
	scores := make([]float64, len(problems))
	for i, samples := range problems {
		if len(samples) == 0 {
			return 0, fmt.Errorf("problem %d has no graded samples; leave it out and report it", i)
		}
		scores[i] = majority(samples)
	}
	if len(scores) == 0 {
		return 0, errNoProblems
	}
	return mean(scores), nil
}

func majority(samples []Graded) float64 {
	votes, correct := map[string]int{}, map[string]bool{}
	most := 0
	for _, s := range samples {
		if s.Answer == "" {
			continue
		}
		votes[s.Answer]++
		correct[s.Answer] = correct[s.Answer] || s.Correct
		most = max(most, votes[s.Answer])
	}
	first, right := 0, 0
	for answer, n := range votes {
		if n == most {
			first++
			if correct[answer] {
				right++
			}
		}
	}
	if first == 0 {
		return 0
	}
	return float64(right) / float64(first)
}

// PassAtK is the mean over problems of the unbiased estimate that at least one of k samples is correct,
// 1 - C(n-c, k) / C(n, k) (Chen et al. 2021). Every problem needs at least k samples.
func PassAtK(problems [][]Graded, k int) (float64, error) {
	scores := make([]float64, len(problems))
	for i, samples := range problems {
		if k < 1 || len(samples) < k {
			return 0, fmt.Errorf("problem %d has %d graded samples; pass@%d needs 1 <= k <= samples", i, len(samples), k)
		}
		scores[i] = passAtK(len(samples), countCorrect(samples), k)
	}
	if len(scores) == 0 {
		return 0, errNoProblems
	}
	return mean(scores), nil
}

func passAtK(n, c, k int) float64 {
	if n-c < k {
		return 1
	}
	miss := 1.0
	for i := n - c + 1; i <= n; i++ {
		miss *= 1 - float64(k)/float64(i)
	}
	return 1 - miss
}

var errNoProblems = fmt.Errorf("there are no problems; a mean over nothing has no value")

func problemMeans(problems [][]Graded) ([]float64, error) {
	if len(problems) == 0 {
		return nil, errNoProblems
	}
	means := make([]float64, len(problems))
	for i, samples := range problems {
		if len(samples) == 0 {
			return nil, fmt.Errorf("problem %d has no graded samples; leave it out and report it", i)
		}
		means[i] = float64(countCorrect(samples)) / float64(len(samples))
	}
	return means, nil
}

func countCorrect(samples []Graded) int {
	n := 0
	for _, s := range samples {
		if s.Correct {
			n++
		}
	}
	return n
}

func mean(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
