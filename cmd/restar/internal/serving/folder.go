// Package serving lets people talk to a model that they trained: over HTTP, and in the terminal with its tool.
package serving

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/cmd/restar/internal/inputs"
	"github.com/restar-rl/restar/cmd/restar/internal/numerics"
	"github.com/restar-rl/restar/kernels"
	"github.com/restar-rl/restar/workers/engine"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/tokenizer"
	"github.com/spf13/pflag"
)

// EngineOptions size the engine of a served model.
type EngineOptions struct {
	Precision string
	Blocks    int // of the KV cache; 0: chosen
}

// Register adds the flags.
func (o *EngineOptions) Register(fs *pflag.FlagSet) {
	fs.StringVar(&o.Precision, "precision", string(model.PrecisionFP32), "of products: fp32 or bf16")
	fs.IntVar(&o.Blocks, "kv-blocks", 0, fmt.Sprintf("blocks of %d tokens in the KV cache (default: eight of the model's contexts, in at most 1 GiB)", model.BlockTokens))
}

// folder is a model folder that has been read.
type folder struct {
	name      string // what clients call the model
	model     *model.Model
	tokenizer *tokenizer.Tokenizer
	agent     recipe.Agent // the tool protocol that the model was trained with
	stops     []int32
	blocks    int
}

// open reads a Hugging Face folder, or the one that a run exported below dir.
func open(ctx context.Context, dir string, o EngineOptions) (*folder, error) {
	if o.Blocks < 0 {
		return nil, fault.Userf("--kv-blocks is %d, want a positive number, or nothing to have it chosen", o.Blocks)
	}
	precision, err := kernels.ParsePrecision(o.Precision)
	if err != nil {
		return nil, fault.Userf("--precision: %w", err)
	}
	if _, err := numerics.ID(precision); err != nil {
		return nil, err
	}
	return inputs.Await(ctx, func() (*folder, error) {
		f, err := read(dir, precision)
		if err != nil {
			return nil, fault.AsUser(err)
		}
		if f.blocks = o.Blocks; f.blocks == 0 {
			f.blocks = chooseBlocks(f.model)
		}
		return f, nil
	})
}

const fix = "give a Hugging Face folder with config.json, tokenizer.json and safetensors, or the --dir of a run that is done"

func read(dir string, precision model.Precision) (*folder, error) {
	at, name, err := locate(dir)
	if err != nil {
		return nil, err
	}
	f := &folder{name: name}
	if f.tokenizer, err = tokenizer.Load(at); err != nil {
		return nil, fmt.Errorf("%w; %s", err, fix)
	}
	if f.model, err = model.Load(at, model.WithPrecision(precision)); err != nil {
		return nil, fmt.Errorf("%w; %s", err, fix)
	}
	if have, rows := f.tokenizer.VocabSize(), f.model.Config.VocabSize; have > rows {
		return nil, fmt.Errorf("%s: the tokenizer has %d ids, the model %d rows: they do not belong together", at, have, rows)
	}
	if f.agent, err = protocol(at); err != nil {
		return nil, err
	}
	f.stops, err = stops(at, f)
	return f, err
}

// locate finds the model in dir or, where a run has exported one, in its folder model.
func locate(dir string) (at, name string, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", "", err
	}
	for _, at := range []string{abs, filepath.Join(abs, "model")} {
		if _, err := os.Stat(filepath.Join(at, model.ConfigFile)); err == nil {
			if name = filepath.Base(at); name == "model" {
				name = filepath.Base(filepath.Dir(at))
			}
			return at, name, nil
		}
	}
	return "", "", fmt.Errorf("%s holds no %s; %s", dir, model.ConfigFile, fix)
}

// protocol reads the tool protocol that the model was trained with, or takes the default.
func protocol(dir string) (recipe.Agent, error) {
	a := recipe.Defaults().Agent
	path := filepath.Join(dir, activities.AgentFile)
	body, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return a, nil
	}
	if err == nil {
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.DisallowUnknownFields()
		if err = dec.Decode(&a); err == nil {
			if _, end := dec.Token(); end != io.EOF {
				err = errors.New("there is text after the JSON object")
			}
		}
	}
	if err != nil {
		return a, fmt.Errorf("%s: %w; correct it, or delete it to use the default protocol", path, err)
	}
	return a, nil
}

// stops are the ids that end an answer: the markers of turns, and what the folder's files call the end of a sequence.
func stops(dir string, f *folder) ([]int32, error) {
	generation, err := os.ReadFile(filepath.Join(dir, model.GenerationFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	ends, err := f.model.Config.Ends(generation)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	var out []int32
	for _, marker := range []string{tokenizer.TurnEnd, tokenizer.EndOfText} {
		if id, ok := f.tokenizer.SpecialID(marker); ok {
			out = append(out, id)
			ends = slices.DeleteFunc(ends, func(end int32) bool { return end == id })
		}
	}
	return append(out, ends...), nil
}

const (
	cacheContexts = 8       // whole contexts that a cache of the default size holds
	cacheBytes    = 1 << 30 // that it takes at most
	leastBlocks   = 16
)

// chooseBlocks sizes a KV cache.
func chooseBlocks(m *model.Model) int {
	want := cacheContexts * ((m.Config.MaxPosition + model.BlockTokens - 1) / model.BlockTokens)
	return max(min(want, cacheBytes/m.BlockBytes()), leastBlocks)
}

// start starts the engine.
func (f *folder) start() (*engine.Engine, error) {
	return engine.New(f.model, f.name, engine.Options{Blocks: f.blocks})
}

// room is the longest context that both the model and the cache hold.
func (f *folder) room() int { return min(f.model.Config.MaxPosition, f.blocks*model.BlockTokens) }

// template is the conversation that the model was trained on, with its own tool or without.
func (f *folder) template(tool bool) tokenizer.Template {
	tpl := tokenizer.Template{System: f.agent.System}
	if tool {
		tpl.Tools = []tokenizer.Tool{tokenizer.ToolNamed(f.agent.Tool)}
	}
	return tpl
}
