package cpu

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the usual size of a huge page of the architectures that have assembly. Where it is another, the advice is merely void.
const hugePage = 2 << 20

// adviseHuge asks for huge pages under an allocation that has not been touched yet. Decoding streams all weights through the cores once a
// token; with pages of 4 KiB a third of the memory's bandwidth goes to translating addresses. The advice may be refused, which changes
// no result.
func adviseHuge[T float32 | uint16](x []T) {
	size := uintptr(len(x)) * unsafe.Sizeof(*new(T))
	if size < 2*hugePage {
		return
	}
	base := unsafe.Pointer(&x[0])
	skip := -uintptr(base) & (hugePage - 1)
	whole := (size - skip) &^ (hugePage - 1)
	_ = unix.Madvise(unsafe.Slice((*byte)(unsafe.Add(base, skip)), whole), unix.MADV_HUGEPAGE)
}
