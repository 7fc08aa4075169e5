package cpu

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/restar-rl/restar/kernels"
	"github.com/restar-rl/restar/kernels/philox"
)

// sampleOracle returns the probabilities after temperature, top-k and top-p, by sorting everything in float64.
func sampleOracle(logits []float32, c kernels.Choice) []float64 {
	p := make([]float64, len(logits))
	order := make([]int, len(logits))
	for i, l := range logits {
		p[i], order[i] = math.Exp(float64(l)/float64(c.Temperature)), i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(logits[j], logits[i]) })
	normalise := func() {
		sum := 0.0
		for _, v := range p {
			sum += v
		}
		for i := range p {
			p[i] /= sum
		}
	}
	drop := func(from int) {
		for _, i := range order[from:] {
			p[i] = 0
		}
		normalise()
	}
	normalise()
	if c.TopK > 0 && c.TopK < len(p) {
		drop(c.TopK)
	}
	if c.TopP > 0 {
		sum := 0.0
		for n, i := range order {
			if sum += p[i]; sum >= float64(c.TopP) {
				drop(n + 1)
				break
			}
		}
	}
	return p
}

func TestSamplesFollowTheirDistribution(t *testing.T) {
	logits := []float32{0.3, -1, 2, 0.9, -30, 1.4, 0.9, -2}
	onEveryPath(t, func(b *bench) {
		for _, c := range []kernels.Choice{
			{Temperature: 0.5}, {Temperature: 1}, {Temperature: 2}, {Temperature: 1, TopK: 1}, {Temperature: 1, TopK: 3}, {Temperature: 1.5, TopK: 100},
			{Temperature: 1, TopP: 0.01}, {Temperature: 1, TopP: 0.8}, {Temperature: 0.7, TopP: 0.999}, {Temperature: 1, TopP: 1},
			{Temperature: 2, TopK: 4, TopP: 0.7},
		} {
			follows(b, logits, c)
		}
	})
}

// follows draws many times and compares frequencies, log-probs and entropy with the oracle's.
func follows(b *bench, logits []float32, c kernels.Choice) {
	b.t.Helper()
	const n = 20000
	want, entropy := sampleOracle(logits, c), 0.0
	for _, p := range want {
		if p > 0 {
			entropy -= p * math.Log(p)
		}
	}
	a := kernels.SampleArgs{Rows: n, Vocab: len(logits), Logits: b.view(slices.Repeat(logits, n)), Choices: slices.Repeat([]kernels.Choice{c}, n),
		Draws: make([]kernels.Draw, n)}
	for i := range a.Choices {
		a.Choices[i].Key, a.Choices[i].At = philox.NewKey(5), philox.Address{Token: i}
	}
	b.Sample(b.s, a)
	b.sync()
	count := make([]float64, len(logits))
	for _, d := range a.Draws {
		count[d.ID]++
		if !d.Finite || math.Abs(float64(d.LogP)-math.Log(want[d.ID])) > 1e-5 || math.Abs(float64(d.Entropy)-entropy) > 1e-5 {
			b.t.Fatalf("%+v drew %+v, want log-prob %v and entropy %v", c, d, math.Log(want[d.ID]), entropy)
		}
	}
	for i, p := range want {
		if sigma := math.Sqrt(p*(1-p)/n) + 1e-9; math.Abs(count[i]/n-p) > 5*sigma {
			b.t.Errorf("%+v: id %d drawn %v of the time, want %v", c, i, count[i]/n, p)
		}
	}
}

// TestCutsOfAWideRowMatchASortOfAllOfIt has ties everywhere, so that the order of equals decides what stays.
func TestCutsOfAWideRowMatchASortOfAllOfIt(t *testing.T) {
	onEveryPath(t, func(b *bench) {
		logits := make([]float32, 3001)
		for i := range logits {
			logits[i] = float32(b.r.IntN(160)) / 8
		}
		for _, c := range []kernels.Choice{{TopK: 1}, {TopK: 17}, {TopK: 400}, {TopK: 2999}, {TopP: 0.1}, {TopP: 0.5}, {TopP: 0.99}, {TopK: 300, TopP: 0.9}} {
			c.Temperature = 1
			want := sampleOracle(logits, c)
			left := 0
			for _, p := range want {
				if p > 0 {
					left++
				}
			}
			d := b.SampleRow(logits, c, len(logits))
			if len(d.Top) != left {
				b.t.Errorf("%+v leaves %d ids, want %d", c, len(d.Top), left)
				continue
			}
			for i, l := range d.Top {
				if p := want[l.ID]; p == 0 || math.Abs(float64(l.LogP)-math.Log(p)) > 1e-4 {
					b.t.Fatalf("%+v: likely id %d is %+v, want log-prob %v", c, i, l, math.Log(p))
				}
				if i > 0 && (logits[d.Top[i-1].ID] < logits[l.ID] || logits[d.Top[i-1].ID] == logits[l.ID] && d.Top[i-1].ID > l.ID) {
					b.t.Fatalf("%+v: id %d comes before %d", c, d.Top[i-1].ID, l.ID)
				}
			}
		}
	})
}

