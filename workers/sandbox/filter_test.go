package sandbox

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

func TestTheFilterDecidesAsThePolicyDoes(t *testing.T) {
	p := policy()
	list, err := p.Assemble()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := searching(policy())
	if err != nil {
		t.Fatal(err)
	}
	expected, got := compiled(t, list), compiled(t, tree)
	numbers := []uint32{math.MaxInt32, math.MaxInt32 + 1, math.MaxUint32}
	for n := range uint32(1100) {
		numbers = append(numbers, n, n|uint32(arch.X32.SeccompMask))
	}
	arguments := []uint64{0, 1, unix.AF_UNIX, unix.AF_INET, unix.CLONE_NEWUSER, unix.CLONE_NEWNS | unix.CLONE_VM, 1 << 32, unix.AF_UNIX | 1<<32, math.MaxUint64}
	verdicts := map[int]int{}
	for _, abi := range []arch.Info{*arch.X86_64, *arch.I386, *arch.ARM} {
		for _, n := range numbers {
			for _, a := range arguments {
				data := seccompData(n, uint32(abi.ID), a)
				want, have := decide(t, expected, data), decide(t, got, data)
				if want != have {
					t.Fatalf("%s call %d with argument %#x: %#x, expected %#x", abi.Name, n, a, have, want)
				}
				verdicts[want]++
			}
		}
	}
	if len(verdicts) < 3 {
		t.Errorf("verdicts were %v, expected allowed, not permitted and not there", verdicts)
	}
}

func TestTheFilterFindsEveryNumberInAFewSteps(t *testing.T) {
	const most = 16 // of search; the library's program of what is left comes behind it
	tree, err := searching(policy())
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint32(1100) {
		at, steps := 4, 0
		for looking := true; looking; steps++ {
			switch i := tree[at].(type) {
			case bpf.JumpIf:
				at++
				if n >= i.Val {
					at += int(i.SkipTrue)
				}
			case bpf.Jump, bpf.RetConstant:
				looking = false
			default:
				t.Fatalf("instruction %d is %v", at, i)
			}
		}
		if steps > most {
			t.Errorf("call %d takes %d steps, expected at most %d", n, steps, most)
		}
	}
}

func compiled(t *testing.T, program []bpf.Instruction) *bpf.VM {
	t.Helper()
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

// seccompData is struct seccomp_data as a network packet, whose words a machine for packets reads big-endian.
func seccompData(number, abi uint32, argument uint64) []byte {
	b := binary.BigEndian.AppendUint32(nil, number)
	b = binary.BigEndian.AppendUint32(b, abi)
	b = append(b, make([]byte, 8)...) // instruction pointer
	b = binary.BigEndian.AppendUint32(b, uint32(argument))
	b = binary.BigEndian.AppendUint32(b, uint32(argument>>32))
	return append(b, make([]byte, 5*8)...)
}

func decide(t *testing.T, vm *bpf.VM, data []byte) int {
	t.Helper()
	v, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
