package model

import (
	"math"
	"slices"
	"testing"

	"github.com/restar-rl/restar/kernels/cpu"
)

// bfloat rounds to the nearest bfloat16, ties to even.
func bfloat(v float32) float32 {
	b := math.Float32bits(v)
	return math.Float32frombits((b + 0x7fff + b>>16&1) &^ 0xffff)
}

func TestTrap06LogitsAndLogProbsAreFloat32InEveryPrecision(t *testing.T) {
	inEveryNumerics(t, func(t *testing.T, b *cpu.Backend, p Precision) {
		c := small(false)
		c.VocabSize = 4001
		m := mustModel(t, b, c, WithPrecision(p))
		for i, param := range m.params { // a head with large logits, whose tail tokens are tens of nats below the likeliest
			if param.Name == "lm_head.weight" {
				for j := range m.params[i].Data {
					m.params[i].Data[j] *= 40
				}
			}
		}
		m.WeightsChanged()
		seq := ids(1, 9, c.VocabSize)
		scored, _, err := m.LogProbs(t.Context(), nil, Pack(seq))
		if err != nil {
			t.Fatal(err)
		}
		cache := newKVCache(b, c, 1, WithPrecision(p))
		fine, worst, spread := 0, 0.0, 0.0
		for n := 1; n < len(seq); n++ {
			logits, err := m.Extend(t.Context(), nil, []Span{{IDs: seq[n-1 : n], Start: n - 1, Blocks: []int{0}, Want: true}}, cache)
			if err != nil {
				t.Fatal(err)
			}
			exact, rounded, top := 0.0, 0.0, float64(slices.Max(logits))
			for _, l := range logits {
				exact += math.Exp(float64(l) - top)
				rounded += math.Exp(float64(bfloat(l)) - float64(bfloat(float32(top))))
				if bfloat(l) != l {
					fine++
				}
			}
			want := float64(logits[seq[n]]) - top - math.Log(exact)
			if d := math.Abs(float64(scored[n]) - want); d > 2e-5*math.Max(1, -want) {
				t.Errorf("log-prob of token %d is %v, a softmax of the logits in float64 gives %v", n, scored[n], want)
			}
			coarse := float64(bfloat(logits[seq[n]])) - float64(bfloat(float32(top))) - math.Log(rounded)
			worst, spread = math.Max(worst, math.Abs(coarse-want)), math.Max(spread, -want)
		}
		if total := (len(seq) - 1) * c.VocabSize; fine < total*9/10 {
			t.Errorf("%d of %d logits have more digits than a bfloat16", fine, total)
		}
		if worst < 0.05 || spread < 10 {
			t.Errorf("bfloat16 logits would be %v nats off for tokens up to %v nats down; the model is too mild to tell", worst, spread)
		}
	})
}

func TestTrap16PackedSequencesAreStrangers(t *testing.T) {
	inEveryNumerics(t, func(t *testing.T, b *cpu.Backend, p Precision) {
		m := mustModel(t, b, small(true), WithPrecision(p))
		seqs := [][]int32{ids(1, 70, 53), ids(2, 1, 53), ids(3, 64, 53), ids(4, 128, 53), ids(5, 2, 53)}
		coef := func(lp, _ []float32) ([]float32, error) {
			out := slices.Clone(lp)
			for i := range out {
				out[i] = float32(math.Tanh(float64(out[i])))
			}
			return out, nil
		}
		packed, apart := NewGradient(m), NewGradient(m)
		if err := m.Backward(t.Context(), nil, Pack(seqs...), coef, packed); err != nil {
			t.Fatal(err)
		}
		logp, entropy, err := m.LogProbs(t.Context(), nil, Pack(seqs...))
		if err != nil {
			t.Fatal(err)
		}
		logp, entropy = slices.Clone(logp), slices.Clone(entropy)
		at := 0
		for i, s := range seqs {
			if err := m.Backward(t.Context(), nil, Pack(s), coef, apart); err != nil {
				t.Fatal(err)
			}
			lp, h, err := m.LogProbs(t.Context(), nil, Pack(s))
			if err != nil {
				t.Fatal(err)
			}
			if j := max(sameBits(lp, logp[at:at+len(s)]), sameBits(h, entropy[at:at+len(s)])); j >= 0 {
				t.Errorf("sequence %d of %d tokens: token %d differs among others from alone", i, len(s), j)
			}
			if logp[at] != 0 { // nothing of the sequence before predicts it
				t.Errorf("sequence %d: its first token has log-prob %v, want 0", i, logp[at])
			}
			at += len(s)
		}
		for k, ts := range packed.Tensors() {
			if i := sameBits(ts.Data, apart.Tensors()[k].Data); i >= 0 {
				t.Errorf("gradient of %s[%d] differs between one pack and single sequences", ts.Name, i)
			}
		}
	})
}

func TestTrap17PositionsBeginAtZeroWhereverASequenceLies(t *testing.T) {
	inEveryNumerics(t, func(t *testing.T, b *cpu.Backend, p Precision) {
		m := mustModel(t, b, small(true), WithPrecision(p))
		seq, other := ids(1, 40, 53), ids(2, 25, 53)
		scored := func(from int, all ...[]int32) []float32 {
			packed := Pack(all...)
			rows := 0
			for _, s := range all {
				rows += len(s)
			}
			if len(packed.IDs) != rows {
				t.Fatalf("%d rows for %d ids: something was padded", len(packed.IDs), rows)
			}
			lp, _, err := m.LogProbs(t.Context(), nil, packed)
			if err != nil {
				t.Fatal(err)
			}
			return slices.Clone(lp[from : from+len(seq)])
		}
		want := scored(0, seq)
		for name, got := range map[string][]float32{
			"before another": scored(0, seq, other), "after another": scored(len(other), other, seq), "between two": scored(len(other), other, seq, other),
		} {
			if i := sameBits(got, want); i >= 0 {
				t.Errorf("%s: token %d differs from alone", name, i)
			}
		}
		shifted := scored(1, append([]int32{other[0]}, seq...)) // what a token of padding before it would do
		if sameBits(shifted[1:], want[1:]) < 0 {
			t.Error("a token before the sequence changes nothing: the test cannot see positions")
		}
		long := ids(3, m.Config.MaxPosition+1, 53)
		if _, _, err := m.LogProbs(t.Context(), nil, Pack(long[:m.Config.MaxPosition], long[:3])); err != nil {
			t.Errorf("a sequence as long as the model and one behind it: %v", err)
		}
		if _, _, err := m.LogProbs(t.Context(), nil, Pack(long)); err == nil {
			t.Error("a sequence longer than the model was scored")
		}
	})
}
