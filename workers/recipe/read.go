package recipe

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

const defaultAlgorithm = "grpo-roc"

// Defaults holds the values that a recipe may leave out, with their sources.
func Defaults() Recipe {
	return Recipe{
		Numerics:  "exact",
		Precision: "fp32",
		Data:      Data{NGram: 8, HeldOutOverlap: "ngram"}, // rStar2-Agent §5.1
		Agent: Agent{
			Tool:            "python_code_with_standard_io",
			CallsPerTurn:    1,    // verl's default, which every published run used
			StreamChars:     1000, // code-judge's MAX_STDOUT_ERROR_LENGTH
			ResponseChars:   256,  // verl's max_tool_response_length
			MaxPromptTokens: 2048,
		},
		Sandbox:    Sandbox{Isolation: "B", CPUSecs: 4, WallSecs: 12, MemoryMB: 256}, // code-judge runs rStar2 with 4 s; wall is only the net
		SFT:        SFT{Schedule: "cosine", SaveEvery: 50},
		RL:         preset(defaultAlgorithm, ""),
		Eval:       Eval{Temperature: 0.6}, // rStar2-Agent §5.1
		Checkpoint: Checkpoint{Every: 5, Keep: 2},
	}
}

// Read reads, completes and checks a recipe file. Relative paths in it are taken from the file's own folder.
func Read(path string) (Recipe, error) {
	body, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Recipe{}, fmt.Errorf("recipe: there is no file %s; give the path of a recipe, such as deploy/recipes/quickstart.yaml", path)
	case err != nil:
		return Recipe{}, fmt.Errorf("recipe: %w; give the path of a YAML file that can be read", err)
	}
	r, err := Parse(body)
	if err != nil {
		return Recipe{}, fmt.Errorf("recipe %s: %w", path, err)
	}
	r.resolve(filepath.Dir(path))
	return r, nil
}

// Parse decodes and checks a recipe. Errors show the line and name the key.
func Parse(body []byte) (Recipe, error) {
	r := Defaults()
	r.RL = named(body)
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	dec := yaml.NewDecoder(bytes.NewReader(body), yaml.Strict(), yaml.DisallowUnknownField())
	switch err := dec.Decode(&r); {
	case errors.Is(err, io.EOF):
		return Recipe{}, errors.New("the file is empty; deploy/recipes/quickstart.yaml shows what a recipe holds")
	case err != nil:
		return Recipe{}, explain(err)
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return Recipe{}, errors.New("the file holds more than one document; a recipe is one: delete what follows the line ---")
	}
	for _, s := range r.Stages {
		if s.Star != nil {
			s.Star.complete()
		}
	}
	return r, errors.Join(exactNumbers(body), r.Validate())
}

// named holds the parameters of the algorithm that a recipe names. What is wrong with the text is for the strict reading to say.
func named(body []byte) RL {
	var peek struct {
		RL struct{ Algorithm, Selection string }
	}
	if err := yaml.Unmarshal(body, &peek); err != nil || peek.RL.Algorithm == "" {
		return preset(defaultAlgorithm, peek.RL.Selection)
	}
	return preset(peek.RL.Algorithm, peek.RL.Selection)
}

// exactNumbers refuses numbers that the YAML reader would change to make them fit: a fraction where a count belongs, and
// integers beyond 64 bits.
func exactNumbers(body []byte) error {
	file, err := parser.ParseBytes(body, 0)
	if err != nil {
		return explain(err)
	}
	var found numbers
	for _, doc := range file.Docs {
		if doc.Body != nil {
			ast.Walk(&found, doc.Body)
		}
	}
	return errors.Join(found.bad...)
}

// numbers gathers the number literals of a recipe that do not mean what they say.
type numbers struct{ bad []error }

// fractions are the keys whose values are real numbers.
var fractions = map[string]bool{
	"rope_theta": true, "held_out_share": true, "cpu_seconds": true, "wall_seconds": true, "learning_rate": true, "weight_decay": true,
	"clip_low": true, "clip_high": true, "beta1": true, "beta2": true, "max_grad_norm": true, "temperature": true, "max_all_correct": true,
	"dual_clip": true, "kl_weight": true, "high_entropy_share": true, "growth": true, "tolerance": true,
}

// Visit implements ast.Visitor.
func (n *numbers) Visit(node ast.Node) ast.Visitor {
	pair, ok := node.(*ast.MappingValueNode)
	if !ok {
		return n
	}
	key, value := pair.Key.String(), pair.Value
	switch value.Type() {
	case ast.FloatType:
		if !fractions[key] {
			n.bad = append(n.bad, fmt.Errorf("line %d: %s is %s, want a whole number", value.GetToken().Position.Line, key, value))
		}
	case ast.IntegerType:
		if _, err := strconv.ParseInt(strings.ReplaceAll(value.GetToken().Value, "_", ""), 0, 64); err != nil && key != "seed" {
			n.bad = append(n.bad, fmt.Errorf("line %d: %s is %s, beyond 64 bits", value.GetToken().Position.Line, key, value))
		}
	}
	if key == "seed" {
		if _, err := strconv.ParseUint(strings.ReplaceAll(value.GetToken().Value, "_", ""), 0, 64); err != nil {
			n.bad = append(n.bad, fmt.Errorf("line %d: seed is %s, want a whole number of at most 64 bits", value.GetToken().Position.Line, value))
		}
	}
	return n
}

// explain shows the lines around a decoding error. An unknown key is named with its line and the fix.
func explain(err error) error {
	shown := yaml.FormatError(err, false, true)
	var unknown *yaml.UnknownFieldError
	if errors.As(err, &unknown) && unknown.GetToken() != nil {
		at := unknown.GetToken()
		return fmt.Errorf("line %d: there is no key %q here; delete or correct the key\n%s", at.Position.Line, at.Value, shown)
	}
	return fmt.Errorf("%s", shown)
}

// resolve makes every path in the recipe absolute.
func (r *Recipe) resolve(dir string) {
	paths := append([]*string{&r.Model.From, &r.Data.Problems, &r.Data.HeldOut, &r.Data.Demos}, pointers(r.Data.Benchmarks)...)
	if r.Model.Init != nil {
		paths = append(paths, &r.Model.Init.Tokenizer)
	}
	for _, p := range paths {
		if *p != "" && !filepath.IsAbs(*p) {
			if abs, err := filepath.Abs(filepath.Join(dir, *p)); err == nil {
				*p = abs
			}
		}
	}
}

func pointers(s []string) []*string {
	out := make([]*string, len(s))
	for i := range s {
		out[i] = &s[i]
	}
	return out
}
