package serve

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/tokenizer"
	"golang.org/x/sync/errgroup"
)

// part is what a token adds to an answer, or its end: text that is certain to stay, and the token if there is one.
type part struct {
	text   string
	tokens []engine.Token
	end    finish // "" while the answer goes on
}

// finish says why an answer ended, in OpenAI's words.
type finish string

const (
	finishStop   finish = "stop"
	finishLength finish = "length"
	finishCalls  finish = "tool_calls"
)

// answers samples all answers to the jobs at once. emit gets the parts of each in order, one call at a time over all answers;
// its error ends them all. The last part of each has its end.
func (s *Server) answers(ctx context.Context, jobs []job, emit func(index int, p part) error) error {
	n := 0
	for _, j := range jobs {
		n += value(j.N, 1)
	}
	places, err := s.queue.admit(n)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	index := 0
	for _, j := range jobs {
		s.metrics.prompt.Add(ctx, int64(len(j.prompt)))
		for i := range value(j.N, 1) {
			at := index
			index++
			group.Go(func() error {
				defer places[at].leave()
				return s.answer(ctx, j, i, places[at], func(p part) error {
					mu.Lock()
					defer mu.Unlock()
					return emit(at, p)
				})
			})
		}
	}
	return group.Wait()
}

// answer samples one answer.
func (s *Server) answer(ctx context.Context, j job, i int, at *place, emit func(part) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := &feed{wake: make(chan struct{}, 1)}
	req := j.request(i)
	req.OnToken = f.push
	type result struct {
		gen engine.Generation
		err error
	}
	done := make(chan result, 1)
	go func() {
		gen, err := s.engine.Generate(ctx, req)
		done <- result{gen, err}
	}()
	r := reader{s: s, cut: newCutter(s.tokenizer, j.Stop), place: at, emit: emit}
	for {
		select {
		case <-f.wake:
			stopped, err := r.read(f.take())
			if stopped || err != nil {
				cancel()
				<-done // it returns at once; no token is told after it
			}
			if err != nil {
				return err
			}
			if stopped {
				return emit(part{end: finishStop})
			}
		case d := <-done:
			stopped, err := r.read(f.take())
			switch {
			case err != nil:
				return err
			case stopped:
				return emit(part{end: finishStop})
			case d.err != nil:
				return fmt.Errorf("answer %d: %w", i, cause(ctx, d.err))
			case d.gen.Finish == engine.FinishLength:
				return emit(part{text: r.cut.close(), end: finishLength})
			}
			return emit(part{text: r.cut.close(), end: finishStop})
		}
	}
}

// cause prefers why the request ended to what the engine saw of it.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// reader turns one answer's tokens into parts.
type reader struct {
	s     *Server
	cut   *cutter
	place *place
	emit  func(part) error
}

// read emits a part for each token and reports whether a stop text has come up.
func (r reader) read(tokens []engine.Token) (stopped bool, err error) {
	if len(tokens) == 0 {
		return false, nil
	}
	if waited, first := r.place.begin(); first {
		r.s.metrics.first(waited)
	}
	for n := range tokens {
		text, stopped := r.cut.add(tokens[n].ID)
		r.s.metrics.generated.Add(context.Background(), 1)
		if err := r.emit(part{text: text, tokens: tokens[n : n+1]}); stopped || err != nil {
			return stopped, err
		}
	}
	return false, nil
}

// feed hands tokens from the engine's goroutine, which must not wait, to the answer's.
type feed struct {
	mu     sync.Mutex
	tokens []engine.Token
	wake   chan struct{}
}

func (f *feed) push(t engine.Token) {
	f.mu.Lock()
	f.tokens = append(f.tokens, t)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *feed) take() []engine.Token {
	f.mu.Lock()
	defer f.mu.Unlock()
	tokens := f.tokens
	f.tokens = nil
	return tokens
}

// cutter decodes tokens and ends the text before the stop text that is complete first, the longest of those that end there:
// a rule that does not depend on where tokens begin. It holds back what could be the beginning of a stop text.
type cutter struct {
	tokenizer *tokenizer.Tokenizer
	decoder   *tokenizer.Decoder
	stops     []string
	held      string
}

func newCutter(t *tokenizer.Tokenizer, stops []string) *cutter {
	return &cutter{tokenizer: t, decoder: t.NewDecoder(), stops: stops}
}

// add returns the text that is certain after a token. Special tokens have no text.
func (c *cutter) add(id int32) (text string, stopped bool) {
	if c.tokenizer.Special(id) {
		return "", false
	}
	return c.cut(c.decoder.Write(id))
}

func (c *cutter) cut(more string) (text string, stopped bool) {
	text = c.held + more
	c.held = ""
	at, end := -1, -1
	for _, stop := range c.stops {
		i := strings.Index(text, stop)
		if last := i + len(stop); i >= 0 && (end < 0 || last < end || last == end && i < at) {
			at, end = i, last
		}
	}
	if at >= 0 {
		return text[:at], true
	}
	keep := slices.Max(append(overlaps(text, c.stops), 0))
	c.held = text[len(text)-keep:]
	return text[:len(text)-keep], false
}

// close returns what was held back to the end.
func (c *cutter) close() string {
	text, stopped := c.cut(c.decoder.Close())
	if stopped {
		return text
	}
	return text + c.held
}

// overlaps returns for each stop how many bytes at the end of text begin it.
func overlaps(text string, stops []string) []int {
	out := make([]int, len(stops))
	for i, stop := range stops {
		for n := min(len(stop)-1, len(text)); n > 0; n-- {
			if strings.HasSuffix(text, stop[:n]) {
				out[i] = n
				break
			}
		}
	}
	return out
}
