package numerics

import (
	"strings"
	"testing"

	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workers/model"
)

func TestAnInstructionPathThatTheProcessorLacksIsTheUsersToMend(t *testing.T) {
	for _, p := range []model.Precision{model.PrecisionFP32, model.PrecisionBF16} {
		if id, err := ID(p); err != nil || !strings.Contains(id, string(p)) || id != model.NumericsOf(p) {
			t.Errorf("id %q (%v), want the model's %q", id, err, model.NumericsOf(p))
		}
	}
	t.Setenv("RESTAR_CPU_ISA", "mmx")
	id, err := ID(model.PrecisionFP32)
	if fault.Code(err) != fault.User || id != "" {
		t.Fatalf("id %q, error %v, want one that the user can mend", id, err)
	}
	for _, want := range []string{"RESTAR_CPU_ISA", `"mmx"`, "generic"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("message lacks %q: %v", want, err)
		}
	}
}
