//go:build !amd64

package cpu

const hasAssembly = false

func asmPanel(isa, *tile, bool)                                           { panic("no assembly") }
func asmMax(isa, *float32, int, *[lanes]float32)                          { panic("no assembly") }
func asmExpSum(_ isa, _ *float32, _ int, _ float32, _, _ *[lanes]float32) { panic("no assembly") }
func asmProbsGrad(_ isa, _ *float32, _ int, _, _ float32)                 { panic("no assembly") }
func asmDot(_ isa, _, _ *float32, _ int, _ *[lanes]float32)               { panic("no assembly") }
func asmTriple(_ isa, _, _, _ *float32, _ int, _ *[lanes]float32)         { panic("no assembly") }
func asmScaleWeight(_ isa, _, _, _ *float32, _ int, _ float32)            { panic("no assembly") }
func asmNormGrad(_ isa, _, _, _, _ *float32, _ int, _, _ float32)         { panic("no assembly") }
func asmNormWeightGrad(_ isa, _, _, _ *float32, _ int, _ float32)         { panic("no assembly") }
func asmScale(isa, *float32, int, float32)                                { panic("no assembly") }
func asmAccumulate(_ isa, _, _ *float32, _ int)                           { panic("no assembly") }
func asmSwiglu(_ isa, _, _, _ *float32, _ int)                            { panic("no assembly") }
func asmSwigluGrad(_ isa, _, _, _, _, _ *float32, _ int)                  { panic("no assembly") }
func asmSoftmaxRows(_ isa, _ *float32, _ int, _ *int32, _, _, _ *float32) { panic("no assembly") }
func asmProbRows(_ isa, _, _ *float32, _ int, _ *int32, _, _ *float32)    { panic("no assembly") }
func asmAdamW(_ isa, _, _, _, _ *float32, _ int, _ *adamwConstants)       { panic("no assembly") }

func avx512PairsRows(*tile)                                                   { panic("no assembly") }
func avx512PairsCols(*tile)                                                   { panic("no assembly") }
func avx512WidenedRows(*tile)                                                 { panic("no assembly") }
func avx512RoundRow(_ *uint16, _ *float32, _ int)                             { panic("no assembly") }
func avx512RoundPair(_ *float32, _ uintptr, _, _ *float32, _ int)             { panic("no assembly") }
func avx512PairRows(_ *float32, _ uintptr, _, _ *uint16, _ uintptr, _, _ int) { panic("no assembly") }
func avx512Transpose(_ *float32, _ uintptr, _ *float32, _ uintptr, _ int)     { panic("no assembly") }

func avx512SumSquares(*float32, int, *[lanes]float64) { panic("no assembly") }

func avx512CopyPanels(_ *float32, _ uintptr, _ *float32, _ int) { panic("no assembly") }
func avx512CopyGroups(_ *float32, _ uintptr, _ *float32, _ int) { panic("no assembly") }
func avx512DotFold(_, _ *float32, _ int) float32                { panic("no assembly") }
func avx512TripleFold(_, _, _ *float32, _ int) float32          { panic("no assembly") }

func asmWiden(_ isa, _, _, _ *float32, _ int) { panic("no assembly") }

func avx512Rotate(_, _, _, _ *float32, _, _ int, _, _ float32) { panic("no assembly") }

func avx512NormHeads(*headGroup)                                 { panic("no assembly") }
func avx512NormHeadsGrad(*headGroup)                             { panic("no assembly") }
func avx512AddHeads(_, _ *float32, _, _, _ int, _, _ uintptr)    { panic("no assembly") }
func avx512NormWeightSums(_, _, _, _ *float32, _ int, _ uintptr) { panic("no assembly") }
