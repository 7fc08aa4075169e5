package serving

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/serve"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// ChatOptions are those of `restar chat`.
type ChatOptions struct {
	EngineOptions
	NoTool      bool
	Isolation   string
	Preload     []string
	Endpoints   []string
	Temperature float64
	Tokens      int
	Turns       int
	Seed        uint64
	JSON        bool
}

// Register adds the flags.
func (o *ChatOptions) Register(fs *pflag.FlagSet) {
	o.EngineOptions.Register(fs)
	d := recipe.Defaults()
	fs.BoolVar(&o.NoTool, "no-tool", false, "talk without the Python tool")
	fs.StringVar(&o.Isolation, "isolation", d.Sandbox.Isolation, "least isolation of tool calls: A or B")
	fs.StringSliceVar(&o.Preload, "preload", nil, "Python modules that tool calls find imported")
	fs.StringSliceVar(&o.Endpoints, "sandbox", nil, "URLs of sandbox services that run the tool calls")
	fs.Float64Var(&o.Temperature, "temperature", d.Eval.Temperature, "sampling temperature, 0 is greedy")
	fs.IntVar(&o.Tokens, "tokens", 4096, "longest answer in tokens, tool output included")
	fs.IntVar(&o.Turns, "turns", 30, "turns of an answer: each but the last calls the tool") // rStar2-Agent §5.1, evaluation
	fs.Uint64Var(&o.Seed, "seed", 0, "seed of all sampling (default: another one each time)")
	fs.BoolVar(&o.JSON, "json", false, "print one JSON object a line")
}

func (o ChatOptions) check() error {
	switch {
	case !(o.Temperature >= 0 && o.Temperature <= 2):
		return fault.Userf("--temperature is %v, want 0 to 2", o.Temperature)
	case o.Tokens < 1 || o.Tokens > 1<<20:
		return fault.Userf("--tokens is %d, want 1 to 1048576", o.Tokens)
	case o.Turns < 1 || o.Turns > 4095:
		return fault.Userf("--turns is %d, want 1 to 4095", o.Turns)
	case o.Isolation != "A" && o.Isolation != "B":
		return fault.Userf("--isolation is %q, want A or B", o.Isolation)
	}
	return nil
}

// Chat talks with the person at in and out until /exit or the end of in. Input that is no terminal is one question.
func Chat(ctx context.Context, in io.Reader, out io.Writer, dir string, o ChatOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.Seed == 0 {
		o.Seed = uint64(time.Now().UnixNano())
	}
	f, err := open(ctx, dir, o.EngineOptions)
	if err != nil {
		return err
	}
	runner, stop, err := o.runner(ctx)
	if err != nil {
		return err
	}
	defer stop()
	e, err := f.start()
	if err != nil {
		return err
	}
	defer e.Close()
	d, err := serve.NewDialogue(e, runner, f.tokenizer, f.dialogue(o))
	if err != nil {
		return fault.AsUser(err)
	}
	// Ctrl-C ends an answer and not the conversation: signals are heard here, and the command's own context, which the first one
	// ends, is left aside.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, unix.SIGTERM)
	defer signal.Stop(interrupts)
	t := &talk{dialogue: d, in: in, interrupts: interrupts, show: newPrinter(out, o.JSON, isTerminal(out))}
	ctx = context.WithoutCancel(ctx)
	if isTerminal(in) {
		t.show.note(fmt.Sprintf("%s, %d tokens of context. /new begins anew, /exit ends, Ctrl-C stops an answer.", f.name, f.room()))
		return t.converse(ctx)
	}
	return t.once(ctx)
}

// dialogue is the protocol that the model was trained with.
func (f *folder) dialogue(o ChatOptions) serve.DialogueOptions {
	c := agent.Config{
		CallsPerTurn: f.agent.CallsPerTurn, Retry: agent.DefaultRetry(),
		Format: agent.ResponseFormat{StreamChars: f.agent.StreamChars, ResponseChars: f.agent.ResponseChars},
		Stop:   f.stops,
	}
	if !o.NoTool {
		c.Tools = []agent.Tool{agent.ToolNamed(f.agent.Tool)}
	}
	return serve.DialogueOptions{
		Template: f.template(!o.NoTool), Agent: c, Positions: f.model.Config.MaxPosition, MaxTokens: o.Tokens, MaxTurns: o.Turns,
		Temperature: float32(o.Temperature), Seed: o.Seed,
	}
}

