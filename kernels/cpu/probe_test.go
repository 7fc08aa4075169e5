package cpu

import (
	"slices"
	"testing"

	"github.com/klauspost/cpuid/v2"
)

func TestTheBF16PathIsOfferedOnlyWhereItsInstructionIsThatOfTheContract(t *testing.T) {
	if best() != avx512 || !cpuid.CPU.Supports(cpuid.AVX512BF16) {
		t.Skip("the processor has no AVX512_BF16")
	}
	odd, even := pairsAreTwoSteps(1, 0), pairsAreTwoSteps(0, 1)
	if odd && even {
		t.Error("the probe does not tell the orders of a pair's elements apart")
	}
	if offered := slices.Contains(Paths(), nativeBF16); offered != odd {
		t.Errorf("path %s is offered: %v, but its instruction is the contract's: %v", nativeBF16, offered, odd)
	}
}
