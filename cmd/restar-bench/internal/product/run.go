package product

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/restar-rl/restar/cmd/restar-bench/internal/match"
)

// Files of a run's folder that are not the product's own.
const (
	RecipeFile  = "recipe.yaml"
	FiguresFile = "figures.json"
	CurvesFile  = "curves.json"
)

// leaveWait is how long a run may take to end its stack in order.
const leaveWait = 2 * time.Minute

// Prepare writes a run's recipe into its folder, or refuses a folder that holds a run of another one.
func Prepare(dir string, recipe []byte) error {
	path := filepath.Join(dir, RecipeFile)
	held, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, recipe, 0o644)
	}
	if err == nil && !bytes.Equal(held, recipe) {
		err = fmt.Errorf("%w: %s differs from what is asked for; remove %s to make the run anew, or restore what it was made from", match.ErrInput, path, dir)
	}
	return err
}

// Run makes the run of a prepared folder, or goes on with it, in a process of its own. An interrupt is passed on once, and waited
// for. When it is nil, the folder holds figures and curves.
func Run(ctx context.Context, restar, name, dir string, out io.Writer) error {
	c := exec.CommandContext(ctx, restar, "run", filepath.Join(dir, RecipeFile), "--run", name, "--dir", dir,
		"--figures", filepath.Join(dir, FiguresFile), "--curves", filepath.Join(dir, CurvesFile))
	c.Stdout, c.Stderr = out, out
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the terminal's own interrupt would be a second one, which ends it at once
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = leaveWait
	err := c.Run()
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("run %s goes on from where it was when the same command is given again: %w", name, context.Canceled)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("run %s: %w (its words are above, its logs in %s)", name, err, filepath.Join(dir, "logs"))
	}
	return nil
}
