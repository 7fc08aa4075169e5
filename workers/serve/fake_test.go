package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/tokenizer"
)

// scripted is an engine that says what it is told to, one token after the other.
type scripted struct {
	tok  *tokenizer.Tokenizer
	says func(engine.Request) string // text of an answer; the end of the turn is added
	gate chan struct{}               // if not nil, each token waits for one receive or the request's end

	mu       sync.Mutex
	requests []engine.Request
	gaveUp   int
}

func (f *scripted) Stats() engine.Stats {
	return engine.Stats{TotalBlocks: 64, FreeBlocks: 40, IdleBlocks: 4, GeneratedTokens: 7, PrefillTokens: 11, CachedTokens: 13, Steps: 5}
}

func (f *scripted) Release(string) {}

func (f *scripted) Generate(ctx context.Context, req engine.Request) (engine.Generation, error) {
	f.mu.Lock()
	f.requests = append(f.requests, req)
	f.mu.Unlock()
	end, ok := f.tok.SpecialID(tokenizer.TurnEnd)
	if !ok {
		end, _ = f.tok.SpecialID(tokenizer.EndOfText)
	}
	ids := append(f.tok.EncodeWithSpecials(f.says(req)), end)
	gen := engine.Generation{Finish: engine.FinishStop}
	if len(ids) > req.MaxNew {
		ids, gen.Finish = ids[:req.MaxNew], engine.FinishLength
	}
	for i, id := range ids {
		if f.gate != nil {
			select {
			case <-f.gate:
			case <-ctx.Done():
				f.mu.Lock()
				f.gaveUp++
				f.mu.Unlock()
				return gen, ctx.Err()
			}
		}
		t := engine.Token{ID: id, LogProb: -0.25 * float32(1+i%4)}
		for k := range req.TopLogProbs {
			t.TopLogProbs = append(t.TopLogProbs, model.Likely{ID: id - int32(k), LogP: t.LogProb - float32(k)})
		}
		req.OnToken(t)
		gen.IDs, gen.LogProbs, gen.Entropy = append(gen.IDs, id), append(gen.LogProbs, t.LogProb), append(gen.Entropy, 0)
	}
	return gen, nil
}

func (f *scripted) last(t *testing.T) engine.Request {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.requests) == 0 {
		t.Fatal("the engine was not asked")
	}
	return f.requests[len(f.requests)-1]
}

func (f *scripted) givenUp() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.gaveUp
}

func testTokenizer(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	tpl := tokenizer.Template{Tools: []tokenizer.Tool{tokenizer.PythonTool(tokenizer.DefaultToolName)}}
	tok, err := tokenizer.Train([]string{tpl.Prompt("What is 6 times 7?"), "the quick brown fox\nprint(6 * 7)\n"}, 480, tokenizer.Markers())
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// stopsOf are the ids that end an answer.
func stopsOf(tok *tokenizer.Tokenizer) []int32 {
	end, _ := tok.SpecialID(tokenizer.TurnEnd)
	text, _ := tok.SpecialID(tokenizer.EndOfText)
	return []int32{end, text}
}

// testOptions make every name and time of an answer the same in every run.
func testOptions(tok *tokenizer.Tokenizer) Options {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return Options{Model: "tiny", Stop: stopsOf(tok), Positions: 4096, Now: func() time.Time { return at }, Seed: func() uint64 { return 42 },
		Template: tokenizer.Template{System: "Be brief."}}
}

func says(text string) func(engine.Request) string {
	return func(engine.Request) string { return text }
}

// start serves a scripted engine.
func start(t testing.TB, f *scripted, change ...func(*Options)) string {
	t.Helper()
	if f.tok == nil {
		f.tok = testTokenizer(t)
	}
	o := testOptions(f.tok)
	for _, c := range change {
		c(&o)
	}
	s, err := New(f, f.tok, o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	return server.URL
}

// reply is an answer as it came over the wire.
type reply struct {
	code   int
	header http.Header
	body   string
}

func post(t testing.TB, url, body string) reply {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return read(t, resp)
}

func get(t *testing.T, url string) reply {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, resp)
}

func read(t testing.TB, resp *http.Response) reply {
	t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(body)}
}

// decoded reads a reply of code 200.
func decoded[T any](t *testing.T, r reply) (out T) {
	t.Helper()
	if r.code != http.StatusOK {
		t.Fatalf("status %d: %s", r.code, r.body)
	}
	if err := json.Unmarshal([]byte(r.body), &out); err != nil {
		t.Fatalf("%v in %s", err, r.body)
	}
	return out
}

// streamedEvents reads the events of a stream, which must end with [DONE].
func streamedEvents[T any](t *testing.T, r reply) (out []T) {
	t.Helper()
	if r.code != http.StatusOK || r.header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("status %d, %q: %s", r.code, r.header.Get("Content-Type"), r.body)
	}
	done := false
	lines := bufio.NewScanner(strings.NewReader(r.body))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case lines.Text() == "":
		case !ok || done:
			t.Fatalf("line %q in %s", lines.Text(), r.body)
		case data == "[DONE]":
			done = true
		default:
			var v T
			if err := json.Unmarshal([]byte(data), &v); err != nil {
				t.Fatalf("%v in %s", err, data)
			}
			out = append(out, v)
		}
	}
	if !done {
		t.Fatalf("the stream has no end: %s", r.body)
	}
	return out
}

// joined puts the answers of a chat stream together.
func joined(events []chatResponse, n int) []string {
	texts := make([]string, n)
	for _, e := range events {
		for _, c := range e.Choices {
			if c.Delta != nil && c.Delta.Content != nil {
				texts[c.Index] += *c.Delta.Content
			}
		}
	}
	return texts
}

// eventually waits for what another goroutine is about to do.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited 20 s in vain: %s", what)
		}
	}
}

// pretty indents JSON for a transcript.
func pretty(body string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(body), "", "  ") != nil {
		return body
	}
	return b.String()
}

func chatBody(rest string, messages ...string) string {
	if len(messages) == 0 {
		messages = []string{`{"role": "user", "content": "What is 6 times 7?"}`}
	}
	return fmt.Sprintf(`{"model": "tiny", "messages": [%s]%s}`, strings.Join(messages, ", "), rest)
}
