package activities

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// digest is the sha256 of an object's content, hex.
func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// encodeLines writes values as JSON lines. The same values give the same bytes.
func encodeLines[T any](values []T) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for i, v := range values {
		if err := enc.Encode(v); err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
	}
	return b.Bytes(), nil
}

// decodeLines reads what encodeLines wrote.
func decodeLines[T any](b []byte) ([]T, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	var out []T
	for dec.More() {
		var v T
		if err := dec.Decode(&v); err != nil {
			return nil, fmt.Errorf("row %d: %w", len(out)+1, err)
		}
		out = append(out, v)
	}
	return out, nil
}

// encodeIndented writes a value for people and machines alike. NaN and infinities are errors.
func encodeIndented(v any) ([]byte, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	return append(b, '\n'), err
}
