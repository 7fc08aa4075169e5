package training

import (
	"strings"
	"testing"

	"github.com/restar-rl/restar/cmd/restar/internal/fault"
	"github.com/restar-rl/restar/workers/recipe"
	"github.com/restar-rl/restar/workers/store"
)

func TestAnotherProcessorIsToldFromAnotherRecipe(t *testing.T) {
	s := store.NewMemory()
	held := recipe.Recipe{Name: "r", Seed: 1, NumericsID: "cpu-avx512-fp32-v1"}
	for range 2 { // made, and found the same
		if err := hold(t.Context(), s, "r", held); err != nil {
			t.Fatal(err)
		}
	}
	mine := held
	mine.NumericsID = "cpu-avx2-fp32-v1"
	err := hold(t.Context(), s, "r", mine)
	if fault.Code(err) != fault.User || !strings.Contains(err.Error(), `this machine computes cpu-avx2-fp32-v1, the run holds "cpu-avx512-fp32-v1" (RESTAR_CPU_ISA or another processor)`) {
		t.Errorf("error %v, want one that names both numerics", err)
	}
	mine.Seed = 2
	err = hold(t.Context(), s, "r", mine)
	if fault.Code(err) != fault.User || !strings.Contains(err.Error(), "another recipe: seed is 2, was 1") || strings.Contains(err.Error(), "this machine") {
		t.Errorf("error %v, want one that names the seed alone", err)
	}
}
