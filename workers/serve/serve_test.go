package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/tokenizer"
)

func TestWhatIsNotUnderstoodIsRefusedByName(t *testing.T) {
	url := start(t, &scripted{says: says("x")})
	user := `{"role": "user", "content": "q"}`
	type c = struct{ path, body, param, want string }
	for name, c := range map[string]c{
		"unknown key":        {"chat/completions", chatBody(`, "top": 1`), "top", "not known"},
		"capitals":           {"chat/completions", chatBody(`, "Temperature": 1`), "Temperature", "not known"},
		"a key twice":        {"chat/completions", chatBody(`, "n": 1, "n": 2`), "n", "twice"},
		"null":               {"chat/completions", "null", "", "JSON object"},
		"a list":             {"chat/completions", "[]", "", "the request is a JSON array, want an object"},
		"list of messages":   {"chat/completions", `{"model": "tiny", "messages": "hi"}`, "messages", "messages is a JSON string, want a list"},
		"no question":        {"chat/completions", chatBody("", `{"role": "user", "content": null}`), "messages", "messages[0] is a user's without content"},
		"no model":           {"chat/completions", `{"messages": [` + user + `]}`, "model", "model is missing"},
		"no JSON":            {"chat/completions", `{"model"`, "", "not one JSON object"},
		"two objects":        {"chat/completions", chatBody("") + "{}", "", "after its JSON object"},
		"not UTF-8":          {"chat/completions", chatBody("", "{\"role\": \"user\", \"content\": \"\xff\"}"), "", "UTF-8"},
		"wrong type":         {"chat/completions", chatBody(`, "n": "2"`), "n", "want a whole number"},
		"fraction":           {"chat/completions", chatBody(`, "max_tokens": 1.5`), "max_tokens", "want a whole number"},
		"temperature":        {"chat/completions", chatBody(`, "temperature": 3`), "temperature", "0 to 2"},
		"top_p":              {"chat/completions", chatBody(`, "top_p": 1.5`), "top_p", "at most 1"},
		"top_k":              {"chat/completions", chatBody(`, "top_k": -2`), "top_k", "-2"},
		"n":                  {"chat/completions", chatBody(`, "n": 65`), "n", "1 to 64"},
		"no tokens":          {"chat/completions", chatBody(`, "max_tokens": 0`), "max_tokens", "at least 1"},
		"two limits":         {"chat/completions", chatBody(`, "max_tokens": 1, "max_completion_tokens": 2`), "max_completion_tokens", "give one"},
		"five stops":         {"chat/completions", chatBody(`, "stop": ["1", "2", "3", "4", "5"]`), "stop", "at most 4"},
		"empty stop":         {"chat/completions", chatBody(`, "stop": ""`), "stop", "empty"},
		"penalty":            {"chat/completions", chatBody(`, "presence_penalty": 0.5`), "presence_penalty", "not done"},
		"bias":               {"chat/completions", chatBody(`, "logit_bias": {"5": 1}`), "logit_bias", "not done"},
		"alternatives alone": {"chat/completions", chatBody(`, "top_logprobs": 2`), "top_logprobs", "without logprobs"},
		"alternatives":       {"chat/completions", chatBody(`, "logprobs": true, "top_logprobs": 21`), "top_logprobs", "0 to 20"},
		"usage alone":        {"chat/completions", chatBody(`, "stream_options": {"include_usage": true}`), "stream_options", "without stream"},
		"JSON mode":          {"chat/completions", chatBody(`, "response_format": {"type": "json_object"}`), "response_format", "want text"},
		"forced call":        {"chat/completions", chatBody(`, "tool_choice": "required"`), "tool_choice", "auto or none"},
		"bad tool":           {"chat/completions", chatBody(`, "tools": [{"type": "retrieval"}]`), "tools[0]", "want function"},
		"tool without name":  {"chat/completions", chatBody(`, "tools": [{"type": "function", "function": {"name": "a b"}}]`), "tools[0]", "letters"},
		"no message":         {"chat/completions", `{"model": "tiny", "messages": []}`, "messages", "no user message"},
		"system alone":       {"chat/completions", chatBody("", `{"role": "system", "content": "x"}`), "messages", "no user message"},
		"late system":        {"chat/completions", chatBody("", user, `{"role": "system", "content": "x"}`), "messages", "at the beginning only"},
		"role":               {"chat/completions", chatBody("", `{"role": "robot", "content": "x"}`), "messages", "no user message"},
		"late role":          {"chat/completions", chatBody("", user, `{"role": "robot", "content": "x"}`), "messages", "robot"},
		"prefill":            {"chat/completions", chatBody("", user, `{"role": "assistant", "content": "x"}`), "messages", "last message"},
		"two questions":      {"chat/completions", chatBody("", user, user), "messages", "alternate"},
		"picture":            {"chat/completions", chatBody("", `{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}`), "messages", "image_url"},
		"call of nobody":     {"chat/completions", chatBody("", user, `{"role": "assistant", "content": "x"}`, `{"role": "tool", "content": "y", "tool_call_id": "z"}`), "messages", `"z"`},
		"arguments":          {"chat/completions", chatBody("", user, `{"role": "assistant", "tool_calls": [{"id": "z", "type": "function", "function": {"name": "f", "arguments": "{"}}]}`, `{"role": "tool", "content": "y", "tool_call_id": "z"}`), "messages", "not JSON"},
		"no prompt":          {"completions", `{"model": "tiny"}`, "prompt", "missing"},
		"empty prompt":       {"completions", `{"model": "tiny", "prompt": ""}`, "prompt", "empty"},
		"odd prompt":         {"completions", `{"model": "tiny", "prompt": {"a": 1}}`, "prompt", "token ids"},
		"echo":               {"completions", `{"model": "tiny", "prompt": "a", "echo": true}`, "echo", "not done"},
		"best_of":            {"completions", `{"model": "tiny", "prompt": "a", "best_of": 3}`, "best_of", "n (1)"},
		"suffix":             {"completions", `{"model": "tiny", "prompt": "a", "suffix": "b"}`, "suffix", "not done"},
		"stop ids":           {"completions", `{"model": "tiny", "prompt": "a", "stop_token_ids": [-1]}`, "stop_token_ids", "vocabulary"},
		"unseeded address":   {"completions", `{"model": "tiny", "prompt": "a", "address": {}}`, "address", "a seed"},
		"address of many":    {"completions", `{"model": "tiny", "prompt": "a", "seed": 1, "n": 2, "address": {}}`, "address", "n 2"},
		"wide address":       {"completions", `{"model": "tiny", "prompt": "a", "seed": 1, "address": {"Sample": 65536}}`, "address", "out of range"},
		"many answers":       {"completions", `{"model": "tiny", "prompt": ["a", "b"], "n": 40}`, "prompt", "at most 64"},
	} {
		t.Run(name, func(t *testing.T) {
			r := post(t, url+"/v1/"+c.path, c.body)
			var e errorJSON
			if err := json.Unmarshal([]byte(r.body), &e); err != nil || r.code != http.StatusBadRequest {
				t.Fatalf("status %d (%v): %s", r.code, err, r.body)
			}
			if got := value(e.Error.Param, ""); got != c.param || !strings.Contains(e.Error.Message, c.want) || e.Error.Type != "invalid_request_error" {
				t.Errorf("param %q, type %q: %s; want %q and a message with %q", got, e.Error.Type, e.Error.Message, c.param, c.want)
			}
		})
	}
}

