package remote

import (
	"fmt"
	"slices"
	"strings"

	"github.com/restar-rl/restar/workers/engine"
)

const (
	// leastLogProb is below any log-prob of a token that was sampled: what servers write for minus infinity (vLLM: -9999) is not one.
	leastLogProb = -1000
	// mostLogProb leaves room for rounding in a log-softmax; above it the number is no log-prob.
	mostLogProb = 1e-3
)

func inexact(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInexact}, args...)...)
}

// refuse says why a request cannot be met exactly, if it cannot.
func (c *Client) refuse(r engine.Request) error {
	no := func(format string, args ...any) error {
		return fmt.Errorf("%w: session %q: "+format, append([]any{ErrRefused, r.Session}, args...)...)
	}
	cut := r.TopP > 0 && r.TopP < 1 || r.TopK > 0
	switch greedy := r.Temperature == 0; {
	case len(r.IDs) == 0 || r.MaxNew < 1:
		return no("%d context ids and MaxNew %d, want at least one of each", len(r.IDs), r.MaxNew)
	case r.TopLogProbs > 0:
		return no("TopLogProbs is %d, want 0: completions name alternatives by text, not by id", r.TopLogProbs)
	case cut && !greedy && c.opt.LogProbs != Processed:
		return no("top-p %v and top-k %d, but the server reports %s log-probs, which are not of the distribution sampled from; want neither, or a server with processed log-probs",
			r.TopP, r.TopK, c.opt.LogProbs)
	case r.Temperature != 1 && !greedy && c.opt.LogProbs == Raw:
		return no("temperature %v, but the server reports raw log-probs, which are of temperature 1; want 1, 0, or a server with processed log-probs", r.Temperature)
	}
	return nil
}

// generation takes an answer as a turn, or says what of it is not exact.
func (c *Client) generation(r engine.Request, a completionResponse) (engine.Generation, error) {
	var none engine.Generation
	if a.Model != c.opt.Model {
		return none, inexact("the server answers for model %q, want %q", a.Model, c.opt.Model)
	}
	if len(a.Choices) != 1 {
		return none, inexact("%d answers, want 1", len(a.Choices))
	}
	ch := a.Choices[0]
	if err := c.checkIDs(r, ch); err != nil {
		return none, err
	}
	out := engine.Generation{IDs: ch.TokenIDs, Version: c.opt.Version}
	var err error
	if out.Finish, err = finishOf(r, ch); err != nil {
		return none, err
	}
	if out.LogProbs, err = logProbs(ch); err != nil {
		return none, err
	}
	if c.opt.Dialect == Restar {
		if out.Entropy = ch.Entropies; len(out.Entropy) != len(out.IDs) {
			return none, inexact("%d entropies for %d ids, want as many", len(out.Entropy), len(out.IDs))
		}
	}
	return out, nil
}

// checkIDs compares the ids with the request and with the run's vocabulary.
func (c *Client) checkIDs(r engine.Request, ch choice) error {
	switch {
	case len(ch.TokenIDs) == 0:
		return inexact("no token_ids; the server must know return_token_ids (vLLM from 0.10.2)")
	case len(ch.TokenIDs) > r.MaxNew:
		return inexact("%d ids, want at most the %d asked for", len(ch.TokenIDs), r.MaxNew)
	case !slices.Equal(ch.PromptIDs, r.IDs):
		return inexact("the server read %d prompt ids, which are not the %d sent: it adds, cuts or encodes again", len(ch.PromptIDs), len(r.IDs))
	}
	for i, id := range ch.TokenIDs {
		if id < 0 || int(id) >= c.opt.Vocab {
			return inexact("id %d at position %d is outside the vocabulary [0,%d): the server has another one", id, i, c.opt.Vocab)
		}
	}
	if want := c.opt.Text(ch.TokenIDs); !sameText(ch.Text, want) {
		return inexact("the server reads the ids as %.60q, the run's tokenizer as %.60q: they have different vocabularies", ch.Text, want)
	}
	return nil
}

// sameText compares texts up to a character that the last id leaves unfinished: servers hold it back or mark it.
func sameText(a, b string) bool {
	const mark = "\uFFFD"
	return strings.TrimRight(a, mark) == strings.TrimRight(b, mark)
}

func finishOf(r engine.Request, ch choice) (engine.Finish, error) {
	last := ch.TokenIDs[len(ch.TokenIDs)-1]
	stopped := slices.Contains(r.Stop, last)
	switch {
	case ch.Finish == "stop" && stopped:
		return engine.FinishStop, nil
	case ch.Finish == "length" && stopped: // the stop token was the last that fitted
		return engine.FinishStop, nil
	case ch.Finish == "length" && len(ch.TokenIDs) == r.MaxNew:
		return engine.FinishLength, nil
	}
	return "", inexact("finish_reason is %q after %d of %d ids, the last %d; want stop with one of the stop tokens %v kept, or length at the limit",
		ch.Finish, len(ch.TokenIDs), r.MaxNew, last, r.Stop)
}

func logProbs(ch choice) ([]float32, error) {
	if ch.LogProbs == nil || len(ch.LogProbs.Token) != len(ch.TokenIDs) {
		n := 0
		if ch.LogProbs != nil {
			n = len(ch.LogProbs.Token)
		}
		return nil, inexact("%d log-probs for %d ids, want as many", n, len(ch.TokenIDs))
	}
	out := make([]float32, len(ch.TokenIDs))
	for i, lp := range ch.LogProbs.Token {
		if lp == nil {
			return nil, inexact("the log-prob of id %d at position %d is missing", ch.TokenIDs[i], i)
		}
		if !(*lp > leastLogProb && *lp <= mostLogProb) {
			return nil, inexact("the log-prob of id %d at position %d is %v, want that of a token that was sampled", ch.TokenIDs[i], i, *lp)
		}
		out[i] = *lp
	}
	return out, nil
}
