package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workers/local"
	"github.com/restar-rl/restar/workers/sandbox"
	"golang.org/x/sys/unix"
)

// TestMain makes the test program a restar for the children that it starts: sandboxed interpreters and workers.
func TestMain(m *testing.M) {
	sandbox.MaybeChild()
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		os.Exit(local.ExitCode(execute(ctx, os.Args[1:], os.Stdout, os.Stderr), fault.User))
	}
	os.Exit(m.Run())
}

// recipeText is a whole recipe; tests change one thing.
const recipeText = `version: 1
name: tiny
seed: 7
model:
  init: {hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2, num_key_value_heads: 1, head_dim: 8, intermediate_size: 32, vocab_size: 400, rope_theta: 10000, max_position_embeddings: 512}
data:
  generate: {problems: 40, held_out: 10, demonstrations: 100}
agent: {max_prompt_tokens: 256}
sandbox: {isolation: B}
sft: {steps: 2, batch: 4, learning_rate: 0.001}
rl: {learning_rate: 0.0001}
stages:
  - {name: stage1, steps: 2, prompts: 2, samples: 4, keep: 2, response_tokens: 64, turns: 2}
eval: {problems: 4, samples: 2, turns: 2, response_tokens: 64}
`

// run executes a command line and returns its exit code and everything it printed.
func run(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	code := execute(t.Context(), args, &out, &out)
	return code, out.String()
}

