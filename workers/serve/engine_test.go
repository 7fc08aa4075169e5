package serve

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/model"
)

// startEngine serves a small random model on the real engine.
func startEngine(t *testing.T) string {
	t.Helper()
	tok := testTokenizer(t)
	m, err := model.New(model.Config{
		Family: model.Qwen3, VocabSize: 512, HiddenSize: 32, IntermediateSize: 64, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 16, MaxPosition: 1024,
		RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true, InitializerRange: 0.3,
	}, 5)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(m, "v1", engine.Options{Blocks: 64})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	o := testOptions(tok)
	o.Positions = m.Config.MaxPosition
	s, err := New(e, tok, o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	return server.URL
}

const sampled = `{"model": "tiny", "prompt": "the quick brown", "max_tokens": 24, "seed": 7, "temperature": 0.9, "top_p": 0.95, "logprobs": 3, "return_token_ids": true%s}`

func TestASeededAnswerDependsOnNothingElse(t *testing.T) {
	url := startEngine(t)
	alone := decoded[completionResponse](t, post(t, url+"/v1/completions", fmt.Sprintf(sampled, ""))).Choices[0]
	if len(alone.TokenIDs) < 2 || len(alone.LogProbs.LogProbs) != len(alone.TokenIDs) || len(alone.LogProbs.Top[0]) < 3 {
		t.Fatalf("answer %+v", alone)
	}
	var wg sync.WaitGroup
	for i := range 8 { // company of other lengths, seeds and settings
		wg.Go(func() {
			body := fmt.Sprintf(`{"model": "tiny", "messages": [{"role": "user", "content": "number %d"}], "n": 2, "max_tokens": %d, "seed": %d}`, i, 5+7*i, i)
			decoded[chatResponse](t, post(t, url+"/v1/chat/completions", body))
		})
		wg.Go(func() {
			got := decoded[completionResponse](t, post(t, url+"/v1/completions", fmt.Sprintf(sampled, `, "n": 3`))).Choices[0]
			if asText(t, got) != asText(t, alone) {
				t.Errorf("in company %+v, alone %+v", got, alone)
			}
		})
	}
	wg.Wait()
	var ids []int32
	text := ""
	for _, e := range streamedEvents[completionResponse](t, post(t, url+"/v1/completions", fmt.Sprintf(sampled, `, "stream": true`))) {
		ids = append(ids, e.Choices[0].TokenIDs...)
		text += e.Choices[0].Text
	}
	if !slices.Equal(ids, alone.TokenIDs) || text != alone.Text {
		t.Errorf("streamed %v %q, whole %v %q", ids, text, alone.TokenIDs, alone.Text)
	}
	other := decoded[completionResponse](t, post(t, url+"/v1/completions", `{"model": "tiny", "prompt": "the quick brown", "max_tokens": 24, "seed": 8, "return_token_ids": true}`))
	if slices.Equal(other.Choices[0].TokenIDs, alone.TokenIDs) {
		t.Error("another seed gives the same ids")
	}
}

func TestIDsOutsideTheVocabularyAreTheClientsMistake(t *testing.T) {
	url := startEngine(t)
	r := post(t, url+"/v1/completions", `{"model": "tiny", "prompt": [1, 512]}`)
	if r.code != 400 {
		t.Errorf("status %d: %s", r.code, r.body)
	}
}
