package main

import (
	"fmt"
	"math"
	"strings"
)

// asm collects the text of one file. A vector is numbered 0 to 7: Z<n>, or the pair Y<n> (elements 0-7) and Y<n+8> (elements 8-15).
type asm struct {
	prefix string
	wide   bool // AVX-512
	out    strings.Builder
	args   map[string]string // name of an argument to its operand
	labels int
}

func (a *asm) line(format string, args ...any) { fmt.Fprintf(&a.out, format+"\n", args...) }

func (a *asm) op(format string, args ...any) { a.line("\t"+format, args...) }

func (a *asm) label(name string) { a.line("%s:", name) }

// fresh returns a label no one else has.
func (a *asm) fresh(name string) string {
	a.labels++
	return fmt.Sprintf("%s%d", name, a.labels)
}

// fn begins a function. Each argument is "name" (8 bytes) or "name:f" (a float32).
func (a *asm) fn(name string, args ...string) {
	offset := 0
	a.args = map[string]string{}
	for _, arg := range args {
		arg, kind, _ := strings.Cut(arg, ":")
		size := 8
		if kind == "f" {
			size = 4
		}
		offset = (offset + size - 1) / size * size
		a.args[arg] = fmt.Sprintf("%s+%d(FP)", arg, offset)
		offset += size
	}
	a.line("")
	a.line("TEXT ·%s%s(SB), NOSPLIT, $0-%d", a.prefix, name, offset)
}

// load moves an 8-byte argument to a general register.
func (a *asm) load(arg, reg string) { a.op("MOVQ %s, %s", a.args[arg], reg) }

func (a *asm) ret() {
	a.op("VZEROUPPER")
	a.op("RET")
}

// mem is 16 floats in memory: a base register or symbol, and an offset in bytes.
type mem struct {
	base   string
	offset int
}

func (m mem) at(more int) string {
	if strings.HasSuffix(m.base, "<>") {
		return fmt.Sprintf("%s+%d(SB)", m.base, m.offset+more)
	}
	return fmt.Sprintf("%d(%s)", m.offset+more, m.base)
}

// operand renders a vector number or memory for one half (or the only part).
func (a *asm) operand(x any, half int) string {
	switch v := x.(type) {
	case int:
		if a.wide {
			return fmt.Sprintf("Z%d", v)
		}
		return fmt.Sprintf("Y%d", v+8*half)
	case mem:
		return v.at(32 * half)
	case string:
		return v
	}
	panic(fmt.Sprintf("operand %v", x))
}

// vec emits an instruction on vectors, once or for both halves. Operands are vector numbers, memory, or literal text.
func (a *asm) vec(name string, operands ...any) {
	for half := range a.halves() {
		text := make([]string, len(operands))
		for i, o := range operands {
			text[i] = a.operand(o, half)
		}
		a.op("%s %s", name, strings.Join(text, ", "))
	}
}

func (a *asm) halves() int {
	if a.wide {
		return 1
	}
	return 2
}

// broadcast copies a float in memory to all elements of a vector.
func (a *asm) broadcast(operand string, v int) { a.vec("VBROADCASTSS", operand, v) }

// zero clears a vector.
func (a *asm) zero(v int) {
	if a.wide {
		a.op("VPXORQ Z%d, Z%d, Z%d", v, v, v)
		return
	}
	a.vec("VXORPS", v, v, v)
}

// c names a constant vector.
func c(name string) mem { return mem{base: name + "<>"} }

// The constants of exp are those of portable.go.
var floatConstants = []struct {
	name  string
	value float32
}{
	{"expHi", 88.3762626647950}, {"expLo", -87.3365478515625}, {"log2e", 1.44269504088896341}, {"ln2Hi", 0.693359375}, {"ln2Lo", -2.12194440e-4},
	{"expC0", 1.9875691500e-4}, {"expC1", 1.3981999507e-3}, {"expC2", 8.3334519073e-3}, {"expC3", 4.1665795894e-2},
	{"expC4", 1.6666665459e-1}, {"expC5", 5.0000001201e-1}, {"one", 1}, {"zeros", 0},
	{"negative", float32(math.Copysign(0, -1))}, {"lowest", float32(math.Inf(-1))},
}

// constants emits vectors of equal floats, the numbers 0 to 63, and a table from which a load at 4*(16-n) gives a mask of n elements.
func (a *asm) constants() {
	for _, k := range floatConstants {
		a.data(k.name, 16, func(int) uint32 { return math.Float32bits(k.value) })
	}
	a.data("iota", 64, func(i int) uint32 { return uint32(i) })
	if !a.wide {
		a.data("masks", 32, func(i int) uint32 { return uint32(int32(i-16) >> 31) })
	}
}

func (a *asm) data(name string, n int, value func(i int) uint32) {
	a.line("")
	for i := range n {
		a.line("DATA %s<>+%d(SB)/4, $0x%08x", name, 4*i, value(i))
	}
	a.line("GLOBL %s<>(SB), RODATA|NOPTR, $%d", name, 4*n)
}
