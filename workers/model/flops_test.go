package model

import "testing"

// published is a config.json of testdata/published.
func published(t *testing.T, name string) Config {
	t.Helper()
	c, err := ReadConfig("testdata/published/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The numbers are those of the model cards' safetensors headers.
func TestParametersOfPublishedModelsAreCounted(t *testing.T) {
	for name, want := range map[string]int{
		"Qwen3-14B": 14_768_307_200, "Qwen2.5-0.5B": 494_032_768, "SmolLM2-135M": 134_515_008, "Llama-3.2-1B": 1_235_814_400,
	} {
		if got := published(t, name).Elements(); got != want {
			t.Errorf("%s has %d weights, want %d", name, got, want)
		}
	}
}

func TestOperationsAreThoseCountedByHand(t *testing.T) {
	for _, c := range []struct {
		name     string
		products int     // by hand: layers*(q + 2 kv + o + 3 mlp) + head
		token    float64 // forward, 1000 positions
	}{
		{"SmolLM2-135M", 30*(576*576+2*576*192+576*576+3*576*1536) + 49152*576, 2*134_479_872 + 4*30*576*1000},
		{"Qwen2.5-0.5B", 24*(896*896+2*896*128+896*896+3*896*4864) + 151936*896, 2*493_961_216 + 4*24*896*1000},
		{"Qwen3-14B", 40*(5120*5120+2*5120*1024+5120*5120+3*5120*17408) + 151936*5120, 2*13_989_969_920 + 4*40*5120*1000},
	} {
		m := published(t, c.name)
		if got := m.productElements(); got != c.products {
			t.Errorf("%s multiplies by %d elements, want %d", c.name, got, c.products)
		}
		if got := m.TokenFLOPs(1000); got != c.token {
			t.Errorf("%s takes %v operations a token, want %v", c.name, got, c.token)
		}
		sum := 0.0
		for p := range 7 {
			sum += m.TokenFLOPs(p + 1)
		}
		if got := m.SequenceFLOPs(7); got != sum {
			t.Errorf("%s takes %v operations for 7 tokens, want the sum over its tokens, %v", c.name, got, sum)
		}
		if got := m.TrainFLOPs(7); got != 3*sum {
			t.Errorf("%s takes %v operations to train on 7 tokens, want three passes, %v", c.name, got, 3*sum)
		}
	}
}
