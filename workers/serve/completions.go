package serve

import (
	"net/http"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/engine"
)

// defaultCompletion is OpenAI's max_tokens of a completion.
const defaultCompletion = 16

// completionRequest is the body of /v1/completions.
type completionRequest struct {
	sampling
	Prompt           prompts `json:"prompt"`
	LogProbs         *int    `json:"logprobs"`
	AddSpecialTokens *bool   `json:"add_special_tokens"` // of vLLM: what the tokenizer puts around a text, default true

	// Of this program: the address at which a single answer is drawn, so that a run's engine may be here, and the entropy of each id.
	Address   *philox.Address `json:"address"`
	Entropies bool            `json:"return_entropies"`

	Echo   bool    `json:"echo"`
	BestOf *int    `json:"best_of"`
	Suffix *string `json:"suffix"`
}

func (r *completionRequest) completionCheck(maxChoices int) (top int, err error) {
	if err := r.check(maxChoices); err != nil {
		return 0, err
	}
	n, top := value(r.N, 1), value(r.LogProbs, 0)
	switch {
	case r.Echo:
		return 0, badRequest("echo", "echo is not done here, want false: the prompt is known")
	case value(r.BestOf, n) != n:
		return 0, badRequest("best_of", "best_of is %d, want n (%d) or nothing", *r.BestOf, n)
	case value(r.Suffix, "") != "":
		return 0, badRequest("suffix", "suffix is not done here, leave it out")
	case r.Address != nil && (n != 1 || len(r.Prompt.texts)+len(r.Prompt.ids) != 1 || r.Seed == nil):
		return 0, badRequest("address", "address is set with n %d, want one prompt, n 1 and a seed: it names the choices of one answer", n)
	case r.Address != nil && !r.Address.Valid():
		return 0, badRequest("address", "address %+v has a field out of range", *r.Address)
	case top < 0 || top > engine.MaxTopLogProbs:
		return 0, badRequest("logprobs", "logprobs is %d, want 0 to %d", top, engine.MaxTopLogProbs)
	}
	return top, nil
}

type completionResponse struct {
	ID      string             `json:"id"`
	Object  string             `json:"object"`
	Created int64              `json:"created"`
	Model   string             `json:"model"`
	Choices []completionChoice `json:"choices"`
	Usage   *usageJSON         `json:"usage,omitempty"`
}

type completionChoice struct {
	Index     int                 `json:"index"`
	Text      string              `json:"text"`
	LogProbs  *completionLogProbs `json:"logprobs"`
	Finish    *finish             `json:"finish_reason"`
	TokenIDs  []int32             `json:"token_ids,omitempty"`
	PromptIDs []int32             `json:"prompt_token_ids,omitempty"`
	Entropies []float32           `json:"entropies,omitempty"` // nats, one a token
}

// completion is one request being answered.
type completion struct {
	s       *Server
	req     *completionRequest
	jobs    []job
	head    completionResponse
	usage   usageJSON
	tokens  [][]engine.Token // of each answer, those not told yet
	texts   []string
	offsets []offset
	told    []bool // whether an answer's prompt ids were
}

// completions serves /v1/completions.
func (s *Server) completions(w http.ResponseWriter, r *http.Request) error {
	var req completionRequest
	if err := decode(r, &req); err != nil {
		return err
	}
	top, err := req.completionCheck(s.opt.MaxChoices)
	if err != nil {
		return err
	}
	if err := s.checkModel(req.Model); err != nil {
		return err
	}
	list, err := s.encode(req.Prompt, value(req.AddSpecialTokens, true))
	if err != nil {
		return err
	}
	n := value(req.N, 1)
	if len(list)*n > s.opt.MaxChoices {
		return badRequest("prompt", "%d prompts with %d answers each, want at most %d answers", len(list), n, s.opt.MaxChoices)
	}
	c := &completion{s: s, req: &req, tokens: make([][]engine.Token, len(list)*n), texts: make([]string, len(list)*n),
		offsets: make([]offset, len(list)*n), told: make([]bool, len(list)*n)}
	c.head = completionResponse{ID: s.name("cmpl", w), Object: "text_completion", Created: s.opt.Now().Unix(), Model: s.opt.Model, Choices: []completionChoice{}}
	seed := s.seedOf(req.sampling)
	for i := range c.offsets {
		c.offsets[i].decoder = s.tokenizer.NewDecoder()
	}
	for i, ids := range list {
		j, err := s.plan(req.sampling, ids, i, top, defaultCompletion, seed)
		if err != nil {
			return err
		}
		j.address = req.Address
		c.jobs = append(c.jobs, j)
		c.usage.Prompt += len(ids)
		c.usage.Total += len(ids)
	}
	if req.Stream {
		return c.stream(w, r)
	}
	return c.whole(w, r)
}

func (c *completion) whole(w http.ResponseWriter, r *http.Request) error {
	ends := make([]finish, len(c.tokens))
	err := c.s.answers(r.Context(), c.jobs, func(i int, p part) error {
		c.take(i, p)
		ends[i] = p.end
		return nil
	})
	if err != nil {
		return err
	}
	out := c.head
	for i := range ends {
		out.Choices = append(out.Choices, c.choice(i, &ends[i]))
	}
	out.Usage = &c.usage
	return writeJSON(w, http.StatusOK, out)
}

func (c *completion) stream(w http.ResponseWriter, r *http.Request) error {
	out := &events{w: w}
	send := func(i int, end *finish) error {
		event := c.head
		event.Choices = []completionChoice{c.choice(i, end)}
		return out.send(event)
	}
	err := c.s.answers(r.Context(), c.jobs, func(i int, p part) error {
		c.take(i, p)
		if p.end != "" {
			return send(i, &p.end)
		}
		if c.texts[i] == "" && (c.req.LogProbs == nil && !c.req.TokenIDs || len(c.tokens[i]) == 0) {
			return nil
		}
		return send(i, nil)
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

func (c *completion) take(i int, p part) {
	c.texts[i] += p.text
	c.tokens[i] = append(c.tokens[i], p.tokens...)
	c.usage.add(len(p.tokens))
}

// choice tells what an answer has gained since the last time.
func (c *completion) choice(i int, end *finish) completionChoice {
	out := completionChoice{Index: i, Text: c.texts[i], Finish: end}
	if c.req.LogProbs != nil && len(c.tokens[i]) > 0 {
		out.LogProbs = c.logProbs(i)
	}
	if c.req.TokenIDs {
		out.TokenIDs = ids(c.tokens[i])
		if !c.told[i] {
			out.PromptIDs = c.jobs[i/value(c.req.N, 1)].prompt
			c.told[i] = true
		}
	}
	if c.req.Entropies {
		for _, t := range c.tokens[i] {
			out.Entropies = append(out.Entropies, t.Entropy)
		}
	}
	c.texts[i], c.tokens[i] = "", nil
	return out
}
