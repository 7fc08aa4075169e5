package numerics

import (
	"strings"
	"testing"

	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workers/model"
)

func TestAnInstructionPathThatTheProcessorLacksIsTheUsersToMend(t *testing.T) {
	if id, err := ID(); err != nil || id == "" || id != model.NumericsID() {
		t.Errorf("id %q (%v), want the model's %q", id, err, model.NumericsID())
	}
	t.Setenv("RESTAR_CPU_ISA", "mmx")
	id, err := ID()
	if fault.Code(err) != fault.User || id != "" {
		t.Fatalf("id %q, error %v, want one that the user can mend", id, err)
	}
	for _, want := range []string{"RESTAR_CPU_ISA", `"mmx"`, "generic"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("message lacks %q: %v", want, err)
		}
	}
}
