package match

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
)

// Figures are measured numbers under names that stay: what could not be measured has no entry.
type Figures map[string]float64

// Set records a figure; a number that is not finite, or zero, was not measured.
func (f Figures) Set(name string, value float64) {
	if value != 0 && !math.IsNaN(value) && !math.IsInf(value, 0) {
		f[name] = value
	}
}

// Ratio records a/b under a name if both were measured.
func (f Figures) Ratio(name, a, b string) {
	if f[a] > 0 && f[b] > 0 {
		f[name] = f[a] / f[b]
	}
}

// Least records the least of some figures if all were measured.
func (f Figures) Least(name string, of ...string) {
	least := math.Inf(1)
	for _, n := range of {
		v, ok := f[n]
		if !ok {
			return
		}
		least = min(least, v)
	}
	f.Set(name, least)
}

// Write writes the figures as one flat JSON object with sorted names; four significant digits are more than the noise.
func (f Figures) Write(path string) error {
	rounded := make(map[string]json.Number, len(f))
	for k, v := range f {
		rounded[k] = json.Number(fmt.Sprintf("%.4g", v))
		if math.Abs(v) >= 1000 {
			rounded[k] = json.Number(fmt.Sprintf("%.0f", v))
		}
	}
	body, err := json.MarshalIndent(rounded, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(body, '\n'), 0o644)
}
