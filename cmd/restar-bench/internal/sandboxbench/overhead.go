package sandboxbench

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os/exec"
	"time"
)

//go:embed own.py
var ownProgram string

// overhead sets restar's cost beside the snippets (CPU of a call less the snippet's own in a warm interpreter) against the
// prototype's. The worse of the two sets counts.
func (b *bench) overhead(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/usr/bin/python3", "-c", ownProgram)
	cmd.Stdin = bytes.NewReader(mixText)
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("the snippets' own CPU time: %w", err)
	}
	var own map[string][]float64 // ms of each snippet
	if err := json.Unmarshal(out, &own); err != nil {
		return err
	}
	worst := 0.0
	for _, kind := range kinds() {
		sum := 0.0
		for _, ms := range own[kind] {
			sum += ms
		}
		mean := sum / float64(len(own[kind]))
		b.figures.Set("own_"+kind+"_cpu_ms", mean)
		for _, who := range []string{"restar", "prototype"} {
			if ms, ok := b.figures[who+"_"+kind+"_run8_cpu_ms"]; ok {
				b.figures.Set(who+"_"+kind+"_overhead_cpu_ms", ms-mean)
			}
		}
		name := "overhead_vs_prototype_" + kind
		b.figures.Ratio(name, "restar_"+kind+"_overhead_cpu_ms", "prototype_"+kind+"_overhead_cpu_ms")
		worst = max(worst, b.figures[name])
	}
	b.figures.Set("overhead_vs_prototype", worst)
	return nil
}
