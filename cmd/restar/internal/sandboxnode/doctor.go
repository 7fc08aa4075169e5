package sandboxnode

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workers/sandbox"
)

// finding is a layer as --json gives it.
type finding struct {
	Name  string `json:"name"`
	Holds bool   `json:"holds"`
	Fix   string `json:"fix,omitempty"`
}

// fact is what the machine says of itself, as --json gives it.
type fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Doctor tries every layer of isolation inside a real call and prints what holds. It fails when calls cannot be isolated.
func Doctor(ctx context.Context, out io.Writer, asJSON bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("the layers were not tried within %v", startTimeout))
	defer cancel()
	r := sandbox.Probe(ctx)
	var found []finding
	missing := 0
	for _, l := range r.Layers {
		found = append(found, finding{l.Name, l.OK, l.Fix})
		if !l.OK {
			missing++
		}
	}
	var facts []fact
	for _, f := range r.Facts {
		facts = append(facts, fact{f.Name, f.Value})
	}
	if asJSON {
		failure := ""
		if r.Err != nil {
			failure = r.Err.Error()
		}
		err := json.NewEncoder(out).Encode(struct {
			Tier   string    `json:"isolation_tier"`
			Reason string    `json:"reason,omitempty"`
			Error  string    `json:"error,omitempty"`
			Layers []finding `json:"layers"`
			Facts  []fact    `json:"machine"`
		}{string(r.Tier), r.Reason, failure, found, facts})
		if err != nil {
			return err
		}
	} else {
		table(out, r, found, facts)
	}
	switch {
	case r.Err != nil:
		return fault.Userf("calls cannot be isolated here: %w", r.Err)
	case missing > 0:
		return fault.Userf("%d of %d layers do not hold: calls would not be isolated; each names what gives it", missing, len(found))
	}
	return nil
}

func table(out io.Writer, r sandbox.Report, found []finding, facts []fact) {
	width := 0
	for _, f := range facts {
		width = max(width, len(f.Name))
	}
	for _, f := range found {
		width = max(width, len(f.Name))
	}
	for _, f := range found {
		mark, text := "ok ", "holds"
		if !f.Holds {
			mark, text = "BAD", "does not hold → "+f.Fix
		}
		fmt.Fprintf(out, "%s  %-*s  %s\n", mark, width, f.Name, text)
	}
	for _, f := range facts {
		fmt.Fprintf(out, "     %-*s  %s\n", width, f.Name, f.Value)
	}
	switch {
	case r.Tier == "":
		fmt.Fprintln(out, "no isolation")
	case r.Reason != "":
		fmt.Fprintf(out, "tier %s; not A: %s\n", r.Tier, r.Reason)
	default:
		fmt.Fprintf(out, "tier %s\n", r.Tier)
	}
}
