package machine

import (
	"os"
	"path/filepath"

	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"golang.org/x/sys/unix"
)

// Output is a path that a command will write: a file, or a folder of files.
type Output struct {
	Path   string
	Folder bool
	Fix    string // how the user chooses another place, e.g. "choose another with --dir"
}

// Writable makes sure that every output can be written later. It writes nothing: what does not exist yet is judged by the
// nearest folder above it.
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

// allowed asks the kernel whether this process may write at an existing path.
func (o Output) allowed(at string) error {
	mode := uint32(unix.W_OK)
	if st, err := os.Stat(at); err == nil && st.IsDir() {
		mode |= unix.X_OK // entries are made in it
	}
	if err := unix.Faccessat(unix.AT_FDCWD, at, mode, unix.AT_EACCESS); err != nil {
		return fault.Userf("%s cannot be written: %s: %v; mend its permissions or %s", o.Path, at, err, o.Fix)
	}
	return nil
}
