//go:build !amd64

package cpu

import "unsafe"

func avx512WidenRow(*float32, *uint16, int)            { panic("no assembly") }
func avx512FetchColumn(unsafe.Pointer, uintptr, int)   { panic("no assembly") }
func avx512ExpGroups(*float32, int, float64, *float64) { panic("no assembly") }
func asmGemv(kind, *gemvArgs)                          { panic("no assembly") }
func avx512WideRows(*tile)                             { panic("no assembly") }
func avx512WideHalves(*tile)                           { panic("no assembly") }

// pause is nothing where the processor's hint is unknown.
func pause(int) {}
