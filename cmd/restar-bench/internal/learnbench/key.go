package learnbench

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/restar-rl/restar/cmd/restar-bench/internal/match"
)

// learning are the paths whose content decides what a run learns. Tests and command lines around them do not.
func learning(recipe string) []string {
	return []string{
		"kernels", "workers", "workflows", "activities", "cmd/restar", "deploy/data/integers", "go.mod", recipe,
		":(exclude,glob)**/*_test.go", ":(exclude,glob)**/testdata/**",
	}
}

// learningKey names the code that learns: the last commit that touched it, and a digest of what is not committed. Results of
// different keys are never mixed. A recipe from elsewhere adds a digest of its own.
func learningKey(ctx context.Context, dir, recipe string) (string, error) {
	paths := learning(recipe)
	if !inside(dir, recipe) {
		body, err := os.ReadFile(recipe)
		if err != nil {
			return "", fmt.Errorf("%w: %w; give a recipe with --recipe", match.ErrInput, err)
		}
		sum := sha256.Sum256(body)
		key, err := learningKey(ctx, dir, "go.mod")
		return fmt.Sprintf("%s-recipe-%x", key, sum[:4]), err
	}
	commit, err := git(ctx, dir, append([]string{"log", "-1", "--format=%H", "--"}, paths...)...)
	if err != nil {
		return "", err
	}
	if commit == "" {
		return "", fmt.Errorf("%w: no commit in %s touches the learning code; run the benchmark in a git checkout of restar", match.ErrInput, dir)
	}
	key := commit[:min(len(commit), 10)]
	changes, err := uncommitted(ctx, dir, paths)
	if err != nil || changes == "" {
		return key, err
	}
	sum := sha256.Sum256([]byte(changes))
	return fmt.Sprintf("%s-dirty-%x", key, sum[:4]), nil
}

// inside tells whether git can know of a file.
func inside(dir, path string) bool {
	if filepath.IsAbs(path) {
		root, err := filepath.Abs(dir)
		if err != nil {
			return false
		}
		if path, err = filepath.Rel(root, path); err != nil {
			return false
		}
	}
	return filepath.IsLocal(path)
}

// uncommitted is the difference to the last commit, with the contents of files that git does not know.
func uncommitted(ctx context.Context, dir string, paths []string) (string, error) {
	changes, err := git(ctx, dir, append([]string{"diff", "HEAD", "--binary", "--"}, paths...)...)
	if err != nil {
		return "", err
	}
	unknown, err := git(ctx, dir, append([]string{"ls-files", "--others", "--exclude-standard", "--"}, paths...)...)
	if err != nil {
		return "", err
	}
	for _, name := range strings.Fields(unknown) {
		id, err := git(ctx, dir, "hash-object", "--", name)
		if err != nil {
			return "", err
		}
		changes += "\n" + name + " " + id
	}
	return changes, nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...).Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return "", fmt.Errorf("%w: git %s: %s; run the benchmark in a git checkout of restar", match.ErrInput, args[0], strings.TrimSpace(string(failed.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}
