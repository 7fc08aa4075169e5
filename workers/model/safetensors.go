package model

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
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

const (
	metadataKey = "__metadata__"
	chunkBytes  = 1 << 20 // of data that is converted at once
)

// headerEntry is one tensor of a safetensors header.
type headerEntry struct {
	DType   DType   `json:"dtype"`
	Shape   []int   `json:"shape"`
	Offsets []int64 `json:"data_offsets"`
}

// EncodeSafetensors is WriteSafetensors of F32 into memory.
func EncodeSafetensors(ts []Tensor, meta map[string]string) ([]byte, error) {
	var b bytes.Buffer
	size := 0
	for _, t := range ts {
		size += 4*len(t.Data) + 200 // generous for a header's line
	}
	b.Grow(size)
	err := WriteSafetensors(&b, ts, F32, meta)
	return b.Bytes(), err
}

// WriteSafetensors writes tensors in the safetensors format, rounded to dtype. Equal content gives equal bytes: tensors lie in the order
// of their names, the header's keys are sorted, and the header is padded with spaces to 8 bytes. For F16 and BF16 a number that would
// become infinite is an error.
func WriteSafetensors(w io.Writer, ts []Tensor, dtype DType, meta map[string]string) error {
	if err := dtype.check(); err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	sorted := slices.Clone(ts)
	slices.SortFunc(sorted, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
	h, err := encodeHeader(sorted, dtype, meta)
	if err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	if _, err := w.Write(h); err != nil {
		return err
	}
	buf := make([]byte, chunkBytes)
	for _, t := range sorted {
		if err := writeData(w, t, dtype, buf); err != nil {
			return err
		}
	}
	return nil
}

// encodeHeader returns the length and the header of tensors that lie one after the other.
func encodeHeader(sorted []Tensor, dtype DType, meta map[string]string) ([]byte, error) {
	header := map[string]any{}
	if len(meta) > 0 {
		header[metadataKey] = meta
	}
	size := int64(0)
	for _, t := range sorted {
		if _, dup := header[t.Name]; dup || t.Name == metadataKey {
			return nil, fmt.Errorf("tensor name %q is used twice or reserved", t.Name)
		}
		if t.Elements() != len(t.Data) {
			return nil, fmt.Errorf("%s has shape %v and %d elements", t.Name, t.Shape, len(t.Data))
		}
		end := size + int64(dtype.size()*len(t.Data))
		header[t.Name] = headerEntry{dtype, t.Shape, []int64{size, end}}
		size = end
	}
	h, err := json.Marshal(header)
	if err != nil {
		return nil, err
	}
	for len(h)%8 != 0 {
		h = append(h, ' ')
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(h))), h...), nil
}

func writeData(w io.Writer, t Tensor, dtype DType, buf []byte) error {
	size := dtype.size()
	for at := 0; at < len(t.Data); {
		n := min(len(buf)/size, len(t.Data)-at)
		if bad := dtype.narrow(buf, t.Data[at:at+n]); bad >= 0 {
			return fmt.Errorf("safetensors: tensor %s: element %d is %v, which %s has no finite value for", t.Name, at+bad, t.Data[at+bad], dtype)
		}
		if _, err := w.Write(buf[:n*size]); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// DecodeSafetensors reads F32, BF16 and F16 tensors as float32, in the order of their offsets. It refuses a header that does
// not describe the data byte by byte: gaps, overlaps, wrong sizes, trailing bytes, unknown types; and a number that is not finite.
func DecodeSafetensors(b []byte) ([]Tensor, map[string]string, error) {
	s, err := openStored(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, nil, fmt.Errorf("safetensors: %w", err)
	}
	ts := make([]Tensor, 0, len(s.names))
	for _, name := range s.names {
		t := Tensor{Name: name, Shape: s.entries[name].Shape}
		t.Data = make([]float32, t.Elements())
		if err := s.read(name, t.Data); err != nil {
			return nil, nil, fmt.Errorf("safetensors: %w", err)
		}
		ts = append(ts, t)
	}
	return ts, s.meta, nil
}
