package machine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/restar-rl/restar/cmd/restar/internal/fault"
)

func TestAnOutputThatCannotBeWrittenIsNamedWithItsFix(t *testing.T) {
	dir := t.TempDir()
	file, closed := filepath.Join(dir, "file"), filepath.Join(dir, "closed")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(closed, 0o500); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		out  Output
		want string
	}{
		"a folder for a file":   {Output{Path: dir, Fix: "use --x"}, "is a folder"},
		"a file for a folder":   {Output{Path: file, Folder: true, Fix: "use --x"}, "is not a folder"},
		"a file on the way":     {Output{Path: filepath.Join(file, "a", "b"), Fix: "use --x"}, file + " is not a folder"},
		"a virtual folder":      {Output{Path: "/proc/nowhere/a", Fix: "use --x"}, "/proc"},
		"a folder of no rights": {Output{Path: filepath.Join(closed, "a"), Fix: "use --x"}, "permission denied"},
	}
	if os.Geteuid() == 0 {
		delete(cases, "a folder of no rights") // root may write anywhere
	}
	for name, c := range cases {
		err := Writable(Output{Path: filepath.Join(dir, "new", "x")}, c.out)
		if fault.Code(err) != fault.User || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "use --x") {
			t.Errorf("%s: error %v, want one that has %q and the fix", name, err, c.want)
		}
	}
	if err := Writable(Output{Path: file}, Output{Path: dir, Folder: true}, Output{Path: filepath.Join(dir, "new", "x")}); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("the folder holds %v (%v), want what it held", left, err)
	}
}
