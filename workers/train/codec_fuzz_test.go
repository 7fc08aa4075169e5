package train

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"testing"
)

// FuzzBatch wants every content under a right digest to be a batch that is written back to the same bytes, or an error.
func FuzzBatch(f *testing.F) {
	b := withOptional(someBatch(f, tinyModel(f, 1), 4, 1))
	b.Sequences[1].Advantages, b.Sequences[2].RefLogProbs, b.Sequences[3].EngineLogProbs = nil, nil, nil
	raw, err := EncodeBatch(b)
	if err != nil {
		f.Fatal(err)
	}
	body := raw[len(batchMagic) : len(raw)-sha256.Size]
	f.Add(body)
	f.Add(body[:len(body)-1])
	f.Add(append(bytes.Clone(body), 0))
	f.Add([]byte{0, 0, 0, 0})
	f.Add([]byte{255, 255, 255, 255})
	f.Add(append([]byte{1, 0, 0, 0}, bytes.Repeat([]byte{255}, sequenceHeader+40)...))
	f.Add(append(append([]byte{1, 0, 0, 0}, make([]byte, 12)...), 0xc8, 0x71, 0x1c, 0x1c, 0)) // 9 times as many tokens do not fit 32 bits
	f.Add(outOfOrder(f))
	f.Fuzz(func(t *testing.T, body []byte) {
		raw := append([]byte(batchMagic), body...)
		sum := sha256.Sum256(raw)
		raw = append(raw, sum[:]...)
		b, err := DecodeBatch(raw)
		if err != nil {
			return
		}
		again, err := EncodeBatch(b)
		if err != nil || !bytes.Equal(again, raw) {
			t.Fatalf("read and written again: %d bytes instead of %d, or others (%v)", len(again), len(raw), err)
		}
	})
}

// outOfOrder is the body of a batch whose second sequence has the smaller ordinal.
func outOfOrder(t testing.TB) []byte {
	t.Helper()
	one := func(ordinal int) Sequence {
		return Sequence{Ordinal: ordinal, IDs: []int32{3}, Mask: []uint8{0}, LogProbs: []float32{0}}
	}
	raw, err := EncodeBatch(Batch{Sequences: []Sequence{one(1), one(2)}})
	if err != nil {
		t.Fatal(err)
	}
	body := raw[len(batchMagic) : len(raw)-sha256.Size]
	const size = sequenceHeader + sequenceToken
	return slices.Concat(body[:4], body[4+size:], body[4:4+size])
}

func TestABatchOutOfOrderIsNotWhatWasWritten(t *testing.T) {
	raw := append([]byte(batchMagic), outOfOrder(t)...)
	sum := sha256.Sum256(raw)
	if _, err := DecodeBatch(append(raw, sum[:]...)); !errors.Is(err, ErrBatch) || !strings.Contains(err.Error(), "order") {
		t.Errorf("error %v, want one of the order", err)
	}
}