func TestInversionTakesTheFirstIdBeyondTheUniform(t *testing.T) {
	logits := []float32{float32(math.Log(0.5)), float32(math.Log(0.25)), -200, float32(math.Log(0.25))}
	onEveryPath(t, func(b *bench) {
		for _, c := range []struct {
			u    float64
			want int32
		}{{0, 0}, {0.49, 0}, {0.51, 1}, {0.74, 1}, {0.76, 3}, {1 - 1e-16, 0}} {
			d := b.draw(&worker{}, logits, &kernels.Choice{Temperature: 1}, c.u, 0)
			if d.ID != c.want && c.u < 0.99 || !d.Finite || d.ID == 2 {
				b.t.Errorf("u=%v draws %+v, want %d", c.u, d, c.want)
			}
		}
	})
}

func TestGreedyTakesTheSmallestOfEqualIdsAndReportsTheSoftmax(t *testing.T) {
	onEveryPath(t, func(b *bench) {
		d := b.SampleRow([]float32{1, 3, 3, 0}, kernels.Choice{TopK: 1}, 2)
		want := 3 - math.Log(math.Exp(1)+2*math.Exp(3)+1)
		if d.ID != 1 || math.Abs(float64(d.LogP)-want) > 1e-6 || len(d.Top) != 2 || d.Top[0].ID != 1 || d.Top[1].ID != 2 {
			b.t.Errorf("greedy drew %+v, want id 1 with %v and then id 2", d, want)
		}
	})
}

func TestARowThatIsNoDistributionIsNeverSampled(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	onEveryPath(t, func(b *bench) {
		for _, row := range [][]float32{{nan, 1}, {1, nan}, {inf, 0}, {-inf, -inf}} {
			for _, c := range []kernels.Choice{{}, {Temperature: 1}, {Temperature: 0.7}, {Temperature: 1, TopK: 1}, {Temperature: 1, TopP: 0.5}} {
				if d := b.SampleRow(row, c, 1); d.Finite {
					b.t.Errorf("row %v with %+v drew %+v", row, c, d)
				}
			}
		}
	})
}

// TestALongRowIsInvertedAsIfAddedOneByOne: assembly adds groups of probabilities, and no draw may tell.
func TestALongRowIsInvertedAsIfAddedOneByOne(t *testing.T) {
	onEveryPath(t, func(b *bench) {
		for _, vocab := range []int{1023, 1024, 5000, 49152} {
			for _, spread := range []float32{0.01, 1, 8} {
				row := b.random(vocab)
				for i := range row {
					row[i] *= spread
				}
				row[vocab/2] = float32(math.Inf(-1))
				lse, _ := b.logSoftmax(row)
				sums := make([]float64, vocab)
				sum := 0.0
				for i, l := range row {
					sum += math.Exp(float64(l) - float64(lse))
					sums[i] = sum
				}
				check := func(u float64) {
					want := slices.IndexFunc(sums, func(s float64) bool { return s > u })
					if want < 0 {
						want = b.argmax(row)
					}
					if got := b.invert(row, lse, u); got != want {
						b.t.Errorf("vocabulary %d, spread %v: u=%v draws %d, want %d", vocab, spread, u, got, want)
					}
				}
				for range 60 {
					check(b.r.Float64())
					edge := sums[b.r.IntN(vocab)] // exactly at, and next to, a boundary
					check(edge)
					check(math.Nextafter(edge, 0))
				}
				check(0)
				check(1 - 1e-16)
			}
		}
	})
}

// BenchmarkSample draws a token from a row of logits.
func BenchmarkSample(b *testing.B) {
	bk, err := FromEnv()
	if err != nil {
		b.Fatal(err)
	}
	for _, vocab := range []int{1024, 49152, 151936} {
		for name, c := range map[string]kernels.Choice{"greedy": {}, "T1": {Temperature: 1}, "k50-p95": {Temperature: 0.8, TopK: 50, TopP: 0.95}} {
			b.Run(fmt.Sprintf("%s/%d", name, vocab), func(b *testing.B) {
				x := &bench{Backend: bk, r: rand.New(rand.NewPCG(1, 2))}
				row, w := x.random(vocab), &worker{}
				for b.Loop() {
					c.At.Token++
					bk.draw(w, row, &c, c.Key.Uniform(c.At), 0)
				}
			})
		}
	}
}
