package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/restar-rl/restar/kernels/philox"
)

// recordFormat is the version of the encodings below; readers refuse others.
const recordFormat = 1

// bits is a list of float32 that survives JSON to the bit: base64 of its little-endian words.
type bits []float32

// MarshalJSON implements json.Marshaler.
func (b bits) MarshalJSON() ([]byte, error) {
	raw := make([]byte, 4*len(b))
	for i, v := range b {
		binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(v))
	}
	return json.Marshal(raw)
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *bits) UnmarshalJSON(body []byte) error {
	var text string
	if err := json.Unmarshal(body, &text); err != nil {
		return fmt.Errorf("a list of float32 is base64 text: %w", err)
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return fmt.Errorf("a list of float32 is base64 text: %w", err)
	}
	if len(raw)%4 != 0 {
		return fmt.Errorf("a list of float32 has %d bytes; it needs a multiple of 4", len(raw))
	}
	*b = make(bits, len(raw)/4)
	for i := range *b {
		(*b)[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return nil
}

// measured is the list, or nil for an empty one: no token has been measured.
func (b bits) measured() []float32 {
	if len(b) == 0 {
		return nil
	}
	return b
}

// trajectoryJSON is the stored form. The mask is left out: the turns say it.
type trajectoryJSON struct {
	Format    int            `json:"format"`
	Key       string         `json:"key"`
	Address   philox.Address `json:"address"`
	Problem   string         `json:"problem"`
	PromptLen int            `json:"prompt_len"`
	IDs       []int32        `json:"ids"`
	LogProbs  bits           `json:"log_probs"`
	Entropy   bits           `json:"entropy"`
	Turns     []Turn         `json:"turns"`
	Version   string         `json:"version"`
	Stop      StopReason     `json:"stop"`
	Answers   Answers        `json:"answers"`
	Verdict   Verdict        `json:"verdict"`
	Reward    float64        `json:"reward"`
	Timings   *Timings       `json:"timings,omitempty"`
}

func (t *Trajectory) encode(timings *Timings) ([]byte, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	return json.Marshal(trajectoryJSON{
		recordFormat, t.Key, t.Address, t.Problem, t.PromptLen, t.IDs, t.LogProbs, t.Entropy, t.Turns, t.Version, t.Stop,
		t.Answers, t.Verdict, t.Reward, timings,
	})
}

// Canonical returns the bytes that every digest covers: all but the timings. The same trajectory has the same bytes on every
// machine.
func (t *Trajectory) Canonical() ([]byte, error) { return t.encode(nil) }

// Digest returns the SHA-256 of the canonical bytes in hexadecimal.
func (t *Trajectory) Digest() (string, error) {
	body, err := t.Canonical()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:]), nil
}

// Encode returns the trajectory as compact JSON, timings included.
func (t *Trajectory) Encode() ([]byte, error) { return t.encode(&t.Timings) }

// DecodeTrajectory reads what Encode or Canonical wrote and checks every invariant. Unknown fields and anything behind the
// record are errors.
func DecodeTrajectory(body []byte) (Trajectory, error) {
	var j trajectoryJSON
	if err := decodeStrict(body, &j); err != nil {
		return Trajectory{}, fmt.Errorf("trajectory record: %w", err)
	}
	if j.Format != recordFormat {
		return Trajectory{}, fmt.Errorf("trajectory record has format %d, expected %d", j.Format, recordFormat)
	}
	for i, turn := range j.Turns {
		if turn.Start < 0 || turn.End > len(j.IDs) {
			return Trajectory{}, fmt.Errorf("trajectory record: turn %d spans [%d, %d) of %d tokens", i, turn.Start, turn.End, len(j.IDs))
		}
	}
	t := Trajectory{
		Key: j.Key, Address: j.Address, Problem: j.Problem, IDs: j.IDs, Mask: sampledMask(len(j.IDs), j.Turns), LogProbs: j.LogProbs,
		Entropy: j.Entropy.measured(), PromptLen: j.PromptLen, Turns: j.Turns, Version: j.Version, Stop: j.Stop, Answers: j.Answers,
		Verdict: j.Verdict, Reward: j.Reward,
	}
	if j.Timings != nil {
		t.Timings = *j.Timings
	}
	return t, t.Check()
}

func decodeStrict(body []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("more data follows the record at byte %d", dec.InputOffset())
	}
	return nil
}
