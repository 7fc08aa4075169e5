package serve

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/tokenizer"
)

type usageJSON struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

func (u *usageJSON) add(tokens int) {
	u.Completion += tokens
	u.Total += tokens
}

type chatResponse struct {
	ID        string       `json:"id"`
	Object    string       `json:"object"`
	Created   int64        `json:"created"`
	Model     string       `json:"model"`
	Choices   []chatChoice `json:"choices"`
	Usage     *usageJSON   `json:"usage,omitempty"`
	PromptIDs []int32      `json:"prompt_token_ids,omitempty"`
}

type chatChoice struct {
	Index    int           `json:"index"`
	Message  *chatMessage  `json:"message,omitempty"`
	Delta    *chatMessage  `json:"delta,omitempty"`
	LogProbs *chatLogProbs `json:"logprobs"`
	Finish   *finish       `json:"finish_reason"`
	TokenIDs []int32       `json:"token_ids,omitempty"`
}

type chatMessage struct {
	Role      string         `json:"role,omitempty"`
	Content   *string        `json:"content,omitempty"`
	ToolCalls []toolCallJSON `json:"tool_calls,omitempty"`
}

type chatLogProbs struct {
	Content []chatToken `json:"content"`
}

type chatToken struct {
	likelyToken
	Top []likelyToken `json:"top_logprobs"`
}

type likelyToken struct {
	Token   string  `json:"token"`
	LogProb float32 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

func (s *Server) likely(id int32, logProb float32) likelyToken {
	raw := s.tokenizer.Bytes(id)
	t := likelyToken{Token: s.tokenizer.Decode([]int32{id}), LogProb: logProb, Bytes: make([]int, len(raw))}
	for i := range len(raw) {
		t.Bytes[i] = int(raw[i])
	}
	return t
}

func (s *Server) chatLogProbs(tokens []engine.Token) *chatLogProbs {
	out := &chatLogProbs{Content: []chatToken{}}
	for _, t := range tokens {
		row := chatToken{likelyToken: s.likely(t.ID, t.LogProb), Top: []likelyToken{}}
		for _, l := range t.TopLogProbs {
			row.Top = append(row.Top, s.likely(l.ID, l.LogP))
		}
		out.Content = append(out.Content, row)
	}
	return out
}

// chatAnswer is one answer while it grows.
type chatAnswer struct {
	text   strings.Builder
	tokens []engine.Token
	filter callFilter
	end    finish
}

// chat serves /v1/chat/completions.
func (s *Server) chat(w http.ResponseWriter, r *http.Request) error {
	var req chatRequest
	if err := decode(r, &req); err != nil {
		return err
	}
	top, err := req.chatCheck(s.opt.MaxChoices)
	if err != nil {
		return err
	}
	if err := s.checkModel(req.Model); err != nil {
		return err
	}
	if err := s.checkMarkers(); err != nil {
		return err
	}
	talk, err := s.conversation(&req)
	if err != nil {
		return err
	}
	prompt := talk.template.History(s.tokenizer, talk.question, talk.turns)
	j, err := s.plan(req.sampling, prompt, 0, top, 0, s.seedOf(req.sampling))
	if err != nil {
		return err
	}
	c := &chat{s: s, req: &req, job: j, answers: make([]chatAnswer, value(req.N, 1))}
	c.head = chatResponse{ID: s.name("chatcmpl", w), Object: "chat.completion", Created: s.opt.Now().Unix(), Model: s.opt.Model, Choices: []chatChoice{}}
	c.usage = usageJSON{Prompt: len(prompt), Total: len(prompt)}
	if req.Stream {
		return c.stream(w, r)
	}
	return c.whole(w, r)
}

// checkMarkers wants turns to be something that the model knows.
func (s *Server) checkMarkers() error {
	for _, marker := range []string{tokenizer.TurnStart, tokenizer.TurnEnd} {
		if _, ok := s.tokenizer.SpecialID(marker); !ok {
			return badRequest("model", "the tokenizer of %s lacks %s, so it cannot chat; use /v1/completions", s.opt.Model, marker)
		}
	}
	return nil
}

// name makes an answer's id of the request's.
func (s *Server) name(prefix string, w http.ResponseWriter) string {
	return fmt.Sprintf("%s-%x-%s", prefix, s.began.UnixNano(), strings.TrimPrefix(w.Header().Get("X-Request-Id"), "req-"))
}

// chat is one request being answered.
type chat struct {
	s       *Server
	req     *chatRequest
	job     job
	answers []chatAnswer
	head    chatResponse
	usage   usageJSON
}

// whole answers in one piece.
func (c *chat) whole(w http.ResponseWriter, r *http.Request) error {
	err := c.s.answers(r.Context(), []job{c.job}, func(i int, p part) error {
		a := &c.answers[i]
		a.end = p.end
		a.text.WriteString(p.text)
		a.tokens = append(a.tokens, p.tokens...)
		c.usage.add(len(p.tokens))
		return nil
	})
	if err != nil {
		return err
	}
	out := c.head
	for i := range c.answers {
		out.Choices = append(out.Choices, c.choice(i))
	}
	out.Usage = &c.usage
	if c.req.TokenIDs {
		out.PromptIDs = c.job.prompt
	}
	return writeJSON(w, http.StatusOK, out)
}

func (c *chat) choice(i int) chatChoice {
	a := &c.answers[i]
	end := a.end
	text, calls := a.text.String(), []toolCallJSON(nil)
	if c.req.callsTools() && end == finishStop {
		text, calls = c.calls(i, text)
	}
	if len(calls) > 0 {
		end = finishCalls
	}
	text = tokenizer.ReasonOpen + text
	choice := chatChoice{Index: i, Message: &chatMessage{Role: tokenizer.RoleAssistant, Content: &text, ToolCalls: calls}, Finish: &end}
	if c.req.LogProbs {
		choice.LogProbs = c.s.chatLogProbs(a.tokens)
	}
	if c.req.TokenIDs {
		choice.TokenIDs = ids(a.tokens)
	}
	return choice
}

func ids(tokens []engine.Token) []int32 {
	out := make([]int32, len(tokens))
	for i, t := range tokens {
		out[i] = t.ID
	}
	return out
}
