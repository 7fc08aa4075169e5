package serve

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata again")

const pythonSchema = `"tools": [{"type": "function", "function": {"name": "python", "description": "Run <code>.", "parameters": {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}}}]`

const callText = "I compute it. </reason>\n<tool_call>\n{\"name\": \"python\", \"arguments\": {\"code\": \"print(6 * 7)\"}}\n</tool_call>"

// Each case is a conversation over the wire whose every byte is kept in testdata.
var transcripts = map[string]struct{ says, path, body string }{
	"chat":        {"six sevens </reason>\n<answer>\\boxed{42}</answer>", "/v1/chat/completions", chatBody("")},
	"chat-stream": {"é 😀 </reason> 42", "/v1/chat/completions", chatBody(`, "stream": true, "stream_options": {"include_usage": true}`)},
	"chat-calls":  {callText, "/v1/chat/completions", chatBody(", " + pythonSchema)},
	"chat-calls-stream": {callText, "/v1/chat/completions",
		chatBody(`, "stream": true, ` + pythonSchema)},
	"chat-logprobs": {"42", "/v1/chat/completions", chatBody(`, "logprobs": true, "top_logprobs": 2, "return_token_ids": true, "max_completion_tokens": 2`)},
	"chat-choices":  {"yes", "/v1/chat/completions", chatBody(`, "n": 2, "stop": "s"`)},
	"text":          {"fox jumps", "/v1/completions", `{"model": "tiny", "prompt": "the quick brown", "max_tokens": 3, "logprobs": 1}`},
	"text-ids":      {"fox", "/v1/completions", `{"model": "tiny", "prompt": [[72, 73], [74]], "return_token_ids": true, "n": 2, "stop": ["x"]}`},
	"text-stream":   {"fox é", "/v1/completions", `{"model": "tiny", "prompt": "a", "stream": true, "stream_options": {"include_usage": true}, "return_token_ids": true, "logprobs": 0}`},
	"wrong-key":     {"", "/v1/chat/completions", chatBody(`, "temprature": 1`)},
	"wrong-value":   {"", "/v1/completions", `{"model": "tiny", "prompt": "a", "top_p": 0}`},
	"wrong-model":   {"", "/v1/completions", `{"model": "gpt-4", "prompt": "a"}`},
	"too-long":      {"", "/v1/completions", `{"model": "tiny", "prompt": "a", "max_tokens": 5000}`},
}

func TestAnswersAreTheBytesOfTheirTranscripts(t *testing.T) {
	for name, c := range transcripts {
		t.Run(name, func(t *testing.T) {
			url := start(t, &scripted{says: says(c.says)})
			r := post(t, url+c.path, c.body)
			got := fmt.Sprintf("POST %s\n%s\n\n%d %s\n%s", c.path, pretty(c.body), r.code, r.header.Get("Content-Type"), pretty(r.body))
			got = strings.TrimRight(got, "\n") + "\n"
			path := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
