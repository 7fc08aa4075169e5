package serving

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/serve"
	"github.com/restar-rl/restar/workers/tokenizer"
)

// exported is a run's folder with a small random model in it.
func exported(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny-run")
	at := filepath.Join(dir, "model")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Train([]string{tokenizer.Template{}.Prompt("What is 6 times 7?")}, 420, tokenizer.Markers())
	if err != nil {
		t.Fatal(err)
	}
	if err := tok.Save(at); err != nil {
		t.Fatal(err)
	}
	m, err := model.New(model.Config{
		Family: model.Qwen3, VocabSize: 420, HiddenSize: 32, IntermediateSize: 64, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 16,
		MaxPosition: 700, RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true, InitializerRange: 0.3,
	}, 5)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Save(at); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(at, activities.AgentFile), `{"system_prompt": "Be brief.", "tool": "python", "calls_per_turn": 2, "stream_chars": 100, "tool_response_chars": 64, "max_prompt_tokens": 9}`)
	write(t, filepath.Join(at, model.GenerationFile), `{"eos_token_id": [7, 9]}`)
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestARunsFolderIsServedAsTheModelThatItExported(t *testing.T) {
	dir := exported(t)
	for _, at := range []string{dir, filepath.Join(dir, "model")} {
		f, err := open(t.Context(), at, EngineOptions{Precision: "bf16"})
		if err != nil {
			t.Fatal(err)
		}
		end, _ := f.tokenizer.SpecialID(tokenizer.TurnEnd)
		text, _ := f.tokenizer.SpecialID(tokenizer.EndOfText)
		if f.name != "tiny-run" || f.model.Precision() != model.PrecisionBF16 || !slices.Equal(f.stops, []int32{end, text, 7, 9}) || f.blocks != 88 || f.room() != 700 {
			t.Errorf("%s: name %q, %s, stops %v, %d blocks, room %d", at, f.name, f.model.Precision(), f.stops, f.blocks, f.room())
		}
		if tpl := f.template(true); tpl.System != "Be brief." || tpl.Tools[0].Name != "python" {
			t.Errorf("template %+v", tpl)
		}
	}
}

func TestACacheInBF16HoldsTwiceTheTokensInTheSameMemory(t *testing.T) {
	blocks := map[model.Precision]int{}
	for _, p := range []model.Precision{model.PrecisionFP32, model.PrecisionBF16} {
		m, err := model.New(model.Config{VocabSize: 8, HiddenSize: 8, IntermediateSize: 8, Layers: 32, Heads: 8, KVHeads: 8, HeadDim: 128,
			MaxPosition: 1 << 17, RMSNormEps: 1e-6, RopeTheta: 10000, TieWordEmbeddings: true, InitializerRange: 0.1}, 1, model.WithPrecision(p))
		if err != nil {
			t.Fatal(err)
		}
		blocks[p] = chooseBlocks(m)
	}
	if blocks[model.PrecisionFP32] != 64 || blocks[model.PrecisionBF16] != 128 {
		t.Errorf("a cache of 1 GiB has %v blocks, want 64 in fp32 and 128 in bf16", blocks)
	}
}

