package answers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/restar-rl/restar/cmd/restar/internal/fault"
)

// maxLine bounds a line: longer than any response, and short enough that a file without line breaks is one bad line.
const maxLine = 4 << 20

// byteOrderMark begins files of editors that mark UTF-8; it belongs to no line.
var byteOrderMark = []byte("\xef\xbb\xbf")

// row is one line of the input.
type row struct {
	line       int
	ID         string `json:"id"`
	Gold       string `json:"gold"`
	Prediction string `json:"prediction"`
}

// reader reads rows strictly.
type reader struct {
	name string
	in   *bufio.Reader
	line int
	read int64 // bytes
}

func newReader(name string, in io.Reader) *reader {
	return &reader{name: name, in: bufio.NewReaderSize(in, 1<<16)}
}

// next returns up to n rows; fewer only at the end.
func (r *reader) next(n int) ([]row, error) {
	var rows []row
	for len(rows) < n {
		data, err := r.readLine()
		if err != nil && err != io.EOF {
			return rows, err
		}
		if r.line == 1 {
			data = bytes.TrimPrefix(data, byteOrderMark)
		}
		if data = bytes.TrimSpace(data); len(data) > 0 {
			one, bad := r.parse(data)
			if bad != nil {
				return rows, fault.Userf("%s, line %d: %w", r.name, r.line, bad)
			}
			rows = append(rows, one)
		}
		if err == io.EOF {
			break
		}
	}
	return rows, nil
}

func (r *reader) readLine() ([]byte, error) {
	r.line++
	var line []byte
	for {
		part, err := r.in.ReadSlice('\n')
		line = append(line, part...)
		r.read += int64(len(part))
		if len(line) > maxLine {
			return nil, fault.Userf("%s, line %d: longer than %d bytes; is it JSON lines?", r.name, r.line, maxLine)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// parse wants an object with exactly the keys that are known.
func (r *reader) parse(data []byte) (row, error) {
	if !utf8.Valid(data) {
		return row{}, errors.New("not UTF-8; convert the file")
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(data, &keys); err != nil {
		return row{}, fmt.Errorf(`%w; want {"gold": "...", "prediction": "..."}`, err)
	}
	out := row{line: r.line}
	for key, into := range map[string]*string{"gold": &out.Gold, "prediction": &out.Prediction, "id": &out.ID} {
		value, ok := keys[key]
		if !ok && key != "id" {
			return row{}, fmt.Errorf("no key %q", key)
		}
		if !ok {
			continue
		}
		if err := json.Unmarshal(value, into); err != nil || value[0] != '"' {
			return row{}, fmt.Errorf("%q is %.40s, want a string", key, value)
		}
		delete(keys, key)
	}
	for key := range keys {
		return row{}, fmt.Errorf("unknown key %q; known are gold, prediction and id", key)
	}
	return out, onceEach(data)
}

// onceEach wants each key of a valid JSON object once: encoding/json takes the last of several values.
func onceEach(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	seen := map[json.Token]bool{}
	for _, err := dec.Token(); err == nil && dec.More(); {
		key, _ := dec.Token()
		if seen[key] {
			return fmt.Errorf("the key %q is there twice", key)
		}
		seen[key] = true
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
	}
	return nil
}