// noTool is the sandbox of a chat without a tool; there is nothing that could call it.
type noTool struct{}

func (noTool) Run(context.Context, sandbox.Call) (sandbox.Result, error) {
	return sandbox.Result{}, errors.New("this chat has no tool")
}

// endpointWait bounds the wait for a sandbox service that is starting: a person looks on, and a service is ready within 2 s.
const endpointWait = 5 * time.Second

// runner starts what runs the tool calls.
func (o ChatOptions) runner(ctx context.Context) (agent.Runner, func(), error) {
	if o.NoTool {
		return noTool{}, func() {}, nil
	}
	s := recipe.Defaults().Sandbox
	s.Isolation, s.Preload = o.Isolation, o.Preload
	pools := &activities.Pools{Log: slog.New(slog.DiscardHandler), MaxRunning: 1, Endpoints: o.Endpoints}
	start := ctx
	if len(o.Endpoints) > 0 {
		limited, cancel := context.WithTimeout(ctx, endpointWait)
		defer cancel()
		start = limited
	}
	r, err := pools.Get(start, s)
	if err != nil {
		pools.Close()
		switch {
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case start.Err() != nil:
			return nil, nil, fault.Userf("no sandbox service of --sandbox is ready within %v: %w; start `restar sandbox serve`, or talk with --no-tool", endpointWait, err)
		}
		return nil, nil, fault.Userf("the tool's sandbox does not start: %w; `restar doctor` shows what is missing, --no-tool talks without it", err)
	}
	return r, pools.Close, nil
}

// dialogue is the model's part of a conversation. *serve.Dialogue is one.
type dialogue interface {
	Ask(ctx context.Context, question string, show serve.Show) (agent.StopReason, error)
	Forget()
}

// talk is a conversation with the person at a terminal or a pipe.
type talk struct {
	dialogue   dialogue
	in         io.Reader
	interrupts <-chan os.Signal
	show       *printer
}

// largestQuestion bounds what is read of a pipe; no model has room for more.
const largestQuestion = 4 << 20

// once answers the one question that in holds.
func (t *talk) once(ctx context.Context) error {
	body, err := io.ReadAll(io.LimitReader(t.in, largestQuestion+1))
	if err != nil {
		return fault.Userf("the question cannot be read: %w", err)
	}
	question := strings.TrimSpace(string(body))
	if question == "" || len(body) > largestQuestion {
		return fault.Userf("standard input holds %d bytes, want a question of 1 to %d", len(body), largestQuestion)
	}
	return t.answer(ctx, question)
}

// converse answers line after line. An answer that is stopped or fails leaves the conversation where it was.
func (t *talk) converse(ctx context.Context) error {
	lines := readLines(t.in)
	for {
		t.show.ask()
		select {
		case <-t.interrupts:
			t.show.note("")
			return nil
		case line, ok := <-lines:
			line = strings.TrimSpace(line)
			switch {
			case !ok || line == "/exit":
				return nil
			case line == "":
			case line == "/new":
				t.dialogue.Forget()
				t.show.note("forgotten")
			case strings.HasPrefix(line, "/"):
				t.show.note("there are /new, /exit and Ctrl-C")
			default:
				switch err := t.answer(ctx, line); {
				case err == nil, errors.Is(err, fault.ErrInterrupted):
				case fault.Code(err) == fault.User:
					t.show.note(err.Error())
				default:
					return err
				}
			}
		}
	}
}

// answer asks the model and shows what comes, until it ends or is stopped.
func (t *talk) answer(ctx context.Context, question string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-t.interrupts:
			cancel(fault.ErrInterrupted)
		case <-done:
		}
	}()
	stop, err := t.dialogue.Ask(ctx, question, serve.Show{Text: t.show.text, Response: t.show.response})
	if !errors.Is(err, serve.ErrFull) { // then nothing of an answer was there to stop
		t.show.end(stop)
	}
	switch {
	case err == nil:
		return nil // it had come to its end before it could be stopped
	case ctx.Err() != nil:
		return fault.ErrInterrupted
	case errors.Is(err, serve.ErrFull):
		return fault.Userf("%w; /new begins anew", err)
	}
	return err
}

// readLines hands out the lines of in until its end. A read cannot be called off; the reader of a terminal ends with the process.
func readLines(in io.Reader) <-chan string {
	out := make(chan string)
	go func() {
		defer close(out)
		scanLines(in, func(line string) { out <- line })
	}()
	return out
}

func isTerminal(v any) bool {
	f, ok := v.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