// writeRecipe writes recipeText with some parts replaced: old, new, old, new...
func writeRecipe(t *testing.T, replace ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "recipe.yaml")
	text := strings.NewReplacer(replace...).Replace(recipeText)
	if len(replace) > 0 && text == recipeText {
		t.Fatalf("the recipe lacks %q", replace[0])
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func wantUserError(t *testing.T, code int, out string, parts ...string) {
	t.Helper()
	if code != 2 {
		t.Errorf("exit code %d, want 2:\n%s", code, out)
	}
	for _, p := range parts {
		if !strings.Contains(out, p) {
			t.Errorf("message lacks %q:\n%s", p, out)
		}
	}
}

func TestWrongInputIsNamedWithItsFixAndNothingIsWritten(t *testing.T) {
	const generate = "generate: {problems: 40, held_out: 10, demonstrations: 100}"
	folder := t.TempDir()
	rows := filepath.Join(folder, "rows.jsonl")
	if err := os.WriteFile(rows, []byte(`{"problem": "What is 1+1?", "answer": "2"}`+"\n{broken\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	from := func(data string) []string {
		return []string{generate, data + "\n  generate: {held_out: 10, demonstrations: 100}"}
	}
	for name, c := range map[string]struct {
		recipe []string
		want   []string
	}{
		"unknown key":        {[]string{"seed: 7", "sead: 7"}, []string{"line 3", `"sead"`, "delete or correct the key"}},
		"value out of range": {[]string{"steps: 2, prompts: 2", "steps: 0, prompts: 2"}, []string{"stages[0].steps is 0"}},
		"missing file":       {from("problems: /nowhere/p.jsonl"), []string{"data.problems", "/nowhere/p.jsonl", "correct the path"}},
		"malformed row":      {from("problems: " + rows), []string{rows + " line 2", "correct or delete the row"}},
		"wrong model folder": {[]string{"model:\n  init: {hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2, num_key_value_heads: 1, head_dim: 8, intermediate_size: 32, vocab_size: 400, rope_theta: 10000, max_position_embeddings: 512}",
			"model: {from: " + folder + "}"}, []string{"model.from", folder, "config.json"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeRecipe(t, c.recipe...)
			dir := filepath.Join(t.TempDir(), "data")
			for _, args := range [][]string{{"run", path, "--dir", dir}, {"recipe", "check", path}} {
				code, out := run(t, args...)
				wantUserError(t, code, out, c.want...)
			}
			if _, err := os.Stat(dir); err == nil {
				t.Errorf("%s was made", dir)
			}
		})
	}
}

func TestWrongCommandLinesAreTheUsersToMend(t *testing.T) {
	recipe, taken := writeRecipe(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(taken, "model"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"unknown command":         {[]string{"trian"}, "trian"},
		"unknown recipe command":  {[]string{"recipe", "chekc", recipe}, "chekc"},
		"unknown flag":            {[]string{"run", recipe, "--drr", "x"}, "drr"},
		"no recipe":               {[]string{"run"}, "1 arg"},
		"missing recipe":          {[]string{"run", "/nowhere/r.yaml"}, "no file /nowhere/r.yaml; give the path of a recipe"},
		"run name":                {[]string{"run", recipe, "--run", "No Such Name"}, "--run"},
		"Temporal without S3":     {[]string{"run", recipe, "--temporal", "127.0.0.1:1"}, "--s3"},
		"S3 without Temporal":     {[]string{"status", "--s3", "http://127.0.0.1:1"}, "--temporal"},
		"a stack never started":   {[]string{"status", "--dir", "/nowhere/data"}, "/nowhere/data"},
		"folder that is a file":   {[]string{"run", recipe, "--dir", recipe}, "is not a folder"},
		"figures in no folder":    {[]string{"run", recipe, "--figures", filepath.Join(recipe, "f.json")}, "--figures"},
		"report that is a folder": {[]string{"report", "r", "--out", filepath.Dir(recipe)}, "--out"},
		"model that is a file":    {[]string{"run", recipe, "--dir", taken}, filepath.Join(taken, "model") + " is not a folder"},
		"model of an evaluation":  {[]string{"eval", "/nowhere/model", recipe}, "/nowhere/model"},
		"samples of evaluation":   {[]string{"eval", "m", "p", "--samples", "0", "--prompt-tokens", "64"}, "eval.samples is 0"},
		"unknown role":            {[]string{"worker", "--roles", "cook"}, "cook"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("RESTAR_DEVSERVER", "/bin/true")
			for _, name := range []string{"RESTAR_TEMPORAL", "RESTAR_S3_ENDPOINT", "RESTAR_BUCKET"} {
				t.Setenv(name, "")
			}
			code, out := run(t, c.args...)
			wantUserError(t, code, out, c.want)
		})
	}
}

func TestARecipeInOrderPassesItsCheck(t *testing.T) {
	if code, out := run(t, "recipe", "check", writeRecipe(t)); code != 0 || !strings.Contains(out, "tiny is in order") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

func TestATakenPortIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	dir := t.TempDir()
	body := fmt.Sprintf(`{"grpc": %d, "ui": 29998, "s3": 29999}`, port)
	if err := os.WriteFile(filepath.Join(dir, "ports.json"), []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("RESTAR_DEVSERVER", "/bin/true")
	code, out := run(t, "run", writeRecipe(t), "--dir", dir)
	wantUserError(t, code, out, fmt.Sprintf("port %d", port), "ports.json")
}

func TestAMissingPythonModuleIsNamedWithItsPackage(t *testing.T) {
	t.Setenv("RESTAR_DEVSERVER", "/bin/true")
	dir := filepath.Join(t.TempDir(), "data")
	code, out := run(t, "run", writeRecipe(t, "isolation: B", "isolation: B, preload: [nosuchmodule]"), "--dir", dir)
	wantUserError(t, code, out, "nosuchmodule", "python3-nosuchmodule")
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s was made", dir)
	}
}

func TestAMissingServerProgramIsNamedWithHowToBuildIt(t *testing.T) {
	t.Setenv("RESTAR_DEVSERVER", "")
	t.Setenv("PATH", t.TempDir())
	code, out := run(t, "run", writeRecipe(t), "--dir", filepath.Join(t.TempDir(), "data"))
	wantUserError(t, code, out, "restar-devserver", "make build")
}

func TestAnInstructionPathThatTheProcessorLacksIsNamedAndNothingIsWritten(t *testing.T) {
	t.Setenv("RESTAR_CPU_ISA", "mmx")
	t.Setenv("RESTAR_DEVSERVER", "/bin/true")
	dir := filepath.Join(t.TempDir(), "data")
	code, out := run(t, "run", writeRecipe(t), "--dir", dir)
	wantUserError(t, code, out, "RESTAR_CPU_ISA", `"mmx"`)
	code, out = run(t, "doctor", "--dir", dir)
	wantUserError(t, code, out, "BAD   numerics", "RESTAR_CPU_ISA")
	code, out = run(t, "worker", "--roles", "cpu", "--temporal", "127.0.0.1:1", "--s3", "http://127.0.0.1:1", "--bucket", "b")
	wantUserError(t, code, out, "credentials")
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	code, out = run(t, "worker", "--roles", "cpu", "--temporal", "127.0.0.1:1", "--s3", "http://127.0.0.1:1", "--bucket", "b")
	wantUserError(t, code, out, "RESTAR_CPU_ISA")
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s was made", dir)
	}
}

// asNobody runs f with the rights on files of a user who owns none: root's own would open everything.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() == 0 {
		const nobody = 65534
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if _, err := unix.SetfsuidRetUid(nobody); err != nil {
			t.Fatal(err)
		}
		defer func() { _, _ = unix.SetfsuidRetUid(0) }()
	}
	f()
}

func TestAFolderThatMayNotBeEnteredIsToldFromOneThatIsNotThere(t *testing.T) {
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closed, 0o000); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(closed, "data")
	for _, command := range []string{"status", "doctor"} {
		asNobody(t, func() {
			code, out := run(t, command, "--dir", dir)
			wantUserError(t, code, out, "permission denied", "mend", dir)
			if strings.Contains(out, "no stack is running") || strings.Contains(out, "delete") {
				t.Errorf("%s takes a closed folder for something else:\n%s", command, out)
			}
		})
	}
}

func TestACheckThatWaitsForAPipeEndsAtCtrlC(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "recipe.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"recipe", "check", pipe}, {"run", pipe, "--dir", filepath.Join(t.TempDir(), "data")}} {
		var out bytes.Buffer
		if code := execute(ctx, args, &out, &out); code != 130 {
			t.Errorf("%v: exit code %d, want 130:\n%s", args, code, out.String())
		}
	}
}