func TestOtherDoorsAreAnsweredInJSON(t *testing.T) {
	url := start(t, &scripted{says: says("x")}, func(o *Options) { o.MaxBody = 100 })
	for name, c := range map[string]struct {
		r    reply
		code int
	}{
		"method":     {get(t, url+"/v1/completions"), http.StatusMethodNotAllowed},
		"path":       {get(t, url+"/v2/x"), http.StatusNotFound},
		"model":      {get(t, url+"/v1/models/gpt"), http.StatusNotFound},
		"large body": {post(t, url+"/v1/completions", `{"model": "tiny", "prompt": "`+strings.Repeat("a", 200)+`"}`), http.StatusRequestEntityTooLarge},
	} {
		var e errorJSON
		if err := json.Unmarshal([]byte(c.r.body), &e); err != nil || c.r.code != c.code || e.Error.Message == "" {
			t.Errorf("%s: status %d (%v): %s; want %d", name, c.r.code, err, c.r.body, c.code)
		}
	}
	resp, err := http.Post(url+"/v1/completions", "text/plain", strings.NewReader("hi"))
	if err != nil {
		t.Fatal(err)
	}
	if r := read(t, resp); r.code != http.StatusUnsupportedMediaType {
		t.Errorf("text/plain: status %d: %s", r.code, r.body)
	}
	if r := get(t, url+"/health"); r.code != http.StatusOK || !strings.Contains(r.body, "ok") {
		t.Errorf("health: status %d: %s", r.code, r.body)
	}
	list := decoded[struct{ Data []modelJSON }](t, get(t, url+"/v1/models"))
	if len(list.Data) != 1 || list.Data[0].ID != "tiny" || list.Data[0].Context != 64*64 && list.Data[0].Context > 4096 {
		t.Errorf("models %+v", list.Data)
	}
}

