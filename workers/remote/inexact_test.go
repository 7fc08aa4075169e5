package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/restar-rl/restar/workers/engine"
)

// reply is the answer of a well-behaved vLLM to a request: the ids of text and the end of the turn.
func reply(t testing.TB, body map[string]any, text string) map[string]any {
	t.Helper()
	ids := append(testTokenizer().EncodeWithSpecials(text), stops(t)[0])
	finish := "stop"
	if limit := int(body["max_tokens"].(float64)); len(ids) > limit {
		ids, finish = ids[:limit], "length"
	}
	logProbs := make([]any, len(ids))
	for i := range ids {
		logProbs[i] = -0.125 * float64(i+1)
	}
	return map[string]any{"model": body["model"], "choices": []any{map[string]any{
		"text": testTokenizer().DecodeText(ids), "finish_reason": finish, "token_ids": ids, "prompt_token_ids": body["prompt"],
		"logprobs": map[string]any{"token_logprobs": logProbs},
	}}}
}

// fake serves vLLM's answers; spoil changes them after the probe.
func fake(t testing.TB, seen *[]map[string]any, spoil func(answer, choice map[string]any)) string {
	return answering(t, func(n int, w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		if seen != nil {
			*seen = append(*seen, body)
		}
		a := reply(t, body, "The answer is 408.")
		if n > 0 && spoil != nil {
			spoil(a, a["choices"].([]any)[0].(map[string]any))
		}
		_ = json.NewEncoder(w).Encode(a)
	})
}

func TestAForeignServersAnswerIsATurnWithoutEntropies(t *testing.T) {
	var seen []map[string]any
	c := connect(t, options(fake(t, &seen, nil), VLLM))
	r := request(t, 3)
	g, err := c.Generate(bounded(t), r)
	if err != nil {
		t.Fatal(err)
	}
	want := append(testTokenizer().EncodeWithSpecials("The answer is 408."), r.Stop[0])
	if !slices.Equal(g.IDs, want) || len(g.LogProbs) != len(want) || g.LogProbs[1] != -0.25 || g.Entropy != nil || g.Finish != engine.FinishStop || g.Version != "tiny" {
		t.Errorf("turn %+v, want ids %v", g, want)
	}
	asked := seen[1]
	for key, want := range map[string]any{"top_p": 1.0, "top_k": -1.0, "min_p": 0.0, "repetition_penalty": 1.0, "presence_penalty": 0.0,
		"frequency_penalty": 0.0, "temperature": 1.0, "return_token_ids": true, "logprobs": 0.0, "add_special_tokens": false} {
		if asked[key] != want {
			t.Errorf("%s was sent as %v, want %v: a missing one is taken from the model's generation config", key, asked[key], want)
		}
	}
	if asked["seed"].(float64) < 0 || asked["address"] != nil || fmt.Sprint(asked["stop_token_ids"]) != fmt.Sprint(stops(t)) {
		t.Errorf("seed %v, address %v, stops %v", asked["seed"], asked["address"], asked["stop_token_ids"])
	}
	other := request(t, 4)
	if c.body(other).Seed == c.body(r).Seed || c.body(r).Seed != c.body(request(t, 3)).Seed {
		t.Error("seeds are not those of addresses")
	}
}

func TestAnswersThatBreakTokenExactnessAreRefused(t *testing.T) {
	first := func(c map[string]any) []any { return c["logprobs"].(map[string]any)["token_logprobs"].([]any) }
	for name, x := range map[string]struct {
		spoil func(a, c map[string]any)
		want  string
	}{
		"no ids":                 {func(a, c map[string]any) { delete(c, "token_ids") }, "return_token_ids"},
		"no prompt ids":          {func(a, c map[string]any) { delete(c, "prompt_token_ids") }, "0 prompt ids"},
		"a token before":         {func(a, c map[string]any) { c["prompt_token_ids"] = append([]any{1}, c["prompt_token_ids"].([]any)...) }, "adds, cuts"},
		"a prompt cut":           {func(a, c map[string]any) { c["prompt_token_ids"] = c["prompt_token_ids"].([]any)[1:] }, "adds, cuts"},
		"no log-probs":           {func(a, c map[string]any) { c["logprobs"] = nil }, "0 log-probs"},
		"a log-prob too few":     {func(a, c map[string]any) { c["logprobs"] = map[string]any{"token_logprobs": first(c)[1:]} }, "want as many"},
		"a missing log-prob":     {func(a, c map[string]any) { first(c)[2] = nil }, "is missing"},
		"minus infinity of vLLM": {func(a, c map[string]any) { first(c)[2] = -9999.0 }, "-9999"},
		"a probability":          {func(a, c map[string]any) { first(c)[2] = 0.5 }, "is 0.5"},
		"another vocabulary":     {func(a, c map[string]any) { c["text"] = "Die Antwort ist 408." }, "different vocabularies"},
		"ids beyond it":          {func(a, c map[string]any) { c["token_ids"].([]int32)[1] = 1 << 20 }, "outside the vocabulary"},
		"stop token cut off": {func(a, c map[string]any) {
			ids := c["token_ids"].([]int32)
			c["token_ids"], c["logprobs"] = ids[:len(ids)-1], map[string]any{"token_logprobs": first(c)[1:]}
		}, "one of the stop tokens"},
		"aborted":       {func(a, c map[string]any) { c["finish_reason"] = "abort" }, `"abort"`},
		"another model": {func(a, c map[string]any) { a["model"] = "tiny-base" }, `"tiny-base"`},
		"two answers":   {func(a, c map[string]any) { a["choices"] = append(a["choices"].([]any), c) }, "2 answers"},
		"too many ids": {func(a, c map[string]any) {
			ids := c["token_ids"].([]int32)
			c["token_ids"] = append(slices.Repeat(ids[:1], 40), ids...)
		}, "at most the 40"},
	} {
		calls := 0
		c := connect(t, options(fake(t, nil, func(a, ch map[string]any) { calls++; x.spoil(a, ch) }), VLLM))
		_, err := c.Generate(bounded(t), request(t, 0))
		if !errors.Is(err, ErrInexact) || !strings.Contains(err.Error(), x.want) || calls != 1 {
			t.Errorf("%s: error %v after %d requests, want one that says %q after one", name, err, calls, x.want)
		}
	}
}

