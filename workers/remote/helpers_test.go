package remote

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/serve"
	"github.com/restar-rl/restar/workers/tokenizer"
)

var _ agent.Engine = (*Client)(nil)

var testTokenizer = sync.OnceValue(func() *tokenizer.Tokenizer {
	t, err := tokenizer.Train([]string{"What is 12 * 34? The answer is 408. print(12 * 34) <reason> </reason> user assistant"}, 300, tokenizer.Markers())
	if err != nil {
		panic(err)
	}
	return t
})

func stops(t testing.TB) []int32 {
	t.Helper()
	var out []int32
	for _, name := range []string{tokenizer.TurnEnd, tokenizer.EndOfText} {
		id, ok := testTokenizer().SpecialID(name)
		if !ok {
			t.Fatalf("no %s", name)
		}
		out = append(out, id)
	}
	return out
}

func localEngine(t testing.TB) *engine.Engine {
	t.Helper()
	m, err := model.New(model.Config{Family: model.Qwen3, VocabSize: testTokenizer().VocabSize(), HiddenSize: 32, IntermediateSize: 64, Layers: 2,
		Heads: 2, KVHeads: 1, HeadDim: 16, MaxPosition: 2048, RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true, InitializerRange: 0.3}, 5)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(m, "tiny", engine.Options{Blocks: 256})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// served is restar serve over an engine.
func served(t testing.TB, e *engine.Engine) string {
	t.Helper()
	s, err := serve.New(e, testTokenizer(), serve.Options{Model: "tiny", Stop: stops(t), Positions: 2048})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	return server.URL
}

func options(url string, d Dialect) Options {
	return Options{URL: url, Model: "tiny", Dialect: d, Vocab: testTokenizer().VocabSize(), Text: testTokenizer().DecodeText,
		Timeout: time.Minute, Attempts: 3, Base: time.Microsecond, Cap: time.Millisecond}
}

func request(t testing.TB, sample int) engine.Request {
	t.Helper()
	prompt := tokenizer.Template{System: "Be brief.", Instruction: "Solve: "}.PromptIDs(testTokenizer(), "What is 12 * 34?"[:8+sample%9])
	return engine.Request{Session: fmt.Sprint("s", sample), IDs: prompt, MaxNew: 40, Temperature: 1, Stop: stops(t), Seed: 1<<63 + 9,
		Address: philox.Address{Purpose: philox.Rollout, Stage: 1, Iteration: 300, Ordinal: 2, Sample: sample, Turn: 1}}
}

func connect(t testing.TB, o Options) *Client {
	t.Helper()
	c, err := New(bounded(t), o, request(t, 0))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// answering is a server of fixed answers; each request is passed to answer with its number, from 0.
func answering(t testing.TB, answer func(n int, w http.ResponseWriter, r *http.Request)) string {
	t.Helper()
	var mu sync.Mutex
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		k := n
		n++
		mu.Unlock()
		answer(k, w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
