package model

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// Tensor is a named dense row-major array.
type Tensor struct {
	Name  string
	Shape []int
	Data  []float32
}

// Elements is the product of the shape.
func (t Tensor) Elements() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// maxHeader is the header limit of the safetensors format.
const maxHeader = 100_000_000

// headerEntry is one tensor of a safetensors header.
type headerEntry struct {
	DType       string `json:"dtype"`
	Shape       []int  `json:"shape"`
	DataOffsets [2]int `json:"data_offsets"`
}

// EncodeSafetensors writes tensors as F32 in the safetensors format. Equal content gives equal bytes: tensors lie in the order of
// their names, the header's keys are sorted, and the header is padded with spaces to 8 bytes.
func EncodeSafetensors(ts []Tensor, meta map[string]string) ([]byte, error) {
	sorted := slices.Clone(ts)
	slices.SortFunc(sorted, func(a, b Tensor) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	header := map[string]any{}
	if len(meta) > 0 {
		header["__metadata__"] = meta
	}
	size := 0
	for _, t := range sorted {
		if _, dup := header[t.Name]; dup || t.Name == "__metadata__" {
			return nil, fmt.Errorf("safetensors: tensor name %q is used twice or reserved", t.Name)
		}
		if t.Elements() != len(t.Data) {
			return nil, fmt.Errorf("safetensors: %s has shape %v and %d elements", t.Name, t.Shape, len(t.Data))
		}
		header[t.Name] = headerEntry{"F32", t.Shape, [2]int{size, size + 4*len(t.Data)}}
		size += 4 * len(t.Data)
	}
	h, err := json.Marshal(header)
	if err != nil {
		return nil, fmt.Errorf("safetensors header: %w", err)
	}
	for len(h)%8 != 0 {
		h = append(h, ' ')
	}
	out := binary.LittleEndian.AppendUint64(make([]byte, 0, 8+len(h)+size), uint64(len(h)))
	out = append(out, h...)
	for _, t := range sorted {
		for _, v := range t.Data {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
	}
	return out, nil
}

// DecodeSafetensors reads F32, BF16 and F16 tensors as float32, in the order of their offsets. It refuses a header that does
// not describe the data byte by byte: gaps, overlaps, wrong sizes, trailing bytes, unknown types.
func DecodeSafetensors(b []byte) ([]Tensor, map[string]string, error) {
	entries, names, meta, data, err := decodeHeader(b)
	if err != nil {
		return nil, nil, fmt.Errorf("safetensors: %w", err)
	}
	at := 0
	ts := make([]Tensor, 0, len(names))
	for _, name := range names {
		e := entries[name]
		t, err := e.tensor(name, data, at)
		if err != nil {
			return nil, nil, fmt.Errorf("safetensors: tensor %s: %w", name, err)
		}
		at = e.DataOffsets[1]
		ts = append(ts, t)
	}
	if at != len(data) {
		return nil, nil, fmt.Errorf("safetensors: tensors end at byte %d of the data, want %d", at, len(data))
	}
	return ts, meta, nil
}

func decodeHeader(b []byte) (map[string]headerEntry, []string, map[string]string, []byte, error) {
	if len(b) < 8 {
		return nil, nil, nil, nil, fmt.Errorf("file has %d bytes, want at least 8", len(b))
	}
	n := binary.LittleEndian.Uint64(b)
	if n > maxHeader || n > uint64(len(b)-8) {
		return nil, nil, nil, nil, fmt.Errorf("header of %d bytes in a file of %d", n, len(b))
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b[8:8+n], &raw); err != nil {
		return nil, nil, nil, nil, fmt.Errorf("header: %w", err)
	}
	var meta map[string]string
	entries := map[string]headerEntry{}
	var names []string
	for name, r := range raw {
		if name == "__metadata__" {
			if err := json.Unmarshal(r, &meta); err != nil {
				return nil, nil, nil, nil, fmt.Errorf("header metadata: %w", err)
			}
			continue
		}
		var e headerEntry
		if err := json.Unmarshal(r, &e); err != nil {
			return nil, nil, nil, nil, fmt.Errorf("header of %s: %w", name, err)
		}
		entries[name] = e
		names = append(names, name)
	}
	slices.SortFunc(names, func(x, y string) int {
		if d := entries[x].DataOffsets[0] - entries[y].DataOffsets[0]; d != 0 {
			return d
		}
		return bytes.Compare([]byte(x), []byte(y))
	})
	return entries, names, meta, b[8+n:], nil
}

func (e headerEntry) tensor(name string, data []byte, at int) (Tensor, error) {
	t := Tensor{Name: name, Shape: e.Shape}
	from, to := e.DataOffsets[0], e.DataOffsets[1]
	size, n := map[string]int{"F32": 4, "BF16": 2, "F16": 2}[e.DType], 1
	if size == 0 {
		return t, fmt.Errorf("dtype is %q, want F32, BF16 or F16", e.DType)
	}
	for _, d := range e.Shape {
		if d < 0 || (d > 0 && n > len(data)/d+1) {
			return t, fmt.Errorf("shape %v does not fit the file", e.Shape)
		}
		n *= d
	}
	if from != at || to < from || to > len(data) {
		return t, fmt.Errorf("data_offsets %v, want to start at %d and end by %d", e.DataOffsets, at, len(data))
	}
	if to-from != n*size {
		return t, fmt.Errorf("%d bytes for shape %v of %s, want %d", to-from, e.Shape, e.DType, n*size)
	}
	t.Data = make([]float32, n)
	return t, widen(t.Data, data[from:to], e.DType)
}

// widen converts stored numbers to float32, which holds every BF16 and F16 value.
func widen(dst []float32, b []byte, dtype string) error {
	for i := range dst {
		switch dtype {
		case "F32":
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		case "BF16":
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[2*i:])) << 16)
		case "F16":
			dst[i] = halfToFloat(binary.LittleEndian.Uint16(b[2*i:]))
		}
		if dst[i] != dst[i] || math.IsInf(float64(dst[i]), 0) {
			return errNotFinite(i)
		}
	}
	return nil
}

type errNotFinite int

func (e errNotFinite) Error() string {
	return fmt.Sprintf("element %d is not a finite number", int(e))
}

// halfToFloat widens an IEEE 754 binary16.
func halfToFloat(h uint16) float32 {
	sign, exp, frac := uint32(h&0x8000)<<16, uint32(h>>10)&0x1f, uint32(h&0x3ff)
	switch exp {
	case 0:
		v := float32(frac) / (1 << 24)
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}
