package kernels

import "fmt"

// DType is the type of the elements of a Memory.
type DType uint8

// The element types.
const (
	F32  DType = iota
	BF16       // bfloat16: the upper half of a float32
	I32
)

// String is the usual short name.
func (t DType) String() string {
	switch t {
	case F32:
		return "float32"
	case BF16:
		return "bfloat16"
	case I32:
		return "int32"
	}
	return fmt.Sprintf("DType(%d)", uint8(t))
}

// Precision says in which type the operands of a model's matrix products are. Whatever it is, weights that an optimizer updates, its
// moments, gradients, the residual stream, norms, softmax, attention and all sums are float32.
type Precision string

// The precisions.
const (
	// PrecisionFP32: products have float32 operands.
	PrecisionFP32 Precision = "fp32"
	// PrecisionBF16: products of linear layers, forward and backward, have both operands rounded to bfloat16, to nearest with ties to even. The
	// head's weights are rounded too, and its products are float32.
	PrecisionBF16 Precision = "bf16"
)

// ParsePrecision reads a precision's name; the empty name is fp32.
func ParsePrecision(name string) (Precision, error) {
	switch p := Precision(name); p {
	case "":
		return PrecisionFP32, nil
	case PrecisionFP32, PrecisionBF16:
		return p, nil
	}
	return "", fmt.Errorf("precision is %q, want %q or %q", name, PrecisionFP32, PrecisionBF16)
}

// Operand is the type of the operands of products.
func (p Precision) Operand() DType {
	if p == PrecisionBF16 {
		return BF16
	}
	return F32
}
