package machine

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workers/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.MaybeChild()
	os.Exit(m.Run())
}

func TestAFullDiskIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	asked := ""
	err := space(dir, func(at string) (uint64, error) { asked = at; return 100 << 20, nil })
	if fault.Code(err) != fault.User {
		t.Fatalf("error %v, want one that the user can mend", err)
	}
	for _, want := range []string{dir, "100 MiB free", "at least 512", "--dir"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("message lacks %q: %v", want, err)
		}
	}
	if asked != filepath.Dir(filepath.Dir(dir)) {
		t.Errorf("asked for the space of %s, want the nearest folder that exists", asked)
	}
	if _, err := os.Stat(filepath.Dir(dir)); err == nil {
		t.Error("a folder was made")
	}
}

func TestAMissingLayerIsABadCheckWithItsFix(t *testing.T) {
	r := sandbox.Report{Layers: []sandbox.Layer{{Name: "network", OK: true}, {Name: "landlock", Fix: "boot with landlock"}}}
	got := layers(r)
	if len(got) != 3 || got[0].fix == "" || got[2].fix != "boot with landlock" || got[2].found != "does not hold" || got[1].fix != "" {
		t.Errorf("checks %+v, want no isolation, network holds, landlock with its fix", got)
	}
}

func TestDoctorTellsEverythingItLookedAt(t *testing.T) {
	var out bytes.Buffer
	_ = Doctor(t.Context(), &out, t.TempDir()) // whether this machine is in order is not the question
	for _, want := range []string{"numerics", "embedded stack", "disk", "ports", "python", "sandbox"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, out.String())
		}
	}
}
