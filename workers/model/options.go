package model

import "github.com/restar-rl/restar/kernels"

// Precision says in which type a model multiplies; see kernels.Precision.
type Precision = kernels.Precision

// The precisions. PrecisionFP32 is what a model has without an option.
const (
	PrecisionFP32 = kernels.PrecisionFP32
	PrecisionBF16 = kernels.PrecisionBF16
)

// Option is a choice made with a model.
type Option func(*options)

type options struct{ precision Precision }

// WithPrecision makes a model that multiplies in p.
func WithPrecision(p Precision) Option { return func(o *options) { o.precision = p } }

func choose(opts []Option) options {
	o := options{precision: PrecisionFP32}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// NumericsID names the backend, its instruction path and kernel version in fp32: results of equal ids agree to the bit. It is empty
// when the environment asks for a path that this processor lacks; New and Load then say so.
func NumericsID() string { return NumericsOf(PrecisionFP32) }

// NumericsOf is NumericsID in a precision.
func NumericsOf(p Precision) string {
	b, err := host()
	if err != nil {
		return ""
	}
	return b.NumericsID(p)
}
