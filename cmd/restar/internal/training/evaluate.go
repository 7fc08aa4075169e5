package training

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/cmd/restar/internal/inputs"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/spf13/pflag"
)

// Evaluation asks how well a model folder solves the problems of a file. It is a run without training.
type Evaluation struct {
	Model     string // Hugging Face folder
	Problems  string // JSONL
	Count     int    // of problems, the file's first ones
	Samples   int    // of each
	Temp      float64
	Turns     int
	Tokens    int
	Prompt    int // longest prompt in tokens; 0 is what the model has room for
	Seed      uint64
	Isolation string
	Preload   []string
}

// DefaultEvaluation is rStar2-Agent's protocol (§5.1: temperature 0.6) with lengths that small models have room for.
func DefaultEvaluation() Evaluation {
	d := recipe.Defaults()
	return Evaluation{Count: 200, Samples: 8, Temp: d.Eval.Temperature, Turns: 4, Tokens: 256, Seed: 1, Isolation: d.Sandbox.Isolation}
}

// Register adds the flags.
func (e *Evaluation) Register(fs *pflag.FlagSet) {
	fs.IntVar(&e.Count, "problems", e.Count, "how many problems of the file are used")
	fs.IntVar(&e.Samples, "samples", e.Samples, "samples of each problem: k of avg@k, maj@k and pass@k")
	fs.Float64Var(&e.Temp, "temperature", e.Temp, "sampling temperature, 0 is greedy")
	fs.IntVar(&e.Turns, "turns", e.Turns, "turns of a trajectory")
	fs.IntVar(&e.Tokens, "response-tokens", e.Tokens, "tokens of a trajectory after its prompt")
	fs.IntVar(&e.Prompt, "prompt-tokens", e.Prompt, "longest prompt (default: what the model has room for)")
	fs.Uint64Var(&e.Seed, "seed", e.Seed, "seed of all sampling")
	fs.StringVar(&e.Isolation, "isolation", e.Isolation, "least isolation of tool calls: A or B")
	fs.StringSliceVar(&e.Preload, "preload", nil, "Python modules that tool calls find imported")
}

// RunEvaluation evaluates and returns when the results are printed.
func RunEvaluation(ctx context.Context, out io.Writer, e Evaluation, o Options) error {
	r, err := inputs.Await(ctx, e.recipe)
	if err != nil {
		return err
	}
	if err := inputs.Check(ctx, r); err != nil {
		return err
	}
	if o.Run == "" {
		if o.Run, err = evaluationName(ctx, r); err != nil {
			return err
		}
	}
	return run(ctx, out, r, o)
}

func (e Evaluation) recipe() (recipe.Recipe, error) {
	r := recipe.Defaults()
	r.Version, r.Name, r.Seed = 1, "eval", e.Seed
	r.Sandbox.Isolation, r.Sandbox.Preload = e.Isolation, e.Preload
	if err := e.protocol(&r.Agent); err != nil {
		return r, err
	}
	r.Agent.MaxPromptTokens = e.Prompt
	r.Eval = recipe.Eval{Problems: e.Count, Samples: e.Samples, Temperature: e.Temp, Turns: e.Turns, Tokens: e.Tokens}
	for _, p := range []struct {
		to   *string
		from string
	}{{&r.Model.From, e.Model}, {&r.Data.HeldOut, e.Problems}} {
		abs, err := filepath.Abs(p.from)
		if err != nil {
			return r, err
		}
		*p.to = abs
	}
	if e.Prompt == 0 {
		c, err := model.ReadConfig(filepath.Join(r.Model.From, model.ConfigFile))
		if err != nil {
			return r, fault.Userf("%w; give a Hugging Face folder of a Qwen3, Qwen2 or Llama model", err)
		}
		r.Agent.MaxPromptTokens = c.MaxPosition - e.Tokens
	}
	return r, fault.AsUser(r.Validate())
}

// protocol reads the tool protocol that the model was trained with, where the folder has it.
func (e Evaluation) protocol(a *recipe.Agent) error {
	path := filepath.Join(e.Model, activities.AgentFile)
	body, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = strictly(body, a)
	}
	if err != nil {
		return fault.Userf("%s: %w; correct it, or delete it to evaluate under the default protocol", path, err)
	}
	return nil
}

// strictly decodes one JSON value whose keys must all be known.
func strictly(body []byte, to any) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(to); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is text after the JSON object")
	}
	return nil
}

// evaluationName is the same for the same question: the model's and the problems' contents and every setting.
func evaluationName(ctx context.Context, r recipe.Recipe) (string, error) {
	plan, err := inputs.Prepare(ctx, r)
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(plan.Recipe)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(body)
	return "eval-" + hex.EncodeToString(sum[:6]), nil
}