func TestThePromptIsTheTemplatesOwn(t *testing.T) {
	f := &scripted{says: says("x")}
	url := start(t, f)
	body := chatBody(", "+pythonSchema, `{"role": "system", "content": "Sums only."}`, `{"role": "user", "content": [{"type": "text", "text": "What is "}, {"type": "text", "text": "6*7?<|im_end|>"}]}`,
		`{"role": "assistant", "content": "<reason>Hm. </reason>", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "python", "arguments": "{\"code\": \"1\"}"}}, {"id": "b", "type": "function", "function": {"name": "python", "arguments": "{}"}}]}`,
		`{"role": "tool", "content": "one", "tool_call_id": "a"}`, `{"role": "tool", "content": "two", "tool_call_id": "b"}`,
		`{"role": "assistant", "content": "<reason>ok</reason>"}`, `{"role": "user", "content": "more"}`)
	decoded[chatResponse](t, post(t, url+"/v1/chat/completions", body))
	tpl := tokenizer.Template{System: "Sums only.", Schemas: []string{
		`{"type": "function", "function": {"name": "python", "description": "Run <code>.", "parameters": {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}}}`}}
	call := func(arguments string) string {
		return "\n<tool_call>\n{\"name\": \"python\", \"arguments\": " + arguments + "}\n</tool_call>"
	}
	turns := []tokenizer.Turn{{Role: "assistant", Text: "Hm. </reason>" + call(`{"code": "1"}`) + call("{}")},
		{Role: "tool", Text: "one"}, {Role: "tool", Text: "two"}, {Role: "assistant", Text: "ok</reason>"}, {Role: "user", Text: "more"}}
	want := tpl.History(f.tok, "What is 6*7?<|im_end|>", turns)
	if got := f.last(t).IDs; !slices.Equal(got, want) {
		t.Errorf("prompt\n%s\nwant\n%s", f.tok.Decode(got), f.tok.Decode(want))
	}
	end, _ := f.tok.SpecialID(tokenizer.TurnEnd)
	count := 0
	for _, id := range f.last(t).IDs {
		if id == end {
			count++
		}
	}
	if count != 6 { // system, user, assistant, tools, assistant, user; the user's own one is text
		t.Errorf("%d turns end, want 6", count)
	}
	// Without tool_choice none the tools are shown; with it they are not, and calls stay text.
	f.says = says(callText)
	answer := decoded[chatResponse](t, post(t, url+"/v1/chat/completions", chatBody(`, "tool_choice": "none", `+pythonSchema)))
	if m := answer.Choices[0].Message; len(m.ToolCalls) != 0 || *m.Content != "<reason>"+callText || strings.Contains(f.tok.Decode(f.last(t).IDs), "<tools>") {
		t.Errorf("with tool_choice none: %+v", m)
	}
}

func TestABrokenCallStaysText(t *testing.T) {
	text := "</reason><tool_call>\n{\"name\": 1}\n</tool_call>"
	url := start(t, &scripted{says: says(text)})
	whole := decoded[chatResponse](t, post(t, url+"/v1/chat/completions", chatBody(", "+pythonSchema)))
	if c := whole.Choices[0]; *c.Message.Content != "<reason>"+text || len(c.Message.ToolCalls) != 0 || *c.Finish != finishStop {
		t.Errorf("choice %+v", c)
	}
	events := streamedEvents[chatResponse](t, post(t, url+"/v1/chat/completions", chatBody(`, "stream": true, `+pythonSchema)))
	if got := joined(events, 1)[0]; got != "<reason>"+text {
		t.Errorf("streamed %q", got)
	}
}

func TestACallThatIsCutOffIsNotRun(t *testing.T) {
	url := start(t, &scripted{says: says(callText + " and more")})
	for n := 20; n < 50; n += 3 {
		r := decoded[chatResponse](t, post(t, url+"/v1/chat/completions", chatBody(fmt.Sprintf(`, "max_tokens": %d, `, n)+pythonSchema)))
		if c := r.Choices[0]; *c.Finish == finishLength && len(c.Message.ToolCalls) > 0 {
			t.Errorf("after %d tokens the answer has calls: %+v", n, c)
		}
	}
}

