package train

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
)

// A stored batch is, little-endian:
//
//	"restar-batch-2\n", uint32 sequences, then for each, in ordinal order:
//	int64 ordinal, float32 advantage, uint32 n, byte flags, n int32 ids, n mask bytes, n float32 log-probs, and then, each present if
//	its bit of the flags is set, n float32 advantages, reference log-probs, engine log-probs
//	32 bytes SHA-256 of all before
//
// Equal batches give equal bytes, in whatever order they list their sequences.
const batchMagic = "restar-batch-2\n"

// sequenceHeader is the fixed part of a stored sequence and sequenceToken what each token takes, in bytes.
const (
	sequenceHeader = 8 + 4 + 4 + 1
	sequenceToken  = 4 + 1 + 4
)

// EncodeBatch writes a batch. A batch that Step would refuse for its shape is refused here.
func EncodeBatch(b Batch) ([]byte, error) { return AppendBatch(nil, b) }

// AppendBatch writes a batch, as EncodeBatch does, after what out holds already. A batch is large, so it is written in one place once.
func AppendBatch(out []byte, b Batch) ([]byte, error) {
	sequences, err := b.sorted()
	if err != nil {
		return nil, err
	}
	from := len(out)
	out = slices.Grow(out, encodedSize(sequences))
	out = binary.LittleEndian.AppendUint32(append(out, batchMagic...), uint32(len(sequences)))
	for _, s := range sequences {
		out = binary.LittleEndian.AppendUint64(out, uint64(s.Ordinal))
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(s.Advantage))
		out = append(binary.LittleEndian.AppendUint32(out, uint32(len(s.IDs))), s.flags())
		for _, id := range s.IDs {
			out = binary.LittleEndian.AppendUint32(out, uint32(id))
		}
		out = append(out, s.Mask...)
		out = appendFloats(out, s.LogProbs)
		for _, optional := range s.optional() {
			out = appendFloats(out, *optional)
		}
	}
	sum := sha256.Sum256(out[from:])
	return append(out, sum[:]...), nil
}

// encodedSize is how many bytes a batch takes.
func encodedSize(sequences []Sequence) int {
	n := len(batchMagic) + 4 + sha256.Size
	for _, s := range sequences {
		n += sequenceHeader + sequenceToken*len(s.IDs)
		for _, optional := range s.optional() {
			n += 4 * len(*optional)
		}
	}
	return n
}

// optional lists the lists that a sequence may lack, in the order of their flags.
func (s *Sequence) optional() []*[]float32 {
	return []*[]float32{&s.Advantages, &s.RefLogProbs, &s.EngineLogProbs}
}

func (s *Sequence) flags() (bits byte) {
	for i, optional := range s.optional() {
		if *optional != nil {
			bits |= 1 << i
		}
	}
	return bits
}

func appendFloats(out []byte, values []float32) []byte {
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

// Digest is the SHA-256, in hex, that ends the encoded batch.
func (b Batch) Digest() (string, error) {
	raw, err := EncodeBatch(b)
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(raw[len(raw)-sha256.Size:]), nil
}

// DecodeBatch reads what EncodeBatch wrote and refuses everything else.
func DecodeBatch(raw []byte) (Batch, error) {
	body := len(raw) - sha256.Size
	if body < len(batchMagic) || !bytes.HasPrefix(raw, []byte(batchMagic)) {
		return Batch{}, fmt.Errorf("%w: %d bytes do not start with %q", ErrBatch, len(raw), batchMagic)
	}
	if sum := sha256.Sum256(raw[:body]); !bytes.Equal(sum[:], raw[body:]) {
		return Batch{}, fmt.Errorf("%w: content has digest %x, but says %x", ErrBatch, sum, raw[body:])
	}
	r := &reader{rest: raw[len(batchMagic):body]}
	var b Batch
	for range r.uint32() {
		s := r.sequence()
		if r.short {
			break
		}
		b.Sequences = append(b.Sequences, s)
	}
	inOrder := slices.IsSortedFunc(b.Sequences, func(x, y Sequence) int { return cmp.Compare(x.Ordinal, y.Ordinal) })
	switch _, err := b.sorted(); {
	case r.short || len(r.rest) > 0:
		return Batch{}, fmt.Errorf("%w: %w", ErrBatch, errors.New("the content's length does not fit its counts"))
	case err != nil:
		return Batch{}, err
	case !inOrder:
		return Batch{}, fmt.Errorf("%w: %w", ErrBatch, errors.New("the sequences are not in the order of their ordinals"))
	}
	return b, nil
}

// reader takes values off bytes; short is set, and stays set, when they run out.
type reader struct {
	rest  []byte
	short bool
}

func (r *reader) take(n int) []byte {
	if r.short || n > len(r.rest) {
		r.short = true
		return nil
	}
	out := r.rest[:n]
	r.rest = r.rest[n:]
	return out
}

func (r *reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) sequence() Sequence {
	header := r.take(sequenceHeader)
	if header == nil {
		return Sequence{}
	}
	n, flags := int(binary.LittleEndian.Uint32(header[12:])), header[16]
	data := r.take(n * sequenceToken)
	if data == nil {
		return Sequence{}
	}
	s := Sequence{
		Ordinal:   int(binary.LittleEndian.Uint64(header)),
		Advantage: math.Float32frombits(binary.LittleEndian.Uint32(header[8:])),
		IDs:       make([]int32, n), Mask: bytes.Clone(data[4*n : 5*n]), LogProbs: floats(data[5*n:]),
	}
	for i := range n {
		s.IDs[i] = int32(binary.LittleEndian.Uint32(data[4*i:]))
	}
	for i, optional := range s.optional() {
		if flags&(1<<i) != 0 {
			*optional = floats(r.take(4 * n))
		}
	}
	if flags != s.flags() {
		r.short = true
	}
	return s
}

func floats(data []byte) []float32 {
	if data == nil {
		return nil
	}
	out := make([]float32, len(data)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out
}
