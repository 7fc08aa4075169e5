package serve

import (
	"encoding/json"
	"math/rand"
	"strings"
	"testing"
)

// firstStop is the definition: the shortest beginning of the text that ends with a stop, without it.
func firstStop(text string, stops []string) (string, bool) {
	for end := range len(text) + 1 {
		shortest, found := end, false
		for _, stop := range stops {
			if strings.HasSuffix(text[:end], stop) {
				shortest, found = min(shortest, end-len(stop)), true
			}
		}
		if found {
			return text[:shortest], true
		}
	}
	return text, false
}

func TestTextEndsBeforeTheFirstStopHoweverTokensCutIt(t *testing.T) {
	tok := testTokenizer(t)
	rng := rand.New(rand.NewSource(1))
	pieces := []string{"a", "b", "ab", "aab", " ", "é", "😀", "\n", "</answer>", "the fox"}
	text := func(n int) (s string) {
		for range 1 + rng.Intn(n) {
			s += pieces[rng.Intn(len(pieces))]
		}
		return s
	}
	stopped := 0
	for range 3000 {
		answer, stops := text(12), []string{text(2), text(3)}
		c := newCutter(tok, stops)
		got, done := "", false
		for _, id := range tok.EncodeWithSpecials(answer) {
			more, end := c.add(id)
			got += more
			if done = end; done {
				break
			}
			if want, _ := firstStop(answer, stops); !strings.HasPrefix(want, got) {
				t.Fatalf("%q with stops %q told %q, which is not to stay", answer, stops, got)
			}
		}
		if !done {
			got += c.close()
		} else {
			stopped++
		}
		if want, end := firstStop(answer, stops); got != want || done != end {
			t.Fatalf("%q with stops %q gives %q (stopped %v), want %q (%v)", answer, stops, got, done, want, end)
		}
	}
	if stopped < 500 {
		t.Errorf("only %d of 3000 answers met a stop", stopped)
	}
}

func TestStreamedAndWholeAnswersAreTheSame(t *testing.T) {
	for _, text := range []string{"plain", "é😀 中文 </reason>\n<answer>1</answer>", callText, "x" + callText + "\n" + callText[len("I compute it. </reason>"):], "a\n<tool_cal", "\n", ""} {
		url := start(t, &scripted{says: says(text)})
		for _, rest := range []string{"", ", " + pythonSchema, `, "stop": ["ool", "\n"]`, `, "n": 3, "logprobs": true, "return_token_ids": true, ` + pythonSchema} {
			whole := decoded[chatResponse](t, post(t, url+"/v1/chat/completions", chatBody(rest)))
			events := streamedEvents[chatResponse](t, post(t, url+"/v1/chat/completions", chatBody(rest+`, "stream": true, "stream_options": {"include_usage": true}`)))
			texts := joined(events, len(whole.Choices))
			streamed := make([]chatChoice, len(whole.Choices))
			for _, e := range events {
				for _, c := range e.Choices {
					s := &streamed[c.Index]
					s.TokenIDs = append(s.TokenIDs, c.TokenIDs...)
					if c.LogProbs != nil {
						if s.LogProbs == nil {
							s.LogProbs = &chatLogProbs{}
						}
						s.LogProbs.Content = append(s.LogProbs.Content, c.LogProbs.Content...)
					}
					if s.Message == nil {
						s.Message = &chatMessage{Role: "assistant"}
					}
					for _, call := range c.Delta.ToolCalls {
						call.Index, call.ID = nil, ""
						s.Message.ToolCalls = append(s.Message.ToolCalls, call)
					}
					if c.Finish != nil {
						s.Finish = c.Finish
					}
				}
			}
			for i := range streamed {
				streamed[i].Index, streamed[i].Message.Content = i, &texts[i]
				for n := range whole.Choices[i].Message.ToolCalls {
					whole.Choices[i].Message.ToolCalls[n].ID = ""
				}
			}
			got, want := asText(t, streamed), asText(t, whole.Choices)
			if got != want {
				t.Errorf("%q with %s streams as\n%s\nwhole\n%s", text, rest, got, want)
			}
			if usage := events[len(events)-1].Usage; usage == nil || *usage != *whole.Usage {
				t.Errorf("%q: usage %+v, whole %+v", text, usage, whole.Usage)
			}
		}
	}
}

func asText(t *testing.T, v any) string {
	t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func FuzzRequests(f *testing.F) {
	for _, c := range transcripts {
		f.Add(c.path == "/v1/completions", c.body)
	}
	s := &scripted{says: says("42 </reason> " + callText)}
	url := start(f, s)
	f.Fuzz(func(t *testing.T, text bool, body string) {
		path := "/v1/chat/completions"
		if text {
			path = "/v1/completions"
		}
		if r := post(t, url+path, body); r.code >= 500 || r.code != 200 && !strings.Contains(r.body, `"error"`) {
			t.Fatalf("status %d for %s: %s", r.code, body, r.body)
		}
	})
}
