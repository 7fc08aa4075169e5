package session

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/restar-rl/restar/cmd/restar/internal/fault"
)

// own locks a folder as the command that runs its stack does.
func own(t *testing.T, dir string) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "restar.lock"))
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestACommandThatJoinedAStackEndsWhenItsOwnerLeaves(t *testing.T) {
	dir := t.TempDir()
	owner := own(t, dir)
	s := &Session{}
	s.join(dir)
	ctx, cancel := s.Guard(t.Context())
	defer cancel()
	if err := ctx.Err(); err != nil {
		t.Fatalf("it ended while its owner was there: %v", context.Cause(ctx))
	}
	owner.Close()
	<-ctx.Done()
	err := Ended(ctx)
	if fault.Code(err) != fault.User || !strings.Contains(err.Error(), "the stack of "+dir+" ended") || !strings.Contains(err.Error(), "give the same command again") {
		t.Errorf("error %v, want one that names the folder and what to do", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
