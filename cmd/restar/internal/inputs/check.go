// Package inputs checks what a recipe names on the user's disk and puts it into the store.
//
// Everything is checked before anything is written. What the store holds is named after its content, so a recipe whose
// files have changed is another recipe.
package inputs

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/cmd/restar/internal/numerics"
	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/problem"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/tokenizer"
	"github.com/restar-rl/restar/workers/verify"
)

// ReadRecipe reads a recipe file; whatever is wrong with it is the user's to mend.
func ReadRecipe(ctx context.Context, path string) (recipe.Recipe, error) {
	return Await(ctx, func() (recipe.Recipe, error) {
		r, err := recipe.Read(path)
		return r, fault.AsUser(err)
	})
}

// Check makes sure that every file and folder of the recipe can be read and is what it is used as.
func Check(ctx context.Context, r recipe.Recipe) error {
	_, err := Await(ctx, func() (struct{}, error) { return struct{}{}, check(r) })
	return err
}

func check(r recipe.Recipe) error {
	var errs []error
	if r.Model.From != "" {
		errs = append(errs, checkModel(r))
	}
	if r.Model.Init != nil && r.Model.Init.Tokenizer != "" {
		errs = append(errs, checkTokenizer(r))
	}
	if r.Data.Problems != "" {
		errs = append(errs, checkProblems("data.problems", r.Data.Problems, true))
	}
	if r.Data.HeldOut != "" {
		errs = append(errs, checkProblems("data.held_out", r.Data.HeldOut, false), checkAnswers("data.held_out", r.Data.HeldOut))
	}
	for i, b := range r.Data.Benchmarks {
		errs = append(errs, checkProblems(fmt.Sprintf("data.benchmarks[%d]", i), b, false))
	}
	if r.Data.Demos != "" {
		errs = append(errs, checkDemos("data.demonstrations", r.Data.Demos, r.Agent.Tool))
	}
	return fault.AsUser(errors.Join(errs...))
}

// checkProblems wants JSON on every line. With curated set, rows that are JSON but no usable problem are left to curation,
// which removes each with its reason; files that nothing curates must be right throughout.
func checkProblems(key, path string, curated bool) error {
	if err := checkFile(key, path); err != nil {
		return err
	}
	good, bad, err := problem.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	lines := map[int]bool{}
	if curated && len(bad) > 0 {
		if lines, err = jsonLines(path); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	for _, b := range bad {
		if !lines[b.Line] {
			return badRow(key, path, b, len(bad), `one JSON object a line, e.g. {"problem": "What is 2+3?", "answer": "5"}`)
		}
	}
	if len(good) == 0 {
		return fmt.Errorf("%s: %s holds no problem; give a JSONL file with the keys problem and answer", key, path)
	}
	return nil
}

// checkAnswers wants integers, the only answers that are judged for certain. Curation removes training problems with others;
// held-out problems are a measure, in which they would count as wrong whatever the model says.
func checkAnswers(key, path string) error {
	if checkFile(key, path) != nil {
		return nil // told already
	}
	set, _, err := problem.ReadFile(path)
	if err != nil {
		return nil // told already
	}
	wrong, first := 0, problem.Problem{}
	for _, p := range set {
		if _, ok := verify.Integer(p.Answer); !ok {
			if wrong++; wrong == 1 {
				first = p
			}
		}
	}
	if wrong == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s: %d of %d rows have answers that are not integers, the first is %s with %.60q; correct or delete them: answers are compared as integers",
		key, path, wrong, len(set), first.ID, first.Answer)
}

func checkDemos(key, path, tool string) error {
	if err := checkFile(key, path); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	defer f.Close()
	good, bad, err := problem.ReadDemos(f)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %s: %w", key, path, err)
	case len(bad) > 0:
		return badRow(key, path, bad[0], len(bad), `one JSON object a line, e.g. {"problem": "...", "turns": [{"role": "assistant", "text": "..."}]}`)
	case len(good) == 0:
		return fmt.Errorf("%s: %s holds no demonstration", key, path)
	}
	return checkCalls(key, path, good, tool)
}

// checkCalls wants demonstrations that call tools to call the recipe's: the model learns the name from them, and every call of
// another one is answered with an error.
func checkCalls(key, path string, demos []problem.Demo, tool string) error {
	other := ""
	for _, d := range demos {
		for _, turn := range d.Turns {
			if turn.Role != problem.RoleAssistant {
				continue
			}
			for _, call := range agent.ParseToolCalls(turn.Text) {
				if call.Err == nil && call.Name == tool {
					return nil
				}
				other = cmp.Or(other, call.Name)
			}
		}
	}
	if other == "" {
		return nil
	}
	return fmt.Errorf("%s: the calls in %s are of the tool %q, and none is of agent.tool %q, the only one that a run has; give both the same name", key, path, other, tool)
}

func badRow(key, path string, b problem.BadRow, n int, want string) error {
	more := ""
	if n > 1 {
		more = fmt.Sprintf(" (and %d more rows)", n-1)
	}
	return fmt.Errorf("%s: %s line %d: %s%s; correct or delete the row: restar reads %s", key, path, b.Line, b.Reason, more, want)
}

// jsonLines returns the lines, from 1, that are valid JSON.
func jsonLines(path string) (map[int]bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := map[int]bool{}
	in := bufio.NewReader(f)
	for n := 1; ; n++ {
		row, err := in.ReadBytes('\n')
		out[n] = json.Valid(bytes.TrimSpace(row))
		if err != nil {
			return out, nil // io.EOF: ReadFile has read it to its end already
		}
	}
}

