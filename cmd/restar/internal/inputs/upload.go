package inputs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/store"
)

// modelFile is a file of a Hugging Face folder that a run reads; a needed one must exist.
type modelFile struct {
	name   string
	needed bool
}

// modelFiles lists the files of a folder: its weights are in one file, or in those that an index names.
func modelFiles(dir string) []modelFile {
	files := []modelFile{{model.ConfigFile, true}, {"tokenizer.json", true}}
	weights, err := model.Files(dir)
	if err != nil { // who reads them tells what is wrong
		weights = []string{model.ConfigFile, model.WeightsFile}
	}
	for _, name := range weights[1:] {
		files = append(files, modelFile{name, true})
	}
	return append(files, modelFile{"tokenizer_config.json", false}, modelFile{model.GenerationFile, false})
}

// input is one file under the name that the store knows it by.
type input struct {
	name string
	body []byte
}

// Plan is a recipe whose paths pin their contents, and the files themselves. A path becomes the first 16 hexadecimal digits
// of the content's SHA-256 and the file's own name; the file is stored under the name that activities know it by.
type Plan struct {
	Recipe recipe.Recipe
	files  []input
}

// Prepare reads every file that the recipe names. It writes nothing. A file that cannot be read is the user's to mend.
func Prepare(ctx context.Context, r recipe.Recipe) (Plan, error) {
	return Await(ctx, func() (Plan, error) {
		p, err := prepare(r)
		return p, fault.AsUser(err)
	})
}

func prepare(r recipe.Recipe) (Plan, error) {
	p := Plan{Recipe: r}
	p.Recipe.Data.Benchmarks = append([]string(nil), r.Data.Benchmarks...)
	d := &p.Recipe.Data
	type use struct {
		path *string
		name string
	}
	uses := []use{{&d.Problems, activities.InputProblems}, {&d.HeldOut, activities.InputHeldOut}, {&d.Demos, activities.InputDemos}}
	for i := range d.Benchmarks {
		uses = append(uses, use{&d.Benchmarks[i], activities.InputBenchmark(i)})
	}
	for _, u := range uses {
		if *u.path == "" {
			continue
		}
		body, err := os.ReadFile(*u.path)
		if err != nil {
			return Plan{}, err
		}
		*u.path = named(body, *u.path)
		p.files = append(p.files, input{u.name, body})
	}
	if r.Model.Init != nil && r.Model.Init.Tokenizer != "" {
		return p, p.addTokenizer(*r.Model.Init)
	}
	if r.Model.From == "" {
		return p, nil
	}
	return p, p.addModel(r.Model.From)
}

func (p *Plan) addModel(dir string) error {
	var files []input
	var list bytes.Buffer
	for _, f := range modelFiles(dir) {
		body, err := os.ReadFile(filepath.Join(dir, f.name))
		if errors.Is(err, fs.ErrNotExist) && !f.needed {
			continue
		}
		if err != nil {
			return err
		}
		files = append(files, input{f.name, body})
		fmt.Fprintf(&list, "%s %x\n", f.name, sha256.Sum256(body))
	}
	p.Recipe.Model.From = named(list.Bytes(), dir)
	var names []string
	for _, f := range files {
		names = append(names, f.name)
		p.files = append(p.files, input{"model-" + f.name, f.body})
	}
	body, err := json.Marshal(names)
	p.files = append(p.files, input{activities.ModelFiles, body})
	return err
}

func named(content []byte, path string) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8]) + "-" + filepath.Base(path)
}

// Upload puts the inputs into the store under the run's name. The run's recipe must be there already, and be this one: it
// pins their contents, so what an interrupted upload left is the same and stays.
func (p Plan) Upload(ctx context.Context, s store.Store, run string) error {
	for _, f := range p.files {
		if _, err := s.Put(ctx, activities.InputKey(run, f.name), f.body, store.PutOptions{IfNoneMatch: true}); err != nil && !errors.Is(err, store.ErrExists) {
			return fmt.Errorf("upload %s: %w", f.name, err)
		}
	}
	return nil
}