func TestTrap04RequestsThatAServerCannotMeetExactlyAreNotSent(t *testing.T) {
	for name, x := range map[string]struct {
		mode   LogProbs
		change func(*engine.Request)
		ok     bool
	}{
		"raw, tempered":               {Raw, func(r *engine.Request) { r.Temperature = 0.7 }, false},
		"raw, cut by top-p":           {Raw, func(r *engine.Request) { r.TopP = 0.9 }, false},
		"raw, greedy":                 {Raw, func(r *engine.Request) { r.Temperature = 0 }, true},
		"raw, top-p of 1":             {Raw, func(r *engine.Request) { r.TopP = 1 }, true},
		"tempered, tempered":          {Tempered, func(r *engine.Request) { r.Temperature = 0.7 }, true},
		"tempered, cut by top-k":      {Tempered, func(r *engine.Request) { r.TopK = 5 }, false},
		"processed, tempered and cut": {Processed, func(r *engine.Request) { r.Temperature, r.TopP, r.TopK = 0.7, 0.9, 5 }, true},
		"alternatives":                {Processed, func(r *engine.Request) { r.TopLogProbs = 2 }, false},
		"no context":                  {Processed, func(r *engine.Request) { r.IDs = nil }, false},
	} {
		var seen []map[string]any
		o := options(fake(t, &seen, nil), VLLM)
		o.LogProbs = x.mode
		c := connect(t, o)
		r := request(t, 0)
		x.change(&r)
		_, err := c.Generate(bounded(t), r)
		if (err == nil) != x.ok || !x.ok && !errors.Is(err, ErrRefused) || len(seen) != map[bool]int{true: 2, false: 1}[x.ok] {
			t.Errorf("%s: error %v after %d requests", name, err, len(seen))
		}
	}
}

func TestAServerThatCannotBeAnEngineIsRefusedBeforeTheRun(t *testing.T) {
	url := answering(t, func(_ int, w http.ResponseWriter, r *http.Request) { // an OpenAI server of long ago
		fmt.Fprint(w, `{"model": "tiny", "choices": [{"text": "The", "finish_reason": "length", "logprobs": {"token_logprobs": [-1]}}]}`)
	})
	if _, err := New(bounded(t), options(url, VLLM), request(t, 0)); !errors.Is(err, ErrInexact) || !strings.Contains(err.Error(), url) {
		t.Errorf("error %v", err)
	}
}

func TestAServerInTroubleIsAskedAgainAndAMistakeIsNot(t *testing.T) {
	for name, x := range map[string]struct {
		trouble  func(w http.ResponseWriter)
		failures int
		calls    int
		want     string // "" succeeds
	}{
		"full, then well":       {func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) }, 2, 3, ""},
		"failing for ever":      {func(w http.ResponseWriter) { http.Error(w, "out of memory", http.StatusInternalServerError) }, 99, 3, "out of memory"},
		"hanging up, then well": {func(w http.ResponseWriter) { panic(http.ErrAbortHandler) }, 1, 2, ""},
		"refusing":              {func(w http.ResponseWriter) { http.Error(w, "too long", http.StatusBadRequest) }, 99, 1, "too long"},
		"without the key":       {func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) }, 99, 1, "key"},
		"no JSON":               {func(w http.ResponseWriter) { fmt.Fprint(w, "<html>") }, 99, 1, "not the JSON"},
	} {
		calls := 0
		url := answering(t, func(n int, w http.ResponseWriter, r *http.Request) {
			var body map[string]any
			_ = json.NewDecoder(r.Body).Decode(&body)
			if n > 0 {
				if calls++; calls <= x.failures {
					x.trouble(w)
					return
				}
			}
			_ = json.NewEncoder(w).Encode(reply(t, body, "408"))
		})
		c := connect(t, options(url, VLLM))
		_, err := c.Generate(bounded(t), request(t, 0))
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) || calls != x.calls {
			t.Errorf("%s: error %v after %d requests, want %q after %d", name, err, calls, x.want, x.calls)
		}
	}
}

func TestAStuckServerEndsWithTheAttempt(t *testing.T) {
	free := make(chan struct{})
	url := answering(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n > 0 {
			<-free
			return
		}
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		_ = json.NewEncoder(w).Encode(reply(t, body, "408"))
	})
	defer close(free)
	o := options(url, VLLM)
	c := connect(t, o)
	c.opt.Timeout, c.opt.Attempts = 20*time.Millisecond, 2
	if _, err := c.Generate(bounded(t), request(t, 0)); err == nil || !strings.Contains(err.Error(), "attempt 2") || !strings.Contains(err.Error(), url) {
		t.Errorf("error %v", err)
	}
}
