package serve

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/restar-rl/restar/workers/tokenizer"
)

// conversation is what messages come to: the template's terms.
type conversation struct {
	template tokenizer.Template
	question string
	turns    []tokenizer.Turn
}

// conversation reads messages: a system message if any, the user's question, and then turns up to a user's or a tool's, which
// the answer follows.
func (s *Server) conversation(r *chatRequest) (conversation, error) {
	c := conversation{template: s.opt.Template}
	var err error
	if c.template.Schemas, err = r.schemas(); err != nil {
		return c, err
	}
	list, first := r.Messages, 0
	if len(list) > 0 && (list[0].Role == "system" || list[0].Role == "developer") {
		if c.template.System = string(list[0].Content); c.template.System == "" {
			return c, badRequest("messages", "messages[0] is a system message without content; leave it out")
		}
		first = 1
	}
	if len(list) <= first || list[first].Role != tokenizer.RoleUser {
		return c, badRequest("messages", "messages has no user message at position %d; a conversation begins with a user's, after a system message if there is one", first)
	}
	c.question = string(list[first].Content)
	calls := map[string]bool{}
	for i := first; i < len(list); i++ {
		if err := list[i].check(i, calls); err != nil {
			return c, err
		}
		if i == first {
			continue
		}
		if list[i].Role == list[i-1].Role && list[i].Role != tokenizer.RoleTool {
			return c, badRequest("messages", "messages[%d] and [%d] are both of the %s; turns alternate", i-1, i, list[i].Role)
		}
		turn, err := list[i].turn(i)
		if err != nil {
			return c, err
		}
		c.turns = append(c.turns, turn)
	}
	if list[len(list)-1].Role == "assistant" {
		return c, badRequest("messages", "the last message is the assistant's; an answer follows a user's or a tool's")
	}
	return c, nil
}

// check refuses fields that do not belong to the message's role. calls holds the ids of the calls so far.
func (m message) check(i int, calls map[string]bool) error {
	refuse := func(format string, args ...any) error {
		return badRequest("messages", "messages[%d] %s", i, fmt.Sprintf(format, args...))
	}
	switch m.Role {
	case tokenizer.RoleUser, tokenizer.RoleTool, tokenizer.RoleAssistant:
	case "system", "developer":
		return refuse("is a %s message, which may stand at the beginning only", m.Role)
	default:
		return refuse("has role %q, want system, user, assistant or tool", m.Role)
	}
	if m.Role == tokenizer.RoleUser && m.Content == "" {
		return refuse("is a user's without content, want a text")
	}
	if len(m.ToolCalls) > 0 && m.Role != tokenizer.RoleAssistant {
		return refuse("has tool_calls, which are the assistant's")
	}
	for _, call := range m.ToolCalls {
		if call.ID == "" || call.Type != "function" || call.Function.Name == "" {
			return refuse("has a tool call with id %q, type %q and name %q; want an id, function and a name", call.ID, call.Type, call.Function.Name)
		}
		calls[call.ID] = true
	}
	if m.Role == tokenizer.RoleTool && !calls[m.ToolCallID] {
		return refuse("answers the call %q, which no message before it makes; set tool_call_id", m.ToolCallID)
	}
	if m.Role != tokenizer.RoleTool && m.ToolCallID != "" {
		return refuse("has a tool_call_id, which is a tool's")
	}
	return nil
}

// turn returns the message as the model wrote or reads it. The opening <reason> that answers are given with is the template's.
func (m message) turn(i int) (tokenizer.Turn, error) {
	if m.Role != tokenizer.RoleAssistant {
		return tokenizer.Turn{Role: m.Role, Text: string(m.Content)}, nil
	}
	text := strings.TrimPrefix(string(m.Content), tokenizer.ReasonOpen)
	for _, call := range m.ToolCalls {
		if !json.Valid([]byte(call.Function.Arguments)) {
			return tokenizer.Turn{}, badRequest("messages", "messages[%d] has a tool call whose arguments are not JSON: %.60q", i, call.Function.Arguments)
		}
		name, err := marshal(call.Function.Name)
		if err != nil {
			return tokenizer.Turn{}, err
		}
		if text != "" {
			text += "\n"
		}
		text += fmt.Sprintf("%s\n{\"name\": %s, \"arguments\": %s}\n%s", tokenizer.ToolCallOpen, name, call.Function.Arguments, tokenizer.ToolCallClose)
	}
	return tokenizer.Turn{Role: m.Role, Text: text}, nil
}
