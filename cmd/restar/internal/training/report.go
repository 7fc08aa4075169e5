package training

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/restar-rl/restar/activities"
	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workers/model"
	"github.com/restar-rl/restar/workers/store"
)

// WriteReport renders what the store holds of a run, finished or not, into an HTML file.
func WriteReport(ctx context.Context, s store.Store, run, file string) error {
	if _, _, err := s.Get(ctx, store.RecipeKey(run)); errors.Is(err, store.ErrNotFound) {
		return fault.Userf("the store holds no run %s; `restar status` lists the runs", run)
	}
	scoring := &activities.Scoring{Store: s, Runs: &activities.Runs{Store: s, NumericsOf: model.NumericsOf}}
	page, err := scoring.Report(ctx, activities.ReportInput{Run: run})
	if err != nil {
		return fmt.Errorf("report of run %s: %w", run, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fault.AsUser(err)
	}
	return fault.AsUser(os.WriteFile(file, page, 0o644))
}
