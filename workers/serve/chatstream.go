package serve

import (
	"net/http"

	"github.com/restar-rl/restar/workers/tokenizer"
)

// stream answers in server-sent events, as the tokens come.
func (c *chat) stream(w http.ResponseWriter, r *http.Request) error {
	c.head.Object = "chat.completion.chunk"
	out := &events{w: w}
	err := c.s.answers(r.Context(), []job{c.job}, func(i int, p part) error {
		if err := c.open(out); err != nil {
			return err
		}
		if err := c.delta(out, i, p); err != nil || p.end == "" {
			return err
		}
		return c.end(out, i, p.end)
	})
	if err != nil {
		return err
	}
	if o := c.req.StreamOptions; o != nil && o.IncludeUsage {
		last := c.head
		last.Usage = &c.usage
		if err := out.send(last); err != nil {
			return err
		}
	}
	return out.done()
}

// open begins the stream, once the first token has come: until then an error still has a status of its own.
func (c *chat) open(out *events) error {
	if out.begun {
		return nil
	}
	for i := range c.answers {
		first := c.head
		text := tokenizer.ReasonOpen
		first.Choices = []chatChoice{{Index: i, Delta: &chatMessage{Role: tokenizer.RoleAssistant, Content: &text}}}
		if c.req.TokenIDs && i == 0 {
			first.PromptIDs = c.job.prompt
		}
		if err := out.send(first); err != nil {
			return err
		}
	}
	return nil
}

func (c *chat) delta(out *events, i int, p part) error {
	a := &c.answers[i]
	c.usage.add(len(p.tokens))
	text := p.text
	if c.req.callsTools() {
		text = a.filter.add(text)
	}
	a.tokens = append(a.tokens, p.tokens...) // those whose text is still held back go with the next event
	if text == "" && !c.req.LogProbs && !c.req.TokenIDs || text == "" && len(a.tokens) == 0 {
		return nil
	}
	return c.send(out, i, &chatMessage{Content: &text}, nil)
}

// end tells what was held back, the calls, and why the answer ended.
func (c *chat) end(out *events, i int, end finish) error {
	a := &c.answers[i]
	text, calls := a.filter.held, []toolCallJSON(nil)
	if c.req.callsTools() && end == finishStop {
		text, calls = c.calls(i, text)
	}
	if text != "" {
		if err := c.send(out, i, &chatMessage{Content: &text}, nil); err != nil {
			return err
		}
	}
	for n, call := range calls {
		call.Index = &n
		if err := c.send(out, i, &chatMessage{ToolCalls: []toolCallJSON{call}}, nil); err != nil {
			return err
		}
		end = finishCalls
	}
	return c.send(out, i, &chatMessage{}, &end)
}

func (c *chat) send(out *events, i int, delta *chatMessage, end *finish) error {
	a := &c.answers[i]
	event := c.head
	choice := chatChoice{Index: i, Delta: delta, Finish: end}
	if len(a.tokens) > 0 {
		if c.req.LogProbs {
			choice.LogProbs = c.s.chatLogProbs(a.tokens)
		}
		if c.req.TokenIDs {
			choice.TokenIDs = ids(a.tokens)
		}
		a.tokens = nil
	}
	event.Choices = []chatChoice{choice}
	return out.send(event)
}
