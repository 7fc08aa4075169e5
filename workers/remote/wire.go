package remote

import (
	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/engine"
)

// completionRequest is the body of /v1/completions. Keys that only some servers know are left out for the others.
type completionRequest struct {
	Model       string  `json:"model"`
	Prompt      []int32 `json:"prompt"`
	MaxTokens   int     `json:"max_tokens"`
	Temperature float32 `json:"temperature"`
	TopP        float32 `json:"top_p"`
	TopK        int     `json:"top_k"`
	Seed        int64   `json:"seed"`
	Stop        []int32 `json:"stop_token_ids"`
	LogProbs    int     `json:"logprobs"`
	TokenIDs    bool    `json:"return_token_ids"`
	Presence    float32 `json:"presence_penalty"`
	Frequency   float32 `json:"frequency_penalty"`
	Repetition  float32 `json:"repetition_penalty"`
	MinP        *int    `json:"min_p,omitempty"`        // vLLM and SGLang
	KeepStop    bool    `json:"no_stop_trim,omitempty"` // SGLang
	AddSpecials *bool   `json:"add_special_tokens,omitempty"`

	// Of restar serve.
	Address   *philox.Address `json:"address,omitempty"`
	Entropies bool            `json:"return_entropies,omitempty"`
}

// body is what the server is asked for a request.
func (c *Client) body(r engine.Request) completionRequest {
	out := completionRequest{
		Model: c.opt.Model, Prompt: r.IDs, MaxTokens: r.MaxNew, Temperature: r.Temperature, TopP: 1, TopK: -1, Stop: r.Stop,
		TokenIDs: true, Repetition: 1,
	}
	if r.TopP > 0 {
		out.TopP = r.TopP
	}
	if r.TopK > 0 {
		out.TopK = r.TopK
	}
	if c.opt.Dialect == Restar {
		out.Seed, out.Address, out.Entropies = int64(r.Seed), &r.Address, true
		return out
	}
	out.Seed = int64(philox.NewKey(r.Seed).Uint64(r.Address) >> 1) // servers take no negative seeds
	out.MinP, out.AddSpecials = new(int), new(bool)
	if c.opt.Dialect == SGLang {
		out.KeepStop, out.LogProbs = true, 1
	}
	return out
}

// completionResponse is the answer. Further keys are the server's own business.
type completionResponse struct {
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
}

type choice struct {
	Text      string    `json:"text"`
	Finish    string    `json:"finish_reason"`
	TokenIDs  []int32   `json:"token_ids"`
	PromptIDs []int32   `json:"prompt_token_ids"`
	Entropies []float32 `json:"entropies"`
	LogProbs  *struct {
		Token []*float32 `json:"token_logprobs"` // a float32 survives the way through JSON to the bit
	} `json:"logprobs"`
}
