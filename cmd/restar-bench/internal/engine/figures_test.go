package engine

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/restar-rl/restar/cmd/restar-bench/internal/match"
)

// scripted answers every request with the same numbers, whatever the arguments say that it is.
const scripted = `#!/bin/sh
echo '{"version": "scripted"}'
while read -r request; do
	echo '{"seconds": 0.5, "rate": 100, "loss": 1, "peak_rss": 1048576, "parts": {"rows": 1, "attention": 1, "softmax": 1, "optimizer": 1}}'
done
`

// TestFiguresHaveTheirNames plays every section, for one model, with scripts for contestants: whoever reads the file relies on the names of figures.
func TestFiguresHaveTheirNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := func(elements ...string) string {
		at := filepath.Join(append([]string{dir}, elements...)...)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(scripted), 0o700); err != nil { //nolint:gosec // it shall be run
			t.Fatal(err)
		}
		return at
	}
	last := shapes[len(shapes)-1]
	script("peers", "limits")
	script("peers", "onednn")
	script("peers", "torch", "bin", "python")
	script("peers", last.Name+"-bf16.gguf")
	o := Options{Figures: filepath.Join(dir, "figures.json"), Scripts: dir, Peers: filepath.Join(dir, "peers"), Sizes: []string{last.Name}}
	r := &runner{Context: t.Context(), Options: o, figures: match.Figures{}, peers: map[string]string{}, self: script("restar"), python3: script("python3"),
		node: script("node"), progress: match.NewProgress(&strings.Builder{}, 1, time.Now)}
	defer r.progress.Close()
	if err := r.play(); err != nil {
		t.Fatal(err)
	}
	if err := r.figures.Write(o.Figures); err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(o.Figures)
	if err != nil {
		t.Fatal(err)
	}
	var written map[string]float64
	if err := json.Unmarshal(body, &written); err != nil {
		t.Fatalf("%v: the file is no flat object of numbers:\n%s", err, body)
	}
	delete(written, "load_average_at_start") // which an idle machine does not have
	want, err := os.ReadFile(filepath.Join("testdata", "figures.txt"))
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(slices.Sorted(maps.Keys(written)), "\n") + "\n"
	if got != string(want) {
		t.Errorf("figures\n%swant those of testdata/figures.txt\n%snotes: %q", got, want, r.notes)
	}
	for _, b := range bars {
		if _, ok := written[b.figure]; !ok && !strings.HasSuffix(b.figure, "_1m") && !strings.HasSuffix(b.figure, "_10m") {
			t.Errorf("the bar of %q is for a figure that is not written", b.figure)
		}
	}
}
