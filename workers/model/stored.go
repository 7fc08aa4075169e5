package model

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Limits of what a header may ask for. A file within them is read in memory of the order of its own size.
const (
	maxHeader     = 100_000_000 // bytes: the format's own limit
	maxTensors    = 1 << 17     // a hundred times those of the largest published models
	maxDimensions = 8
)

// stored is an open safetensors file whose header describes its data byte by byte. Data is read when asked for, piece by piece.
type stored struct {
	r       io.ReaderAt
	data    int64 // offset of the data
	entries map[string]headerEntry
	names   []string // in the order of the data
	meta    map[string]string

	piece []float32 // of chunks
	raw   []byte
}

// openStored reads and checks the header of a file of size bytes. It allocates no more than the header holds.
func openStored(r io.ReaderAt, size int64) (*stored, error) {
	var length [8]byte
	if size < 8 {
		return nil, fmt.Errorf("file has %d bytes, want at least 8", size)
	}
	if err := readFull(r, length[:], 0); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > uint64(size-8) || n > maxHeader {
		return nil, fmt.Errorf("header says that it has %d bytes, want at most %d in this file of %d bytes: it is truncated or no safetensors file",
			n, min(size-8, maxHeader), size)
	}
	raw := make([]byte, n)
	if err := readFull(r, raw, 8); err != nil {
		return nil, err
	}
	s := &stored{r: r, data: 8 + int64(n), entries: map[string]headerEntry{}}
	if err := eachMember(bytes.NewReader(raw), s.add); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	return s, s.check(size - s.data)
}

func readFull(r io.ReaderAt, b []byte, at int64) error {
	if n, err := r.ReadAt(b, at); n < len(b) {
		return fmt.Errorf("read %d of %d bytes at %d: %w", n, len(b), at, err)
	}
	return nil
}

// add takes one member of the header.
func (s *stored) add(name string, d *json.Decoder) error {
	if name == metadataKey {
		return d.Decode(&s.meta)
	}
	if len(s.names) == maxTensors {
		return fmt.Errorf("more than %d tensors", maxTensors)
	}
	var e headerEntry
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return err
	}
	s.entries[name], s.names = e, append(s.names, name)
	return nil
}

// check wants the tensors to fill the data without gap or overlap.
func (s *stored) check(size int64) error {
	slices.Sort(s.names) // so that of several faults always the same one is named
	for _, name := range s.names {
		if err := s.entries[name].check(size); err != nil {
			return fmt.Errorf("tensor %s: %w", name, err)
		}
	}
	slices.SortFunc(s.names, func(x, y string) int {
		a, b := s.entries[x].Offsets, s.entries[y].Offsets
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]), cmp.Compare(x, y))
	})
	at := int64(0)
	for _, name := range s.names {
		if o := s.entries[name].Offsets; o[0] != at {
			return fmt.Errorf("tensor %s: data_offsets are %v, want to start at %d, where the tensor before it ends", name, o, at)
		}
		at = s.entries[name].Offsets[1]
	}
	if at != size && len(s.names) > 0 {
		return fmt.Errorf("tensor %s, the last one, ends at byte %d of the data, the file at %d: they must be equal", s.names[len(s.names)-1], at, size)
	}
	if at != size {
		return fmt.Errorf("tensors end at byte %d of the data, the file at %d: they must be equal", at, size)
	}
	return nil
}

func (e headerEntry) check(size int64) error {
	if err := e.DType.check(); err != nil {
		return err
	}
	if len(e.Offsets) != 2 || e.Offsets[0] < 0 || e.Offsets[1] < e.Offsets[0] {
		return fmt.Errorf("data_offsets are %v, want a start and an end", e.Offsets)
	}
	if e.Offsets[1] > size {
		return fmt.Errorf("data_offsets are %v, but the file's data ends at %d: it is truncated", e.Offsets, size)
	}
	if e.Shape == nil {
		return errors.New("shape is missing")
	}
	if len(e.Shape) > maxDimensions {
		return fmt.Errorf("shape has %d dimensions, want at most %d", len(e.Shape), maxDimensions)
	}
	n := int64(e.DType.size())
	for _, d := range e.Shape {
		if d < 0 || (d > 0 && n > size/int64(d)) {
			return fmt.Errorf("shape %v of %s does not fit the file's %d bytes of data", e.Shape, e.DType, size)
		}
		n *= int64(d)
	}
	if got := e.Offsets[1] - e.Offsets[0]; got != n {
		return fmt.Errorf("%d bytes for shape %v of %s, want %d", got, e.Shape, e.DType, n)
	}
	return nil
}

// read fills dst with a tensor.
func (s *stored) read(name string, dst []float32) error {
	return s.chunks(name, func(at int, piece []float32) error {
		copy(dst[at:], piece)
		return nil
	})
}

// chunkFloats is how much of a tensor is in memory at once, beside its destination.
const chunkFloats = chunkBytes / 4

// chunks calls f for one piece after the other of a tensor, whose numbers must be finite. A piece is valid until f returns.
func (s *stored) chunks(name string, f func(at int, piece []float32) error) error {
	e := s.entries[name]
	size := e.DType.size()
	n := int(e.Offsets[1]-e.Offsets[0]) / size
	if room := min(n, chunkFloats); len(s.piece) < room {
		s.piece, s.raw = make([]float32, room), make([]byte, F32.size()*room)
	}
	for at := 0; at < n; at += chunkFloats {
		piece := s.piece[:min(chunkFloats, n-at)]
		raw := s.raw[:len(piece)*size]
		if err := readFull(s.r, raw, s.data+e.Offsets[0]+int64(at*size)); err != nil {
			return fmt.Errorf("tensor %s: %w", name, err)
		}
		e.DType.widen(piece, raw)
		for i, v := range piece {
			if v-v != 0 {
				return fmt.Errorf("tensor %s: element %d is %v, want a finite number", name, at+i, v)
			}
		}
		if err := f(at, piece); err != nil {
			return fmt.Errorf("tensor %s: %w", name, err)
		}
	}
	return nil
}
