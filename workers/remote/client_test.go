package remote

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/restar-rl/restar/kernels/philox"
	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/tokenizer"
)

// sameTurn compares generations to the bit.
func sameTurn(a, b engine.Generation) bool {
	return slices.Equal(a.IDs, b.IDs) && slices.Equal(a.LogProbs, b.LogProbs) && slices.Equal(a.Entropy, b.Entropy) &&
		a.Finish == b.Finish && a.Version == b.Version
}

func TestAServedEngineGivesTheBitsOfTheLocalOne(t *testing.T) {
	e := localEngine(t)
	c := connect(t, options(served(t, e), Restar))
	var wg sync.WaitGroup
	finishes := make([]engine.Finish, 24)
	for i := range finishes {
		wg.Go(func() {
			r := request(t, i)
			switch i % 4 {
			case 1:
				r.Temperature, r.TopP = 0.7, 0.95
			case 2:
				r.Temperature, r.TopK = 1.3, 20
			case 3:
				r.MaxNew = 3 + 31*i
			}
			if i == 12 {
				r.Temperature = 0
			}
			want, err := e.Generate(bounded(t), r)
			if err != nil {
				t.Error(err)
				return
			}
			var told []engine.Token
			r.OnToken = func(k engine.Token) { told = append(told, k) }
			got, err := c.Generate(bounded(t), r)
			if err != nil {
				t.Error(err)
				return
			}
			if !sameTurn(got, want) || len(told) != len(want.IDs) || told[0].ID != want.IDs[0] || told[0].Entropy != want.Entropy[0] {
				t.Errorf("request %d: %+v over HTTP, %+v in process; told of %d ids", i, got, want, len(told))
			}
			finishes[i] = got.Finish
		})
	}
	wg.Wait()
	if !slices.Contains(finishes, engine.FinishStop) || !slices.Contains(finishes, engine.FinishLength) {
		t.Errorf("the answers end by %v only", finishes)
	}
}

// none runs nothing: a model that knows nothing calls no tool.
type none struct{}

func (none) Run(context.Context, sandbox.Call) (sandbox.Result, error) {
	return sandbox.Result{Status: sandbox.Success}, nil
}

func TestATrajectoryOverHTTPIsTheLocalOneByteForByte(t *testing.T) {
	e := localEngine(t)
	task := agent.Task{Problem: "p", Prompt: request(t, 0).IDs, Seed: 7, Address: philox.Address{Purpose: philox.Rollout, Ordinal: 4, Sample: 3},
		MaxTokens: 200, MaxTurns: 3, Temperature: 1, Version: "tiny",
		Judge: func(context.Context, string) (agent.Verdict, error) { return agent.Verdict{Outcome: agent.Wrong}, nil }}
	config := agent.Config{Tools: []agent.Tool{agent.Python(tokenizer.DefaultToolName)}, CallsPerTurn: 1, Retry: agent.DefaultRetry()}
	run := func(e agent.Engine) string {
		a, err := agent.New(e, none{}, testTokenizer(), config)
		if err != nil {
			t.Fatal(err)
		}
		tr, err := a.Run(bounded(t), task, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := tr.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	if got, want := run(connect(t, options(served(t, e), Restar))), run(e); got != want {
		t.Errorf("over HTTP\n%s\nin process\n%s", got, want)
	}
}

func TestOptionsThatCannotWorkAreNamed(t *testing.T) {
	good := options("http://127.0.0.1:1", VLLM)
	for name, spoil := range map[string]func(*Options){
		"no host":         func(o *Options) { o.URL = "http:///v1" },
		"another scheme":  func(o *Options) { o.URL = "ftp://host" },
		"no model":        func(o *Options) { o.Model = "" },
		"unknown dialect": func(o *Options) { o.Dialect = "tgi" },
		"log-probs":       func(o *Options) { o.LogProbs = "top" },
		"no vocabulary":   func(o *Options) { o.Vocab = 0 },
		"no text":         func(o *Options) { o.Text = nil },
		"cap below base":  func(o *Options) { o.Cap = 1 },
	} {
		o := good
		o.Base = 2
		spoil(&o)
		if err := o.withDefaults().check(); err == nil {
			t.Errorf("options with %s were accepted", name)
		}
	}
	var want = map[Dialect]LogProbs{Restar: Processed, VLLM: Raw, SGLang: Tempered}
	got := map[Dialect]LogProbs{}
	for d := range want {
		got[d] = options("http://host", d).withDefaults().LogProbs
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("log-probs by dialect %v, want %v", got, want)
	}
}