func TestSamplingReachesTheEngine(t *testing.T) {
	f := &scripted{says: says("x")}
	url := start(t, f)
	decoded[completionResponse](t, post(t, url+"/v1/completions", `{"model": "tiny", "prompt": [5, 6], "temperature": 0.5, "top_p": 0.9, "top_k": 7, "seed": -3, "max_tokens": 9, "logprobs": 4, "user": "me", "metadata": {"a": "b"}}`))
	r := f.last(t)
	if !slices.Equal(r.IDs, []int32{5, 6}) || r.Temperature != 0.5 || r.TopP != 0.9 || r.TopK != 7 || r.Seed != ^uint64(2) || r.MaxNew != 9 || r.TopLogProbs != 4 || !slices.Equal(r.Stop, stopsOf(f.tok)) {
		t.Errorf("request %+v", r)
	}
	decoded[completionResponse](t, post(t, url+"/v1/completions", `{"model": "tiny", "prompt": "a"}`))
	if r := f.last(t); r.Temperature != 1 || r.TopP != 0 || r.TopK != 0 || r.Seed != 42 || r.MaxNew != 16 {
		t.Errorf("defaults %+v", r)
	}
	decoded[chatResponse](t, post(t, url+"/v1/chat/completions", chatBody("")))
	if r := f.last(t); r.MaxNew != 64*64-len(r.IDs) && r.MaxNew != 4096-len(r.IDs) {
		t.Errorf("a chat without a limit may sample %d tokens after %d", r.MaxNew, len(r.IDs))
	}
}

func TestEveryAnswerOfARequestHasARandomnessOfItsOwn(t *testing.T) {
	f := &scripted{}
	f.says = func(r engine.Request) string { return strconv.Itoa(r.Address.Ordinal) + strconv.Itoa(r.Address.Sample) }
	url := start(t, f)
	r := decoded[completionResponse](t, post(t, url+"/v1/completions", `{"model": "tiny", "prompt": ["a", "b"], "n": 3}`))
	for i, want := range []string{"00", "01", "02", "10", "11", "12"} {
		if c := r.Choices[i]; c.Index != i || c.Text != want {
			t.Errorf("answer %d is %+v, want %q", i, c, want)
		}
	}
}

func TestAClientThatGoesAwayTakesItsGenerationWithIt(t *testing.T) {
	f := &scripted{says: says("a long answer that nobody waits for"), gate: make(chan struct{})}
	url := start(t, f)
	for _, stream := range []string{"false", "true"} {
		before := f.givenUp()
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/completions", strings.NewReader(`{"model": "tiny", "prompt": "a", "stream": `+stream+`}`))
		if err != nil {
			t.Fatal(err)
		}
		gone := make(chan error, 1)
		go func() {
			resp, err := http.DefaultClient.Do(req)
			if err == nil {
				_, err = resp.Body.Read(make([]byte, 1<<16))
				for err == nil {
					_, err = resp.Body.Read(make([]byte, 1<<16))
				}
				resp.Body.Close()
			}
			gone <- err
		}()
		f.gate <- struct{}{} // the generation runs
		cancel()
		<-gone
		eventually(t, "the engine learns that the client has gone", func() bool { return f.givenUp() > before })
	}
}

func TestALongQueueIsToldToComeBack(t *testing.T) {
	f := &scripted{says: says("yes"), gate: make(chan struct{})}
	url := start(t, f, func(o *Options) { o.MaxWaiting = 2 })
	body := `{"model": "tiny", "prompt": "a", "n": 2}`
	done := make(chan reply, 1)
	go func() { done <- post(t, url+"/v1/completions", body) }()
	eventually(t, "both answers reach the engine", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.requests) == 2 })
	r := post(t, url+"/v1/completions", `{"model": "tiny", "prompt": "b"}`)
	after, err := strconv.Atoi(r.header.Get("Retry-After"))
	if r.code != http.StatusTooManyRequests || err != nil || after < 1 || !strings.Contains(r.body, "rate_limit_error") {
		t.Errorf("status %d, Retry-After %q: %s", r.code, r.header.Get("Retry-After"), r.body)
	}
	close(f.gate)
	if r := <-done; r.code != http.StatusOK {
		t.Errorf("the answers that waited: status %d: %s", r.code, r.body)
	}
	decoded[completionResponse](t, post(t, url+"/v1/completions", `{"model": "tiny", "prompt": "b"}`)) // there is room again
}

func TestARequestThatTakesTooLongIsEnded(t *testing.T) {
	f := &scripted{says: says("never"), gate: make(chan struct{})}
	url := start(t, f, func(o *Options) { o.Timeout = 50 * time.Millisecond })
	if r := post(t, url+"/v1/completions", `{"model": "tiny", "prompt": "a"}`); r.code != http.StatusGatewayTimeout || !strings.Contains(r.body, "timeout") {
		t.Errorf("status %d: %s", r.code, r.body)
	}
}

