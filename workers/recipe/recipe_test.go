package recipe

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const good = `
version: 1
name: tiny
seed: 7
model:
  init: {hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 2, num_key_value_heads: 1, head_dim: 16,
         intermediate_size: 64, vocab_size: 512, rope_theta: 10000, max_position_embeddings: 1024}
data:
  generate: {problems: 40, held_out: 10, demonstrations: 100}
agent: {max_prompt_tokens: 512}
sft: {steps: 4, batch: 4, learning_rate: 0.001}
rl: {learning_rate: 0.0001}
stages:
  - {name: stage1, steps: 2, prompts: 2, samples: 4, keep: 2, response_tokens: 64, turns: 2}
eval: {problems: 5, samples: 2, turns: 2, response_tokens: 64}
`

func TestACompleteRecipePasses(t *testing.T) {
	r, err := Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if r.RL.ClipHigh != 0.28 || r.Agent.StreamChars != 1000 || r.Steps() != 2 {
		t.Errorf("defaults missing: %+v", r)
	}
}

func TestARecipeSurvivesJSON(t *testing.T) {
	r, err := Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back Recipe
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(r, back) {
		t.Errorf("recipe changed over JSON (%v):\n%+v\n%+v", err, r, back)
	}
}

func TestABadRecipeNamesTheKey(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"unknown key":         {"seed: 7", "seed: 7\nsede: 8", `line 5: there is no key "sede" here; delete or correct the key`},
		"unknown nested key":  {"keep: 2,", "keep: 2, kept: 3,", "kept"},
		"keep above samples":  {"keep: 2", "keep: 9", "stages[0].keep"},
		"kv heads":            {"num_key_value_heads: 1", "num_key_value_heads: 3", "num_key_value_heads"},
		"no data":             {"generate: {problems: 40, held_out: 10, demonstrations: 100}", "decontamination_ngram: 8", "data"},
		"clip":                {"rl: {", "rl: {clip_high: -0.5, ", "clip_high"},
		"rate of a stage":     {"steps: 2,", "steps: 2, learning_rate: 3,", "learning_rate"},
		"algorithm":           {"rl: {", "rl: {algorithm: ppo, ", "ppo"},
		"contradiction":       {"rl: {", "rl: {algorithm: grpo, kl_refresh_steps: 5, ", "kl_refresh_steps"},
		"a ramp too long":     {"rl: {", "rl: {algorithm: grpo, overlong: soft, overlong_ramp_tokens: 65, ", "rl.overlong_ramp_tokens is 65, want at most stages[0].response_tokens (64)"},
		"minimums too large":  {"rl: {", "rl: {selection: code, ", "rl.min_positive and rl.min_negative is 4, want at most stages[0].keep (2)"},
		"updates of nothing":  {"rl: {", "rl: {updates_per_round: 3, ", "rl.updates_per_round is 3, want at most stages[0].prompts (2)"},
		"an unread estimate":  {"rl: {", "rl: {kl_estimator: k2, ", "kl_estimator"},
		"a penalty unread":    {"rl: {", "rl: {algorithm: grpo, penalty: code, ", "penalty"},
		"an unknown penalty":  {"rl: {", "rl: {penalty: released, ", "penalty"},
		"no constant":         {"rl: {", "rl: {algorithm: dr-grpo, ", "loss_constant_tokens"},
		"endpoint":            {"agent: {", "sandbox: {endpoints: [sandbox-0]}\nagent: {", "sandbox.endpoints[0]"},
		"endpoint, preload":   {"agent: {", "sandbox: {endpoints: [http://s], preload: [numpy]}\nagent: {", "sandbox.preload"},
		"NaN":                 {"learning_rate: 0.0001", "learning_rate: .nan", "rl.learning_rate"},
		"stage called sft":    {"name: stage1", "name: sft", "stages[0].name"},
		"too long":            {"response_tokens: 64, turns: 2}\neval", "response_tokens: 900, turns: 2}\neval", "stages[0].response_tokens"},
		"tempered rollouts":   {"rl: {", "rl: {temperature: 0.7, ", "rl.temperature"},
		"sft without demos":   {", demonstrations: 100", "", "sft.steps"},
		"a fraction as count": {"batch: 4", "batch: 8.9", "batch"},
		"a fractional seed":   {"seed: 7", "seed: 1.5", "seed"},
		"a seed too large":    {"seed: 7", "seed: 18446744073709551616", "seed"},
		"a count too large":   {"steps: 2, prompts", "steps: 9223372036854775807, prompts", "stages[0].steps"},
		"a model too large":   {"hidden_size: 32", "hidden_size: 1000000000000", "hidden_size"},
		"endpoint, texts":     {"agent: {", "sandbox: {endpoints: [http://s], texts: {traceback: true}}\nagent: {", "sandbox.texts"},
		"a wait for ever":     {"agent:", "sandbox: {wall_seconds: 1e300}\nagent:", "wall_seconds"},
		"a second document":   {"eval: {", "---\nbogus: 1\n---\neval: {", "document"},
		"a wrong type":        {"seed: 7", "seed: [7]", "seed"},
		"two model sources":   {"model:", "model:\n  from: /somewhere", "model"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(good, c.from) {
				t.Fatalf("the test's own text lacks %q", c.from)
			}
			_, err := Parse([]byte(strings.Replace(good, c.from, c.to, 1)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one that names %s", err, c.want)
			}
		})
	}
}

