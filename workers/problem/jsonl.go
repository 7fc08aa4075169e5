package problem

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// maxLine bounds a row, so that a file without line breaks is one bad row and not all of the memory.
const maxLine = 1 << 20

// BadRow is a row that cannot be used. Line counts from 1, blank lines included.
type BadRow struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

func (b BadRow) String() string { return fmt.Sprintf("line %d: %s", b.Line, b.Reason) }

// ReadFile reads the JSONL problems of a file; see ReadJSONL.
func ReadFile(path string) ([]Problem, []BadRow, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("problems: %w", err)
	}
	defer f.Close()
	good, bad, err := ReadJSONL(f)
	if err != nil {
		return nil, nil, fmt.Errorf("problems %s: %w", path, err)
	}
	return good, bad, nil
}

// ReadJSONL reads one JSON object a line: "problem" or "question", "answer" (a string or a number), and optionally "id"; other
// keys are ignored. An answer that holds "####" is what follows the last one (GSM8K). A row without an id is named after its
// line. Rows that cannot be used come back in bad; the error is for reading itself.
func ReadJSONL(r io.Reader) (good []Problem, bad []BadRow, err error) {
	firstLine := map[string]int{}
	err = eachLine(r, func(line int, row []byte) {
		p, err := parseRow(row, line)
		if err == nil && firstLine[p.ID] > 0 {
			err = fmt.Errorf("id %q is already used on line %d", p.ID, firstLine[p.ID])
		}
		if err != nil {
			bad = append(bad, BadRow{line, err.Error()})
			return
		}
		firstLine[p.ID] = line
		good = append(good, p)
	})
	return good, bad, err
}

// eachLine calls visit for every line that is not blank. A line longer than maxLine arrives as nil.
func eachLine(r io.Reader, visit func(line int, row []byte)) error {
	in := bufio.NewReader(r)
	for line := 1; ; line++ {
		row, tooLong, err := readLine(in)
		if line == 1 {
			row = bytes.TrimPrefix(row, []byte("\xef\xbb\xbf"))
		}
		if tooLong {
			visit(line, nil)
		} else if row = bytes.TrimSpace(row); len(row) > 0 {
			visit(line, row)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func readLine(in *bufio.Reader) (row []byte, tooLong bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if !tooLong {
			row = append(row, part...)
		}
		if len(row) > maxLine {
			row, tooLong = nil, true
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return row, tooLong, err
		}
	}
}

func parseRow(row []byte, line int) (Problem, error) {
	fields, err := parseObject(row)
	if err != nil {
		return Problem{}, err
	}
	p := Problem{ID: fmt.Sprintf("line-%d", line)}
	if raw, ok := fields["id"]; ok {
		if p.ID, err = text("id", raw, true); err != nil {
			return Problem{}, err
		}
	}
	if p.Problem, err = questionOf(fields); err != nil {
		return Problem{}, err
	}
	raw, ok := fields["answer"]
	if !ok {
		return Problem{}, errors.New(`key "answer" is missing`)
	}
	if p.Answer, err = text("answer", raw, true); err != nil {
		return Problem{}, err
	}
	return p, p.finishAnswer()
}

// finishAnswer keeps what follows the last "####".
func (p *Problem) finishAnswer() error {
	if at := strings.LastIndex(p.Answer, "####"); at >= 0 {
		p.Answer = strings.TrimSpace(p.Answer[at+len("####"):])
		if p.Answer == "" {
			return errors.New(`key "answer" has nothing after "####"`)
		}
	}
	return nil
}

func questionOf(fields map[string]json.RawMessage) (string, error) {
	problem, hasProblem := fields["problem"]
	question, hasQuestion := fields["question"]
	switch {
	case hasProblem && hasQuestion:
		return "", errors.New(`keys "problem" and "question" are both present, want one`)
	case hasProblem:
		return text("problem", problem, false)
	case hasQuestion:
		return text("question", question, false)
	}
	return "", errors.New(`key "problem" (or "question") is missing`)
}

// text reads a string that is not blank, or a number where allowed, as it is written.
func text(key string, raw json.RawMessage, number bool) (string, error) {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil || raw[0] != '"' {
		if number && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') {
			return string(raw), nil
		}
		return "", fmt.Errorf("key %q is %s, want a string", key, kindOf(raw))
	}
	if s = strings.TrimSpace(s); s == "" {
		return "", fmt.Errorf("key %q is empty", key)
	}
	return s, nil
}

func kindOf(raw json.RawMessage) string {
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f', 'n':
		return string(raw)
	}
	return "a number"
}

// parseObject reads one JSON object and nothing after it. A key that is written twice is an error: readers disagree on which
// of the two counts.
func parseObject(row []byte) (map[string]json.RawMessage, error) {
	if row == nil {
		return nil, fmt.Errorf("row is longer than %d bytes", maxLine)
	}
	if !utf8.Valid(row) {
		return nil, errors.New("row is not valid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(row))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("row is not a JSON object")
	}
	fields := map[string]json.RawMessage{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("row is not valid JSON: %w", err)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, fmt.Errorf("row is not valid JSON: %w", err)
		}
		if _, twice := fields[key.(string)]; twice {
			return nil, fmt.Errorf("key %q is written twice", key)
		}
		fields[key.(string)] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, errors.New("row is not valid JSON: the object is not closed")
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("row has text after its JSON object")
	}
	return fields, nil
}

// WriteJSONL writes one problem a line, keys in the order id, problem, answer.
func WriteJSONL(w io.Writer, problems []Problem) error { return writeLines(w, problems) }

// WriteDemos writes one demonstration a line.
func WriteDemos(w io.Writer, demos []Demo) error { return writeLines(w, demos) }

func writeLines[T any](w io.Writer, rows []T) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for _, row := range rows {
		if err := enc.Encode(row); err != nil {
			return err
		}
	}
	return out.Flush()
}

// ReadDemos reads demonstrations: one object a line with "problem" and "turns". Turns must begin and end with the
// assistant's and hold some text each.
func ReadDemos(r io.Reader) (good []Demo, bad []BadRow, err error) {
	err = eachLine(r, func(line int, row []byte) {
		d, err := parseDemo(row)
		if err != nil {
			bad = append(bad, BadRow{line, err.Error()})
			return
		}
		good = append(good, d)
	})
	return good, bad, err
}

func parseDemo(row []byte) (Demo, error) {
	fields, err := parseObject(row)
	if err != nil {
		return Demo{}, err
	}
	var d Demo
	if d.Problem, err = questionOf(fields); err != nil {
		return Demo{}, err
	}
	if err := json.Unmarshal(fields["turns"], &d.Turns); err != nil {
		return Demo{}, fmt.Errorf(`key "turns" is not a list of {"role","text"}`)
	}
	if len(d.Turns) == 0 || d.Turns[0].Role != RoleAssistant || d.Turns[len(d.Turns)-1].Role != RoleAssistant {
		return Demo{}, errors.New(`key "turns" must begin and end with a turn of role "assistant"`)
	}
	for i, turn := range d.Turns {
		if turn.Role != RoleAssistant && turn.Role != RoleTool {
			return Demo{}, fmt.Errorf("turn %d has role %q, want %q or %q", i, turn.Role, RoleAssistant, RoleTool)
		}
		if turn.Role == RoleAssistant && turn.Text == "" {
			return Demo{}, fmt.Errorf("turn %d of the assistant has no text", i)
		}
	}
	return d, nil
}
