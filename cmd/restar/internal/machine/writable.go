package machine

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/restar-rl/restar/cmd/restar/internal/fault"
)

// Output is a path that a command will write: a file, or a folder of files.
type Output struct {
	Path   string
	Folder bool
	Fix    string // how the user chooses another place, e.g. "choose another with --dir"
}

// Writable makes sure that every output can be written later. It leaves nothing behind: what does not exist yet is judged by
// the nearest folder above it.
func Writable(outputs ...Output) error {
	for _, o := range outputs {
		if err := o.check(); err != nil {
			return err
		}
	}
	return nil
}

func (o Output) check() error {
	at, err := filepath.Abs(o.Path)
	if err != nil {
		return fault.AsUser(err)
	}
	if st, err := os.Stat(at); err == nil && st.IsDir() != o.Folder {
		if o.Folder {
			return fault.Userf("%s is not a folder; %s", at, o.Fix)
		}
		return fault.Userf("%s is a folder, want a file; %s", at, o.Fix)
	} else if err == nil {
		return o.allowed(at)
	}
	for parent := filepath.Dir(at); ; parent = filepath.Dir(parent) {
		st, err := os.Stat(parent)
		if err == nil && !st.IsDir() {
			return fault.Userf("%s cannot be written: %s is not a folder; %s", at, parent, o.Fix)
		}
		if err == nil || parent == filepath.Dir(parent) {
			return o.allowed(parent)
		}
	}
}

// allowed tries to write at an existing path and leaves it as it was: rights alone do not tell of read-only or virtual file
// systems.
func (o Output) allowed(at string) error {
	if err := try(at); err != nil {
		return fault.Userf("%s cannot be written: %w; mend that or %s", o.Path, err, o.Fix)
	}
	return nil
}

func try(at string) error {
	st, err := os.Stat(at)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		f, err := os.OpenFile(at, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return f.Close()
	}
	f, err := os.CreateTemp(at, ".restar-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
