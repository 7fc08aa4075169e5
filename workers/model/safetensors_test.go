package model

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// file builds a safetensors file from a header and data.
func file(header string, data ...byte) []byte {
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), data...)
}

func TestSafetensorsOfEveryWidthAreRead(t *testing.T) {
	ts, meta, err := DecodeSafetensors(file(`{"__metadata__":{"a":"b"},"h":{"dtype":"F16","shape":[5],"data_offsets":[6,16]},"b":{"dtype":"BF16","shape":[1,1],"data_offsets":[4,6]},`+
		`"f":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}`, 0, 0, 0x20, 0xc0, 0x80, 0x3f, 0, 0x3c, 0x01, 0, 0xff, 0x7b, 0, 0x80, 0x55, 0x35))
	if err != nil {
		t.Fatal(err)
	}
	if meta["a"] != "b" || len(ts) != 3 || ts[0].Name != "f" || ts[0].Data[0] != -2.5 || ts[1].Data[0] != 1 {
		t.Errorf("read %v %v", ts, meta)
	}
	want := []float32{1, 1.0 / (1 << 24), 65504, float32(math.Copysign(0, -1)), 0.33325195}
	if i := sameBits(ts[2].Data, want); i >= 0 {
		t.Errorf("half %d is %v, want %v", i, ts[2].Data[i], want[i])
	}
}

// broken are files that must be refused, with parts of the message: tensor, found, expected.
var broken = map[string]struct {
	raw   []byte
	names []string
}{
	"short file":       {[]byte{1, 2}, []string{"2 bytes", "at least 8"}},
	"header bomb":      {binary.LittleEndian.AppendUint64(nil, 1<<62), []string{"4611686018427387904", "at most 0"}},
	"truncated header": {file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`)[:20], []string{"header says", "at most 12", "20 bytes"}},
	"bad JSON":         {file(`{`), []string{"header"}},
	"no object":        {file(`[]`), []string{"header", "JSON object"}},
	"nothing":          {file(``), []string{"header"}},
	"two objects":      {file(`{}{}`), []string{"after its end"}},
	"double name":      {file(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}`), []string{"a", "twice"}},
	"unknown member":   {file(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0],"scale":2}}`), []string{"a", "scale"}},
	"gap":              {file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, make([]byte, 8)...), []string{"tensor a", "[4 8]", "start at 0"}},
	"overlap": {file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, make([]byte, 8)...),
		[]string{"tensor b", "[4 8]", "start at 8"}},
	"trailing bytes":  {file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 0, 0, 0, 0, 1), []string{"byte 4", "5"}},
	"truncated data":  {file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, make([]byte, 4)...), []string{"tensor a", "[0 8]", "ends at 4"}},
	"wrong size":      {file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, make([]byte, 4)...), []string{"tensor a", "[2]"}},
	"huge shape":      {file(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`), []string{"tensor a", "[4294967296 4294967296]"}},
	"negative shape":  {file(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, make([]byte, 4)...), []string{"tensor a", "[-1]"}},
	"no shape":        {file(`{"a":{"dtype":"F32","data_offsets":[0,4]}}`, make([]byte, 4)...), []string{"tensor a", "shape"}},
	"one offset":      {file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}}`, make([]byte, 4)...), []string{"tensor a", "[0]", "start and an end"}},
	"many dimensions": {file(`{"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}}`, make([]byte, 4)...), []string{"tensor a", "9", "at most 8"}},
	"other type":      {file(`{"a":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}}`, make([]byte, 4)...), []string{"tensor a", `"I32"`, "F32, BF16 or F16"}},
	"NaN":             {file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 0, 0, 0, 0, 0, 0, 0xc0, 0x7f), []string{"tensor a", "element 1 is NaN", "finite"}},
	"infinite half":   {file(`{"a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}}`, 0, 0x7c), []string{"tensor a", "element 0 is +Inf", "finite"}},
}

