package remote

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/restar-rl/restar/workers/engine"
)

// FuzzAnswer wants every answer to be a turn that an agent may keep, or to be refused as not exact.
func FuzzAnswer(f *testing.F) {
	r := request(f, 0)
	good, err := json.Marshal(reply(f, map[string]any{"model": "tiny", "prompt": r.IDs, "max_tokens": 40.0}, "The answer is 408."))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"model": "tiny", "choices": [{}]}`))
	f.Add([]byte(`{"model": "tiny", "choices": [{"token_ids": [-1], "logprobs": {}}]}`))
	f.Add([]byte(`{"model": "tiny", "choices": null}`))
	c := &Client{opt: options("http://host", VLLM).withDefaults()}
	f.Fuzz(func(t *testing.T, body []byte) {
		var a completionResponse
		if json.Unmarshal(body, &a) != nil {
			return
		}
		g, err := c.generation(r, a)
		if err != nil {
			if !errors.Is(err, ErrInexact) {
				t.Fatalf("refused for %v", err)
			}
			return
		}
		n := len(g.IDs)
		if n == 0 || n > r.MaxNew || len(g.LogProbs) != n || g.Version != "tiny" || g.Finish != engine.FinishStop && g.Finish != engine.FinishLength {
			t.Fatalf("turn %+v", g)
		}
	})
}