func TestAClientMayWaitLongerForItsAnswerThanItMayTakeToAsk(t *testing.T) {
	f := &scripted{says: says("slow"), gate: make(chan struct{})}
	url := start(t, f, func(o *Options) { o.ReadTimeout = 100 * time.Millisecond })
	done := make(chan reply, 1)
	go func() { done <- post(t, url+"/v1/completions", `{"model": "tiny", "prompt": "a"}`) }()
	f.gate <- struct{}{}
	time.Sleep(200 * time.Millisecond) // longer than the request may take to be sent
	close(f.gate)
	if r := <-done; r.code != http.StatusOK || !strings.Contains(r.body, "slow") {
		t.Errorf("status %d: %s", r.code, r.body)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprint(conn, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 408") {
		t.Errorf("to half a request: %q (%v)", answer, err)
	}
}

func TestAModelWithoutTurnMarkersHasCompletionsOnly(t *testing.T) {
	tok, err := tokenizer.Train([]string{"the quick brown fox"}, 300, []string{tokenizer.EndOfText})
	if err != nil {
		t.Fatal(err)
	}
	f := &scripted{tok: tok, says: says("fox")}
	url := start(t, f)
	if r := post(t, url+"/v1/chat/completions", chatBody("")); r.code != http.StatusBadRequest || !strings.Contains(r.body, "<|im_start|>") {
		t.Errorf("chat: status %d: %s", r.code, r.body)
	}
	if r := decoded[completionResponse](t, post(t, url+"/v1/completions", `{"model": "tiny", "prompt": "the"}`)); r.Choices[0].Text != "fox" {
		t.Errorf("completion %+v", r)
	}
}

// serving runs Serve and returns its address, the function that asks it to end, and what it returned.
func serving(t *testing.T, f *scripted, drain time.Duration) (url string, end func(), ended chan error) {
	t.Helper()
	f.tok = testTokenizer(t)
	s, err := New(f, f.tok, testOptions(f.tok))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended = make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l, drain) }()
	return "http://" + l.Addr().String(), cancel, ended
}

func TestAServerThatEndsFinishesWhatItHasBegun(t *testing.T) {
	f := &scripted{says: says("an answer"), gate: make(chan struct{})}
	url, end, ended := serving(t, f, time.Minute)
	done := make(chan reply, 1)
	go func() { done <- post(t, url+"/v1/completions", `{"model": "tiny", "prompt": "a"}`) }()
	f.gate <- struct{}{}
	end()
	eventually(t, "the server refuses connections", func() bool {
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	close(f.gate)
	if r := <-done; r.code != http.StatusOK || !strings.Contains(r.body, "an answer") {
		t.Errorf("status %d: %s", r.code, r.body)
	}
	if err := <-ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func TestAServerThatEndsDoesNotWaitForEver(t *testing.T) {
	f := &scripted{says: says("an answer"), gate: make(chan struct{})}
	url, end, ended := serving(t, f, 20*time.Millisecond)
	failed := make(chan error, 1)
	go func() {
		resp, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(`{"model": "tiny", "prompt": "a"}`))
		if err == nil {
			resp.Body.Close()
		}
		failed <- err
	}()
	f.gate <- struct{}{}
	end()
	if err := <-ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
	<-failed
	eventually(t, "the generation ends too", func() bool { return f.givenUp() == 1 })
}

func TestMetricsTellOfRequestsTokensAndBlocks(t *testing.T) {
	url := start(t, &scripted{says: says("yes")})
	decoded[completionResponse](t, post(t, url+"/v1/completions", `{"model": "tiny", "prompt": [5, 6, 7]}`))
	post(t, url+"/v1/completions", `{`)
	page := get(t, url+"/metrics")
	for _, want := range []string{
		`restar_requests_total{endpoint="completions",status="200"} 1`, `restar_requests_total{endpoint="completions",status="400"} 1`,
		`restar_prompt_tokens_total 3`, `restar_kv_blocks{state="free"} 40`, `restar_kv_blocks{state="used"} 20`, `restar_kv_blocks{state="idle"} 4`,
		`restar_answers{state="running"} 0`, `restar_answers{state="waiting"} 0`, `restar_time_to_first_token_seconds_count 1`,
		`restar_request_duration_seconds_bucket{endpoint="completions",le="0.005"} 2`, `restar_engine_tokens_total{kind="cached"} 13`,
	} {
		if !strings.Contains(page.body, want+"\n") {
			t.Errorf("the page lacks %s:\n%s", want, page.body)
		}
	}
}