func checkFile(key, path string) error {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: there is no file %s; correct the path (relative paths are taken from the recipe's folder)", key, path)
	case err != nil:
		return fmt.Errorf("%s: %w", key, err)
	case st.IsDir():
		return fmt.Errorf("%s: %s is a folder; give a JSONL file", key, path)
	case !st.Mode().IsRegular():
		return fmt.Errorf("%s: %s is a device or a pipe (%s), which may have no end; give a JSONL file", key, path, st.Mode())
	}
	return nil
}

// checkModel loads the whole folder, as a worker will.
func checkModel(r recipe.Recipe) error {
	dir := r.Model.From
	fix := "give a Hugging Face folder of a Qwen3, Qwen2 or Llama model with config.json, tokenizer.json and weights in model.safetensors or in the files of model.safetensors.index.json"
	st, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("model.from: there is no folder %s; %s", dir, fix)
	case err != nil:
		return fmt.Errorf("model.from: %w; mend that or %s", err, fix)
	case !st.IsDir():
		return fmt.Errorf("model.from: %s is not a folder; %s", dir, fix)
	}
	if err := checkModelFiles(dir, fix); err != nil {
		return err
	}
	if _, err := numerics.ID(model.Precision(r.Precision)); err != nil {
		return err
	}
	m, err := model.Load(dir)
	if err != nil {
		return fmt.Errorf("model.from: %s is not a model that restar can train: %w; %s", dir, err, fix)
	}
	t, err := tokenizer.Load(dir)
	if err != nil {
		return fmt.Errorf("model.from: %s: %w; %s", filepath.Join(dir, "tokenizer.json"), err, fix)
	}
	if err := checkMarkers(t); err != nil {
		return fmt.Errorf("model.from: %s: %w; %s", filepath.Join(dir, "tokenizer.json"), err, fix)
	}
	return errors.Join(checkEnds(dir, m.Config), checkLengths(r, m.Config, t.VocabSize()), checkPrompts(r, t))
}

// checkEnds wants the ids that end a sequence to be ids.
func checkEnds(dir string, c model.Config) error {
	generation, err := os.ReadFile(filepath.Join(dir, model.GenerationFile))
	if err == nil {
		_, err = c.Ends(generation)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("model.from: %s: %w; correct the file, or delete it to end turns by what config.json names", dir, err)
}

// checkModelFiles wants every file that a run will read to be a file that can be read.
func checkModelFiles(dir, fix string) error {
	for _, f := range modelFiles(dir) {
		path := filepath.Join(dir, f.name)
		st, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // whether it is needed, and why, is told by who reads it
		}
		if err == nil && !st.Mode().IsRegular() {
			return fmt.Errorf("model.from: %s is not a file (%s); %s", path, st.Mode(), fix)
		}
		in, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("model.from: %w; mend its permissions or %s", err, fix)
		}
		in.Close()
	}
	return nil
}

// checkMarkers wants the markers that begin and end turns as tokens of their own: without them no turn ends.
func checkMarkers(t *tokenizer.Tokenizer) error {
	var missing []string
	for _, m := range []string{tokenizer.TurnStart, tokenizer.TurnEnd, tokenizer.EndOfText} {
		if _, ok := t.SpecialID(m); !ok {
			missing = append(missing, m)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("the tokenizer lacks %s, restar trains ChatML models such as Qwen3", strings.Join(missing, " and "))
}

// checkPrompts wants every held-out problem that is evaluated to be a prompt of the length allowed. Curation removes the
// training problems that are too long; held-out problems are a measure, which loses none silently.
func checkPrompts(r recipe.Recipe, t *tokenizer.Tokenizer) error {
	if r.Data.HeldOut == "" || checkFile("data.held_out", r.Data.HeldOut) != nil {
		return nil // there is none, or what it is has been told
	}
	set, _, err := problem.ReadFile(r.Data.HeldOut)
	if err != nil {
		set = nil // the check of the file itself tells
	}
	tpl := activities.Template(r)
	long, longest := 0, problem.Problem{}
	most := r.Agent.MaxPromptTokens
	set = set[:min(len(set), r.Eval.Problems)]
	for _, p := range set {
		n := len(tpl.PromptIDs(t, p.Problem))
		if n > r.Agent.MaxPromptTokens {
			long++
		}
		if n > most {
			most, longest = n, p
		}
	}
	if long == 0 {
		return nil
	}
	return fmt.Errorf("data.held_out: %d of the first %d problems of %s are longer than agent.max_prompt_tokens (%d) in this model's tokens, the longest is %s with %d; raise the limit, shorten the problems or leave them out",
		long, len(set), r.Data.HeldOut, r.Agent.MaxPromptTokens, longest.ID, most)
}

// checkLengths compares the recipe's longest trajectory and the tokenizer's ids with what the model has room for.
func checkLengths(r recipe.Recipe, c model.Config, vocab int) error {
	if vocab > c.VocabSize {
		return fmt.Errorf("model.from: tokenizer.json has %d ids, config.json has vocab_size %d; the two are not of one model", vocab, c.VocabSize)
	}
	longest := r.Eval.Tokens
	for _, s := range r.Stages {
		longest = max(longest, s.ResponseTokens)
	}
	if need := r.Agent.MaxPromptTokens + longest; need > c.MaxPosition {
		return fmt.Errorf("model.from: the recipe needs %d positions (agent.max_prompt_tokens %d + response_tokens %d), the model has %d; shorten them",
			need, r.Agent.MaxPromptTokens, longest, c.MaxPosition)
	}
	return nil
}
