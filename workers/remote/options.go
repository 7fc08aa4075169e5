package remote

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Errors that callers tell apart. Each is wrapped with the values found and expected.
var (
	ErrInexact = errors.New("remote: the answer is not token-exact")     // the server cannot be used as an engine
	ErrRefused = errors.New("remote: the request cannot be met exactly") // the server could answer, but not as asked
)

// Dialect names the kind of server.
type Dialect string

// The dialects.
const (
	Restar Dialect = "restar"
	VLLM   Dialect = "vllm"
	SGLang Dialect = "sglang"
)

// LogProbs says of which distribution a server reports log-probs.
type LogProbs string

// The distributions.
const (
	Raw       LogProbs = "raw"       // softmax of the logits
	Tempered  LogProbs = "tempered"  // softmax of the logits divided by the temperature
	Processed LogProbs = "processed" // the distribution sampled from: tempered, then cut by top-k and top-p
)

// Options say where the engine is and what it serves.
type Options struct {
	URL     string // of the server, without /v1
	Model   string // the name that the server serves the weights by
	Version string // of those weights, for the generations; default Model
	Dialect Dialect
	// LogProbs is what the server was started to report; default: processed for Restar, raw for VLLM, tempered for SGLang.
	LogProbs LogProbs
	Vocab    int                      // ids lie in [0,Vocab)
	Text     func(ids []int32) string // text of ids without special tokens, as the run's tokenizer has it

	Key      string        // sent as bearer token, if not empty
	HTTP     *http.Client  // default http.DefaultClient
	Timeout  time.Duration // of one attempt; default 10 minutes
	Attempts int           // of one generation while the server is down or full; default 5
	Base     time.Duration // wait before the second attempt, doubled each time up to Cap; default 200 ms
	Cap      time.Duration // default 5 s
}

func (o Options) withDefaults() Options {
	if o.Version == "" {
		o.Version = o.Model
	}
	if o.LogProbs == "" {
		o.LogProbs = map[Dialect]LogProbs{Restar: Processed, VLLM: Raw, SGLang: Tempered}[o.Dialect]
	}
	if o.HTTP == nil {
		o.HTTP = http.DefaultClient
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Minute
	}
	if o.Attempts == 0 {
		o.Attempts = 5
	}
	if o.Base == 0 {
		o.Base = 200 * time.Millisecond
	}
	if o.Cap == 0 {
		o.Cap = 5 * time.Second
	}
	return o
}

func (o Options) check() error {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		return fmt.Errorf("remote: URL is %q, want one such as http://host:8000", o.URL)
	case o.Model == "":
		return errors.New("remote: Model is empty, want the name that the server serves the weights by")
	case o.Dialect != Restar && o.Dialect != VLLM && o.Dialect != SGLang:
		return fmt.Errorf("remote: Dialect is %q, want %q, %q or %q", o.Dialect, Restar, VLLM, SGLang)
	case o.LogProbs != Raw && o.LogProbs != Tempered && o.LogProbs != Processed:
		return fmt.Errorf("remote: LogProbs is %q, want %q, %q or %q", o.LogProbs, Raw, Tempered, Processed)
	case o.Vocab < 1 || o.Text == nil:
		return fmt.Errorf("remote: Vocab is %d and Text set: %v; want those of the run's tokenizer", o.Vocab, o.Text != nil)
	case o.Timeout < 0 || o.Attempts < 1 || o.Base < 0 || o.Cap < o.Base:
		return fmt.Errorf("remote: %d attempts of %v with waits from %v to %v; want an attempt, and 0 <= base <= cap", o.Attempts, o.Timeout, o.Base, o.Cap)
	}
	return nil
}
