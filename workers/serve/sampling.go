package serve

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/engine"
)

// sampling holds the keys that chat completions and completions share.
type sampling struct {
	Model         string         `json:"model"`
	N             *int           `json:"n"`
	Temperature   *float64       `json:"temperature"`
	TopP          *float64       `json:"top_p"`
	TopK          *int           `json:"top_k"` // of vLLM: 0 or -1 is off
	Seed          *int64         `json:"seed"`
	Stop          stopList       `json:"stop"`
	MaxTokens     *int           `json:"max_tokens"`
	Stream        bool           `json:"stream"`
	StreamOptions *streamOptions `json:"stream_options"`
	TokenIDs      bool           `json:"return_token_ids"` // of vLLM
	StopTokenIDs  []int32        `json:"stop_token_ids"`   // of vLLM: ids that end an answer beside the model's own

	// What would change an answer and is not done here must have its neutral value.
	PresencePenalty   *float64        `json:"presence_penalty"`
	FrequencyPenalty  *float64        `json:"frequency_penalty"`
	RepetitionPenalty *float64        `json:"repetition_penalty"`
	LogitBias         json.RawMessage `json:"logit_bias"`
	// What changes no answer is read over.
	User     string            `json:"user"`
	Metadata map[string]string `json:"metadata"`
	Store    *bool             `json:"store"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// check refuses values out of range and demands that are not met here.
func (p *sampling) check(maxChoices int) error {
	n := value(p.N, 1)
	switch t, topP, topK := value(p.Temperature, 1), value(p.TopP, 1), value(p.TopK, 0); {
	case n < 1 || n > maxChoices:
		return badRequest("n", "n is %d, want 1 to %d", n, maxChoices)
	case !(t >= 0 && t <= 2):
		return badRequest("temperature", "temperature is %v, want 0 to 2", t)
	case !(topP > 0 && topP <= 1):
		return badRequest("top_p", "top_p is %v, want above 0, at most 1", topP)
	case topK < -1 || topK > math.MaxInt32:
		return badRequest("top_k", "top_k is %d, want -1 or 0 (off) or a positive number", topK)
	case slices.ContainsFunc(p.StopTokenIDs, func(id int32) bool { return id < 0 }):
		return badRequest("stop_token_ids", "stop_token_ids is %d, want ids of the vocabulary", p.StopTokenIDs)
	case p.MaxTokens != nil && *p.MaxTokens < 1:
		return badRequest("max_tokens", "max_tokens is %d, want at least 1", *p.MaxTokens)
	case p.StreamOptions != nil && !p.Stream:
		return badRequest("stream_options", "stream_options is set without stream")
	case value(p.PresencePenalty, 0) != 0:
		return badRequest("presence_penalty", "presence_penalty is not done here, want 0")
	case value(p.FrequencyPenalty, 0) != 0:
		return badRequest("frequency_penalty", "frequency_penalty is not done here, want 0")
	case value(p.RepetitionPenalty, 1) != 1:
		return badRequest("repetition_penalty", "repetition_penalty is not done here, want 1")
	case value(p.Store, false):
		return badRequest("store", "store is true, but nothing is stored here")
	}
	switch string(p.LogitBias) {
	case "", "null", "{}":
		return nil
	}
	return badRequest("logit_bias", "logit_bias is not done here, leave it out")
}

func value[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// job is one prompt with everything that its answers are sampled by.
type job struct {
	sampling
	prompt  []int32
	maxNew  int
	seed    uint64
	ordinal int // position of the prompt in its request
	top     int // alternatives to report with each token
	ends    []int32
	address *philox.Address // where the choices of a single answer stand; nil: by ordinal and number of the answer
}

// plan makes a job of a prompt. most is how many tokens are sampled if the request does not say; 0 is what there is room for.
func (s *Server) plan(p sampling, prompt []int32, ordinal, top, most int, seed uint64) (job, error) {
	room := s.room() - len(prompt)
	if room < 1 {
		return job{}, tooLong("the prompt has %d tokens, the longest context is %d", len(prompt), s.room())
	}
	if most == 0 {
		most = room
	}
	j := job{sampling: p, prompt: prompt, maxNew: value(p.MaxTokens, min(most, room)), seed: seed, ordinal: ordinal, top: top,
		ends: slices.Concat(s.opt.Stop, p.StopTokenIDs)}
	if j.maxNew > room {
		return job{}, tooLong("the prompt's %d tokens and max_tokens %d exceed the longest context of %d", len(prompt), j.maxNew, s.room())
	}
	return j, nil
}

func tooLong(format string, args ...any) error {
	e := badRequest("", format, args...)
	e.code = "context_length_exceeded"
	return e
}

// request is what the engine is asked for answer number i.
func (j job) request(i int) engine.Request {
	topK := value(j.TopK, 0)
	r := engine.Request{
		IDs: j.prompt, MaxNew: j.maxNew, Temperature: float32(value(j.Temperature, 1)), TopK: max(topK, 0), TopLogProbs: j.top,
		Stop: j.ends, Seed: j.seed, Address: philox.Address{Purpose: philox.Eval, Ordinal: j.ordinal, Sample: i},
	}
	if j.address != nil {
		r.Address = *j.address
	}
	if p := value(j.TopP, 1); p < 1 {
		r.TopP = float32(p)
	}
	if value(j.N, 1) > 1 {
		r.Group = "choices" // any name: what is shared is found by content
	}
	return r
}

// seedOf is the request's seed, or a new one.
func (s *Server) seedOf(p sampling) uint64 {
	if p.Seed != nil {
		return uint64(*p.Seed)
	}
	return s.opt.Seed()
}

func randomSeed() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return binary.LittleEndian.Uint64(b[:])
}
