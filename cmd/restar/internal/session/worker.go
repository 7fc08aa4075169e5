package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/cmd/restar/internal/numerics"
	"github.com/restar-rl/restar/workers"
	"github.com/restar-rl/restar/workers/local"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/sandbox"
	sandboxclient "github.com/restar-rl/restar/workers/sandbox/client"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workers/telemetry"
	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"
)

// workerPatience is how long a worker waits for its stack at its start: longer than any restart of a server.
const workerPatience = 2 * time.Minute

// workerPause is the time between two tries.
const workerPause = 500 * time.Millisecond

// WorkerOptions are those of a worker process.
type WorkerOptions struct {
	Options
	Roles     []string
	Name      string // given by a supervisor: what it knows the process by
	Telemetry string
	Sandboxes []string // base URLs of sandbox services
}

// Register adds the flags.
func (o *WorkerOptions) Register(fs *pflag.FlagSet) {
	o.Options.Register(fs)
	fs.StringSliceVar(&o.Roles, "roles", nil, "what to do: "+roleNames())
	fs.StringVar(&o.Telemetry, "telemetry", env("RESTAR_TELEMETRY", telemetry.ExporterNone), "where metrics and traces go: none or stdout (RESTAR_TELEMETRY)")
	fs.StringSliceVar(&o.Sandboxes, "sandbox", list(os.Getenv("RESTAR_SANDBOX")), "base URLs of sandbox services (restar sandbox serve) that run tool calls, in place of what recipes say (RESTAR_SANDBOX)")
	fs.StringVar(&o.Name, "name", "", "name of the process under a supervisor")
	_ = fs.MarkHidden("name") // exists: it was added above
}

// list splits a comma-separated variable.
func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

func roleNames() string {
	var names []string
	for _, r := range workers.Roles() {
		names = append(names, string(r))
	}
	return strings.Join(names, ", ")
}

// Work does the roles' work until ctx ends, which is no error.
func Work(ctx context.Context, o WorkerOptions) (err error) {
	roles, err := o.roles()
	if err != nil {
		return err
	}
	if o.Local() {
		return fault.Userf("a worker needs the address of a Temporal server: give --temporal, --s3 and --bucket; `restar dev` starts an embedded stack with workers")
	}
	if err := o.complete(); err != nil {
		return err
	}
	if _, err := numerics.ID(model.PrecisionFP32); err != nil {
		return err
	}
	for _, e := range o.Sandboxes {
		if _, err := sandboxclient.ParseEndpoint(e); err != nil {
			return fault.AsUser(err)
		}
	}
	// A supervisor's command has tried the isolation that its recipe asks for already, and services isolate by themselves.
	if o.Name == "" && len(o.Sandboxes) == 0 && slices.Contains(roles, workers.Rollout) {
		if err := isolated(ctx, sandbox.Probe); err != nil {
			return err
		}
	}
	faults, err := store.FaultsFromEnv()
	if err != nil {
		return fault.AsUser(err)
	}
	tel, err := telemetry.Start(telemetry.Options{Exporter: o.Telemetry, Out: os.Stdout, Service: "restar-worker", Instance: fmt.Sprintf("%s/%d", strings.Join(o.Roles, "+"), os.Getpid())})
	if err != nil {
		return fault.AsUser(err)
	}
	defer func() { err = errors.Join(err, tel.Close(context.WithoutCancel(ctx))) }()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	s, err := o.await(ctx, client.Options{MetricsHandler: tel.MetricsHandler(), Logger: sdklog.NewStructuredLogger(log)}, log)
	if err != nil {
		return err
	}
	defer s.Close()
	between, err := o.interceptors(tel)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	return workers.Run(ctx, workers.Options{Roles: roles, Client: s.Client, Store: s.Store, Interceptors: between, Faults: faults, Log: log,
		Sandboxes: o.Sandboxes, Ranks: o.Ranks, RankCommand: []string{self, "rank"}})
}

func (o WorkerOptions) roles() ([]workers.Role, error) {
	if len(o.Roles) == 0 {
		return nil, fault.Userf("--roles is missing: give some of %s", roleNames())
	}
	var out []workers.Role
	for _, name := range o.Roles {
		r, err := workers.ParseRole(name)
		if err != nil {
			return nil, fault.AsUser(err)
		}
		out = append(out, r)
	}
	return out, nil
}

// await connects, again and again while the stack may be on its way. Under a supervisor a stack that stays away is no
// mistake of the user: the supervisor starts the process again.
func (o WorkerOptions) await(ctx context.Context, opts client.Options, log *slog.Logger) (*Session, error) {
	ctx, cancel := context.WithTimeout(ctx, workerPatience)
	defer cancel()
	for {
		s, err := connectWith(ctx, o.Options, opts)
		if err == nil {
			return s, nil
		}
		log.Warn("waiting for the stack", "error", err)
		select {
		case <-ctx.Done():
			if o.Name != "" {
				return nil, fmt.Errorf("no stack within %v: %s", workerPatience, err.Error())
			}
			return nil, err
		case <-time.After(workerPause):
		}
	}
}

// interceptors trace, and under a supervisor list the open activities, so that it can fail them when this process dies.
func (o WorkerOptions) interceptors(tel *telemetry.Telemetry) ([]interceptor.WorkerInterceptor, error) {
	trace, err := tel.Interceptor()
	if err != nil {
		return nil, err
	}
	out := []interceptor.WorkerInterceptor{trace}
	if o.Name == "" {
		return out, nil
	}
	tokens, err := local.NewTaskTokens(local.TokensFile(o.Dir, o.Name))
	if err != nil {
		return nil, err
	}
	return append(out, tokens), nil
}
