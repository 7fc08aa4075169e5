package serve

import (
	"fmt"
	"strings"

	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/tokenizer"
)

// calls takes the calls out of a finished answer. An answer with a block that is no call stays text as a whole: half of what
// the model meant must not run.
func (c *chat) calls(i int, text string) (string, []toolCallJSON) {
	parsed := agent.ParseToolCalls(text)
	var calls []toolCallJSON
	for n, p := range parsed {
		if p.Err != nil {
			return text, nil
		}
		calls = append(calls, toolCallJSON{
			ID:   fmt.Sprintf("call-%s-%d-%d", strings.TrimPrefix(c.head.ID, "chatcmpl-"), i, n),
			Type: "function", Function: functionCall{Name: p.Name, Arguments: string(p.Arguments)},
		})
	}
	if len(calls) == 0 {
		return text, nil
	}
	before, _, _ := strings.Cut(text, tokenizer.ToolCallOpen)
	return strings.TrimSuffix(before, "\n"), calls
}

// callFilter passes on the text of a streamed answer up to its first call and keeps the rest, with the line break before it.
type callFilter struct{ held string }

func (f *callFilter) add(more string) (text string) {
	const mark = "\n" + tokenizer.ToolCallOpen
	text = f.held + more
	at := strings.Index(text, tokenizer.ToolCallOpen)
	if at > 0 && text[at-1] == '\n' {
		at--
	}
	if at < 0 {
		at = len(text) - max(overlaps(text, []string{mark})[0], overlaps(text, []string{tokenizer.ToolCallOpen})[0])
	}
	f.held = text[at:]
	return text[:at]
}