func TestARecipeStoredByAnEarlierVersionKeepsItsMeaning(t *testing.T) {
	r, err := Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	want, err := r.RL.Parameters()
	if err != nil {
		t.Fatal(err)
	}
	r.RL.Supervision, r.RL.Penalty = "", "" // keys that it did not know
	if got, err := r.RL.Parameters(); err != nil || got != want {
		t.Errorf("%+v (%v), want %+v", got, err, want)
	}
	if got := r.Completed().RL; got.Supervision != "outcome" || got.Penalty != "paper" {
		t.Errorf("supervision %q and penalty %q, want what they stand for", got.Supervision, got.Penalty)
	}
}

func TestWhatImitationNeverReadsIsRefused(t *testing.T) {
	rft := func(keys string) error {
		_, err := Parse([]byte(strings.NewReplacer("rl: {", "rl: {algorithm: rft, "+keys, "keep: 2", "keep: 4").Replace(good)))
		return err
	}
	for _, read := range []string{"", "correct_per_problem: 2, ", "updates_per_round: 2, ", "high_entropy_share: 0.2, ", "loss_norm: sequence-mean, ", "equal_groups: refill, max_rounds: 3, "} {
		if err := rft(read); err != nil {
			t.Errorf("rft with %q is refused: %v", read, err)
		}
	}
	for key, value := range map[string]string{
		"reward": "signed", "overlong": "filter", "baseline": "mean", "ratio": "weight", "clip_low": "0.1", "clip_high": "0.5", "dual_clip": "3",
		"equal_groups": "keep", "kl_weight": "0.1", "supervision": "process",
	} {
		if err := rft(key + ": " + value + ", "); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("rft with %s: %s: error %v, want one that names the key", key, value, err)
		}
	}
}

func TestEveryExampleIsInOrder(t *testing.T) {
	examples, err := filepath.Glob("../../deploy/recipes/*.yaml")
	if err != nil || len(examples) < 5 {
		t.Fatalf("%d examples (%v)", len(examples), err)
	}
	for _, path := range examples {
		if _, err := Read(path); err != nil {
			t.Error(err)
		}
	}
}

func TestAMissingRecipeIsNamedWithTheFix(t *testing.T) {
	_, err := Read("/nowhere/r.yaml")
	if err == nil || !strings.Contains(err.Error(), "there is no file /nowhere/r.yaml; give the path") {
		t.Errorf("error %v, want one that names the file and the fix", err)
	}
}

func TestPathsAreTakenFromTheRecipesFolder(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "r.yaml")
	text := strings.Replace(good, "generate: {problems: 40, held_out: 10, demonstrations: 100}",
		"problems: p.jsonl\n  held_out_share: 0.1\n  demonstrations: d.jsonl\n  benchmarks: [b.jsonl]", 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if r.Data.Problems != filepath.Join(dir, "p.jsonl") || r.Data.Benchmarks[0] != filepath.Join(dir, "b.jsonl") {
		t.Errorf("paths %q and %q, want them in %s", r.Data.Problems, r.Data.Benchmarks, dir)
	}
}

func TestTrap04RolloutsAreSampledFromWhatIsTrained(t *testing.T) {
	r, err := Parse([]byte(good))
	if err != nil || r.RL.Temperature != 1 {
		t.Fatalf("rollouts have temperature %v, want 1 (%v)", r.RL.Temperature, err)
	}
	for _, cut := range []string{"temperature: 0.7", "temperature: 0", "top_p: 0.95", "top_k: 50", "repetition_penalty: 1.1", "min_p: 0.1"} {
		key, _, _ := strings.Cut(cut, ":")
		if _, err := Parse([]byte(strings.Replace(good, "rl: {", "rl: {"+cut+", ", 1))); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("rollouts with %s: error %v, want one that names it", cut, err)
		}
	}
	if _, err := Parse([]byte(strings.Replace(good, "eval: {", "eval: {temperature: 0, ", 1))); err != nil {
		t.Errorf("greedy evaluation is refused: %v", err)
	}
}
