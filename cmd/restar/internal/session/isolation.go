package session

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workers/sandbox"
)

// probeTimeout bounds the look at the sandbox: a second where nothing else is busy.
const probeTimeout = 2 * time.Minute

// isolated refuses a machine that cannot run tool calls at even the lower tier, naming each layer that does not hold and
// its fix. Which tier a run needs is the recipe's to say; it is tried when the run's first calls come.
func isolated(ctx context.Context, probe func(context.Context) sandbox.Report) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	r := probe(ctx)
	var missing []string
	for _, l := range r.Layers {
		if !l.OK {
			missing = append(missing, fmt.Sprintf("%s does not hold (%s)", l.Name, l.Fix))
		}
	}
	switch {
	case len(missing) > 0:
		return fault.Userf("role rollout runs tool calls, and this machine does not isolate them: %s; `restar doctor` shows every layer", strings.Join(missing, "; "))
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case r.Err != nil:
		return fault.Userf("role rollout runs tool calls, and no sandbox starts here: %w; `restar doctor` shows every layer", r.Err)
	}
	return nil
}