func TestWhatCannotBeServedIsTheUsersToMend(t *testing.T) {
	dir := exported(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	serve := func(dir string, change func(*ServeOptions)) error {
		o := ServeOptions{EngineOptions: EngineOptions{Precision: "fp32"}, Addr: "127.0.0.1:0", Waiting: 1, Timeout: time.Minute}
		change(&o)
		return Serve(t.Context(), io.Discard, dir, o)
	}
	chat := func(change func(*ChatOptions)) error {
		o := ChatOptions{EngineOptions: EngineOptions{Precision: "fp32"}, NoTool: true, Isolation: "B", Tokens: 5, Turns: 1}
		change(&o)
		return Chat(t.Context(), strings.NewReader(" \n"), io.Discard, dir, o)
	}
	broken := exported(t)
	write(t, filepath.Join(broken, "model", activities.AgentFile), `{"prompt_system": ""}`)
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"no folder":     {serve("/nowhere", func(*ServeOptions) {}), "/nowhere"},
		"bad protocol":  {serve(broken, func(*ServeOptions) {}), "prompt_system"},
		"taken address": {serve(dir, func(o *ServeOptions) { o.Addr = taken.Addr().String() }), "--addr"},
		"precision":     {serve(dir, func(o *ServeOptions) { o.Precision = "fp8" }), "--precision"},
		"blocks":        {serve(dir, func(o *ServeOptions) { o.Blocks = -1 }), "--kv-blocks"},
		"queue":         {serve(dir, func(o *ServeOptions) { o.Waiting = 0 }), "--queue"},
		"timeout":       {serve(dir, func(o *ServeOptions) { o.Timeout = 0 }), "--timeout"},
		"drain":         {serve(dir, func(o *ServeOptions) { o.Drain = -1 }), "--drain"},
		"temperature":   {chat(func(o *ChatOptions) { o.Temperature = 3 }), "--temperature"},
		"tokens":        {chat(func(o *ChatOptions) { o.Tokens = 0 }), "--tokens"},
		"turns":         {chat(func(o *ChatOptions) { o.Turns = 5000 }), "--turns"},
		"no sandbox":    {chat(func(o *ChatOptions) { o.NoTool, o.Endpoints = false, []string{"http://127.0.0.1:1"} }), "no sandbox service of --sandbox is ready within 5s"},
		"isolation":     {chat(func(o *ChatOptions) { o.Isolation = "C" }), "--isolation"},
		"no question":   {chat(func(*ChatOptions) {}), "question"},
	} {
		if fault.Code(c.err) != fault.User || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that the user can mend and that names %q", name, c.err, c.want)
		}
	}
}

func TestServeAnswersUntilItIsAskedToEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, w, exported(t), ServeOptions{EngineOptions: EngineOptions{Precision: "fp32"}, Addr: "127.0.0.1:0", Waiting: 4, Timeout: time.Minute, Drain: time.Second, JSON: true})
		w.Close()
	}()
	var line struct {
		Event string
		Data  struct{ URL, Model string }
	}
	dec := json.NewDecoder(r)
	if err := dec.Decode(&line); err != nil || line.Event != "reading" {
		t.Fatalf("first line %+v (%v)", line, err)
	}
	if err := dec.Decode(&line); err != nil || line.Event != "serving" || line.Data.Model != "tiny-run" {
		t.Fatalf("second line %+v (%v)", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, io.MultiReader(dec.Buffered(), r)) }()
	resp, err := http.Post(line.Data.URL+"/chat/completions", "application/json",
		strings.NewReader(`{"model": "tiny-run", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 3}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(`"assistant"`)) {
		t.Errorf("status %d (%v): %s", resp.StatusCode, err, body)
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func TestAPipedQuestionIsAnswered(t *testing.T) {
	var first string
	for range 2 {
		var out bytes.Buffer
		o := ChatOptions{EngineOptions: EngineOptions{Precision: "fp32"}, NoTool: true, Isolation: "B", Tokens: 12, Turns: 1, Seed: 4, Temperature: 0.8, JSON: true}
		if err := Chat(t.Context(), strings.NewReader("What is\n6 times 7?\n"), &out, exported(t), o); err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = out.String()
		}
		if !strings.HasPrefix(out.String(), `{"event":"text","text":"<reason>"}`) || !strings.Contains(out.String(), `{"event":"end","stop":`) || out.String() != first {
			t.Errorf("output %s, before %s", out.String(), first)
		}
	}
}

// patient is a model that answers with the question, and "wait" not before it is stopped.
type patient struct {
	signals chan os.Signal
	asked   []string
}

func (p *patient) Ask(ctx context.Context, question string, show serve.Show) (agent.StopReason, error) {
	p.asked = append(p.asked, question)
	show.Text("you said " + question)
	if question != "wait" {
		return agent.Answered, nil
	}
	p.signals <- os.Interrupt
	<-ctx.Done()
	return "", context.Cause(ctx)
}

func (p *patient) Forget() { p.asked = append(p.asked, "FORGET") }

func TestCtrlCEndsTheAnswerAndNotTheConversation(t *testing.T) {
	var out bytes.Buffer
	p := &patient{signals: make(chan os.Signal, 1)}
	in := strings.NewReader("wait\n\n/what\nhello\n/new\nagain\n/exit\nnever\n")
	talk := &talk{dialogue: p, in: in, interrupts: p.signals, show: newPrinter(&out, false, false)}
	if err := talk.converse(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"wait", "hello", "FORGET", "again"}; !slices.Equal(p.asked, want) {
		t.Errorf("asked %q, want %q", p.asked, want)
	}
	want := "> you said wait\nstopped; the answer is forgotten\n> > there are /new, /exit and Ctrl-C\n> you said hello\n> forgotten\n> you said again\n> "
	if got := out.String(); got != want {
		t.Errorf("shown\n%s\nwant\n%s", got, want)
	}
}

func TestCtrlCEndsAPipedQuestionAsInterrupted(t *testing.T) {
	p := &patient{signals: make(chan os.Signal, 1)}
	talk := &talk{dialogue: p, in: strings.NewReader("wait"), interrupts: p.signals, show: newPrinter(io.Discard, false, false)}
	if err := talk.once(t.Context()); fault.Code(err) != fault.Interrupted {
		t.Errorf("error %v, want an interruption", err)
	}
}

func TestAQuestionTooLongForTheModelIsToldAndForgotten(t *testing.T) {
	f, err := open(t.Context(), exported(t), EngineOptions{Precision: "fp32"})
	if err != nil {
		t.Fatal(err)
	}
	e, err := f.start()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	d, err := serve.NewDialogue(e, noTool{}, f.tokenizer, f.dialogue(ChatOptions{NoTool: true, Tokens: 4, Turns: 1, Seed: 1}))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	talk := &talk{dialogue: d, in: strings.NewReader(strings.Repeat("long ", 500) + "\n/exit\n"), show: newPrinter(&out, false, false)}
	if err := talk.converse(t.Context()); err != nil || !strings.Contains(out.String(), "no room for another turn") || strings.Contains(out.String(), "stopped") {
		t.Errorf("%v:\n%s", err, out.String())
	}
}

func TestCallsAndResponsesAreSetOffHoweverTheTextComes(t *testing.T) {
	call := tokenizer.PythonTool("python").Call("print(1)\nprint(input())", "7")
	text := "<reason>I compute. </reason>\n" + call
	want := "<reason>I compute. </reason>\n┌ python\n│ print(1)\n│ print(input())\n┌ input\n│ 7\n┌ ok\n│ Tool call success\n│ stdout: 1\n</reason> <tool_ca\n"
	for size := 1; size <= len(text); size += 3 {
		var out bytes.Buffer
		p := newPrinter(&out, false, false)
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			p.text(rest[:n])
			rest = rest[n:]
		}
		p.response(agent.OK, "Tool call success\nstdout: 1\n")
		p.text("</reason> <tool_ca")
		p.end(agent.Answered)
		if out.String() != want {
			t.Fatalf("in pieces of %d:\n%s\nwant\n%s", size, out.String(), want)
		}
	}
}

func TestAModelCannotDriveTheTerminal(t *testing.T) {
	var out bytes.Buffer
	p := newPrinter(&out, false, true)
	p.text("\x1b[2Jhi\x07<tool_call>\x1b[31m</tool_call>")
	p.end(agent.StopLength)
	for _, bad := range []string{"\x1b[2J", "\x1b[31m", "\x07"} {
		if strings.Contains(out.String(), bad) {
			t.Errorf("the terminal was sent %q", bad)
		}
	}
	if !strings.Contains(out.String(), "hi") || !strings.Contains(out.String(), "cut off: length") {
		t.Errorf("output %q", out.String())
	}
}
