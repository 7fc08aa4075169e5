//go:build !linux

package cpu

// adviseHuge knows how to ask for huge pages on Linux only.
func adviseHuge[T float32 | uint16]([]T) {}
