package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/restar-rl/restar/workers/local"
)

// background starts a program that the test ends in order, and demands that it then succeeds.
func background(t *testing.T, path string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("%s %s ended by itself: %v", filepath.Base(path), args[0], err)
		}
		err := cmd.Wait()
		log.Close()
		if err != nil || t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Errorf("%s %s: %v\n%s", filepath.Base(path), strings.Join(args, " "), err, text)
		}
	})
}

// ownStack starts a Temporal server and an S3 server by hand and tells the environment where they are.
func ownStack(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready.json")
	background(t, os.Getenv("RESTAR_DEVSERVER"), "--dir", dir, "--ready", ready, "--grpc", "0", "--ui", "0", "--s3", "0")
	const patience = time.Minute // it answers within three seconds where nothing else is busy
	var at local.Endpoints
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if body, err := os.ReadFile(ready); err == nil && json.Unmarshal(body, &at) == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("restar-devserver is not ready after %v", patience)
		}
	}
	for name, value := range map[string]string{
		"RESTAR_TEMPORAL": at.Temporal, "RESTAR_NAMESPACE": at.Namespace, "RESTAR_S3_ENDPOINT": at.S3, "RESTAR_BUCKET": at.Bucket,
		"AWS_ACCESS_KEY_ID": at.AccessKey, "AWS_SECRET_ACCESS_KEY": at.SecretKey, "RESTAR_DEVSERVER": "",
	} {
		t.Setenv(name, value)
	}
}

// trainOnOwnStack trains an exported model on rows in GSM8K's format, with every address from the environment: the command
// starts nothing itself.
func trainOnOwnStack(t *testing.T, model string) {
	ownStack(t)
	for _, roles := range []string{"orchestrator,trainer", "rollout,cpu"} {
		background(t, os.Args[0], "worker", "--roles", roles)
	}
	var rows strings.Builder
	for i := range 12 {
		fmt.Fprintf(&rows, `{"question": "Ann has %d pens and buys %d more. How many pens has she?", "answer": "%d + %d = <<%d+%d=%d>>%d\n#### %d"}`+"\n",
			i+2, 3*i+1, i+2, 3*i+1, i+2, 3*i+1, 4*i+3, 4*i+3, 4*i+3)
	}
	file := filepath.Join(t.TempDir(), "gsm8k.jsonl")
	if err := os.WriteFile(file, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	const init = "init: {hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2, num_key_value_heads: 1, head_dim: 8, intermediate_size: 32, vocab_size: 400, rope_theta: 10000, max_position_embeddings: 512}"
	recipe := writeRecipe(t, "name: tiny", "name: own", init, "from: "+model, "generate: {problems: 40, held_out: 10, demonstrations: 100}", "problems: "+file+"\n  held_out_share: 0.3",
		"sft: {steps: 2, batch: 4, learning_rate: 0.001}\n", "", "max_prompt_tokens: 256", "max_prompt_tokens: 900")
	out := t.TempDir()
	code, text := run(t, "run", recipe, "--dir", out)
	want(t, "training on a stack of one's own", code, 0, text, "run own: started", "problems to train on", "run own is done")
	if strings.Contains(text, "Temporal UI:") {
		t.Errorf("the embedded stack was started:\n%s", text)
	}
	for _, name := range []string{"report.html", "model/config.json", "model/model.safetensors"} {
		if _, err := os.Stat(filepath.Join(out, name)); err != nil {
			t.Error(err)
		}
	}
	code, text = run(t, "status", "own")
	want(t, "status on a stack of one's own", code, 0, text, "own: Completed", "avg@")
}
