package serve

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/tokenizer"
)

// chatRequest is the body of /v1/chat/completions.
type chatRequest struct {
	sampling
	Messages            []message       `json:"messages"`
	Tools               []toolJSON      `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	ParallelToolCalls   *bool           `json:"parallel_tool_calls"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	LogProbs            bool            `json:"logprobs"`
	TopLogProbs         *int            `json:"top_logprobs"`
	ResponseFormat      *struct {
		Type string `json:"type"`
	} `json:"response_format"`
}

// message is one turn of a conversation as clients write it.
type message struct {
	Role       string         `json:"role"`
	Content    content        `json:"content"`
	Name       string         `json:"name"`
	ToolCalls  []toolCallJSON `json:"tool_calls"`
	ToolCallID string         `json:"tool_call_id"`
	Refusal    *string        `json:"refusal"` // part of what answers look like when they are handed back
}

// content is a text, or a list of text parts that belong together.
type content string

// UnmarshalJSON implements json.Unmarshaler.
func (c *content) UnmarshalJSON(b []byte) error {
	if string(b) == "null" || json.Unmarshal(b, (*string)(c)) == nil {
		return nil
	}
	var parts []struct{ Type, Text string }
	if err := json.Unmarshal(b, &parts); err != nil {
		return badRequest("messages", "a content is %.40s, want a text or a list of text parts", b)
	}
	var all strings.Builder
	for _, p := range parts {
		if p.Type != "text" {
			return badRequest("messages", "a content part has type %q, want text: the model reads nothing else", p.Type)
		}
		all.WriteString(p.Text)
	}
	*c = content(all.String())
	return nil
}

type toolJSON struct {
	Type     string          `json:"type"`
	Function json.RawMessage `json:"function"`
}

// toolCallJSON is a call of a tool, in answers and in messages that hand them back.
type toolCallJSON struct {
	Index    *int         `json:"index,omitempty"` // in streams
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function functionCall `json:"function"`
}

type functionCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// chatCheck refuses what is asked for and not done, and returns how many alternatives each token has.
func (r *chatRequest) chatCheck(maxChoices int) (top int, err error) {
	if r.MaxCompletionTokens != nil && r.MaxTokens != nil && *r.MaxCompletionTokens != *r.MaxTokens {
		return 0, badRequest("max_completion_tokens", "max_completion_tokens is %d and max_tokens is %d, give one", *r.MaxCompletionTokens, *r.MaxTokens)
	}
	if r.MaxCompletionTokens != nil {
		r.MaxTokens = r.MaxCompletionTokens
	}
	if err := r.check(maxChoices); err != nil {
		return 0, err
	}
	if f := r.ResponseFormat; f != nil && f.Type != "text" {
		return 0, badRequest("response_format", "response_format is %q, want text", f.Type)
	}
	switch choice := string(r.ToolChoice); choice {
	case "", "null", `"auto"`, `"none"`:
	default:
		return 0, badRequest("tool_choice", "tool_choice is %.60s, want auto or none: the model decides whether it calls a tool", choice)
	}
	top = value(r.TopLogProbs, 0)
	switch {
	case r.TopLogProbs != nil && !r.LogProbs:
		return 0, badRequest("top_logprobs", "top_logprobs is set without logprobs")
	case top < 0 || top > engine.MaxTopLogProbs:
		return 0, badRequest("top_logprobs", "top_logprobs is %d, want 0 to %d", top, engine.MaxTopLogProbs)
	}
	return top, nil
}

// callsTools tells whether the answer may hold calls.
func (r *chatRequest) callsTools() bool { return len(r.Tools) > 0 && string(r.ToolChoice) != `"none"` }

// toolName is OpenAI's form of a function's name.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// schemas returns the tools as the model reads them.
func (r *chatRequest) schemas() ([]string, error) {
	var lines []string
	for i, tool := range r.Tools {
		param := fmt.Sprintf("tools[%d]", i)
		var f struct{ Name string }
		if tool.Type != "function" {
			return nil, badRequest(param, "%s has type %q, want function", param, tool.Type)
		}
		if err := json.Unmarshal(tool.Function, &f); err != nil || !toolName.MatchString(f.Name) {
			return nil, badRequest(param, "%s has the name %q, want 1 to 64 letters, digits, _ and -", param, f.Name)
		}
		line, err := tokenizer.Compact([]byte(`{"type":"function","function":` + string(tool.Function) + `}`))
		if err != nil {
			return nil, badRequest(param, "%s: %v", param, err)
		}
		lines = append(lines, line)
	}
	if string(r.ToolChoice) == `"none"` {
		return nil, nil
	}
	return lines, nil
}