func TestABrokenSafetensorsFileIsRefused(t *testing.T) {
	for what, c := range broken {
		_, _, err := DecodeSafetensors(c.raw)
		for _, name := range c.names {
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: error is %v, want one that names %s", what, err, name)
			}
		}
	}
}

func TestAFileThatClaimsMuchTakesLittleMemory(t *testing.T) {
	for _, what := range []string{"header bomb", "huge shape", "truncated data"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, _, err := DecodeSafetensors(broken[what].raw); err == nil {
			t.Errorf("%s was accepted", what)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("%s took %d bytes", what, n)
		}
	}
}

func TestTensorsReadBackToTheBitInEveryType(t *testing.T) {
	big := make([]float32, chunkBytes/2+3) // more than one piece
	for i := range big {
		big[i] = float32(i%251) / 8
	}
	in := []Tensor{{"b", []int{3}, []float32{-0.5, float32(math.Copysign(0, -1)), 1.0 / (1 << 14)}}, {"a", []int{0, 4}, []float32{}},
		{"c", []int{}, []float32{65504}}, {"d", []int{len(big)}, big}}
	in[2].Data[0] = 32768 // all three types have it
	for _, d := range []DType{F32, BF16, F16} {
		var raw bytes.Buffer
		if err := WriteSafetensors(&raw, in, d, map[string]string{"k": "v"}); err != nil {
			t.Fatal(err)
		}
		out, meta, err := DecodeSafetensors(raw.Bytes())
		if err != nil || meta["k"] != "v" || len(out) != len(in) {
			t.Fatalf("%s: read %d tensors, %v, %v", d, len(out), meta, err)
		}
		for _, want := range in {
			i := slices.IndexFunc(out, func(o Tensor) bool { return o.Name == want.Name })
			if i < 0 || !slices.Equal(out[i].Shape, want.Shape) || sameBits(out[i].Data, want.Data) >= 0 {
				t.Errorf("%s: tensor %s differs", d, want.Name)
			}
		}
		var again bytes.Buffer
		slices.Reverse(out)
		if err := WriteSafetensors(&again, out, d, meta); err != nil || !bytes.Equal(raw.Bytes(), again.Bytes()) {
			t.Errorf("%s: the bytes depend on more than the content (%v)", d, err)
		}
	}
}

func TestWhatATypeCannotStoreIsRefused(t *testing.T) {
	for d, v := range map[DType]float32{F32: float32(math.NaN()), F16: 70000, BF16: math.MaxFloat32} {
		err := WriteSafetensors(&bytes.Buffer{}, []Tensor{{"w", []int{2}, []float32{1, v}}}, d, nil)
		for _, name := range []string{"tensor w", "element 1", fmt.Sprint(v), string(d)} {
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: error is %v, want one that names %s", d, err, name)
			}
		}
	}
	if err := WriteSafetensors(&bytes.Buffer{}, nil, "F64", nil); err == nil || !strings.Contains(err.Error(), "F64") {
		t.Errorf("error is %v, want one that names F64", err)
	}
}

func FuzzSafetensors(f *testing.F) {
	good, err := EncodeSafetensors([]Tensor{{"a", []int{2, 1}, []float32{1, 2}}, {"b", []int{}, []float32{3}}}, map[string]string{"format": "pt"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	for _, c := range broken {
		f.Add(c.raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		ts, meta, err := DecodeSafetensors(raw)
		if err != nil {
			return
		}
		for _, x := range ts {
			if x.Elements() != len(x.Data) || 2*len(x.Data) > len(raw) {
				t.Errorf("tensor %q has shape %v and %d elements, from %d bytes", x.Name, x.Shape, len(x.Data), len(raw))
			}
		}
		out, err := EncodeSafetensors(ts, meta)
		if err != nil {
			t.Fatal(err)
		}
		again, _, err := DecodeSafetensors(out)
		if err != nil || len(again) != len(ts) {
			t.Errorf("what was read cannot be written and read again: %v", err)
		}
	})
}
