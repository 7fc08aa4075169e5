package service

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// fault is one entry of FastAPI's 422 body (pydantic 2), in the order of its fields.
type fault struct {
	Type    string         `json:"type"`
	Loc     []any          `json:"loc"`
	Message string         `json:"msg"`
	Input   any            `json:"input"`
	Context map[string]any `json:"ctx,omitempty"`
}

// schema checks one request body the way code-judge's models do, and gathers what is wrong.
type schema struct{ faults []fault }

func (s *schema) add(kind, message string, input any, ctx map[string]any, loc ...any) {
	s.faults = append(s.faults, fault{kind, append([]any{"body"}, loc...), message, input, ctx})
}

// parseSubmission reads the body of /run and /judge.
func parseSubmission(body []byte) (submission, []fault) {
	var s schema
	fields := s.object(body)
	if s.faults != nil {
		return submission{}, s.faults
	}
	return s.submission(fields), s.faults
}

// parseBatch reads the body of a batch.
func parseBatch(body []byte) (id string, subs []submission, faults []fault) {
	var s schema
	fields := s.object(body)
	if s.faults != nil {
		return "", nil, s.faults
	}
	if v := s.text(fields, false, "sub_id"); v != nil {
		id = *v
	}
	if id == "" {
		id = newID()
	}
	if kind, ok := fields["type"]; ok {
		s.literal(kind, []string{"batch"}, "type")
	}
	given, ok := fields["submissions"]
	list, isList := given.([]any)
	switch {
	case !ok:
		s.add("missing", "Field required", fields, nil, "submissions")
	case !isList:
		s.add("list_type", "Input should be a valid list", given, nil, "submissions")
	case len(list) == 0:
		s.add("too_short", "List should have at least 1 item after validation, not 0", list,
			map[string]any{"field_type": "List", "min_length": 1, "actual_length": 0}, "submissions")
	}
	for i, item := range list {
		object, ok := item.(map[string]any)
		if !ok {
			s.add("model_attributes_type", "Input should be a valid dictionary or object to extract fields from", item, nil, "submissions", i)
			continue
		}
		subs = append(subs, s.submission(object, "submissions", i))
	}
	return id, subs, s.faults
}

// errExtra is a second value behind the first.
var errExtra = errors.New("extra data")

// object reads the body as a JSON object.
func (s *schema) object(body []byte) map[string]any {
	if len(bytes.TrimSpace(body)) == 0 {
		s.add("missing", "Field required", nil, nil)
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errExtra
		}
	}
	if err != nil {
		at := d.InputOffset()
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			at = max(syntax.Offset-1, 0)
		}
		s.add("json_invalid", "JSON decode error", map[string]any{}, map[string]any{"error": err.Error()}, at)
		return nil
	}
	object, ok := v.(map[string]any)
	switch {
	case v == nil:
		s.add("missing", "Field required", nil, nil)
	case !ok:
		s.add("model_attributes_type", "Input should be a valid dictionary or object to extract fields from", v, nil)
	}
	return object
}

// submission reads one submission's fields, in the model's order.
func (s *schema) submission(fields map[string]any, loc ...any) submission {
	at := func(name string) []any { return append(append([]any{}, loc...), name) }
	var sub submission
	if id := s.text(fields, false, at("sub_id")...); id != nil && *id != "" {
		sub.id, sub.named = *id, true
	} else {
		sub.id = newID()
	}
	if kind, ok := fields["type"]; !ok {
		s.add("missing", "Field required", fields, nil, at("type")...)
	} else if s.literal(kind, []string{"python", "cpp", "math"}, at("type")...) {
		sub.kind = kind.(string)
	}
	s.options(fields["options"], at("options")...)
	if v := s.text(fields, true, at("solution")...); v != nil {
		sub.solution = *v
	}
	if v := s.text(fields, false, at("input")...); v != nil {
		sub.input = *v
	}
	sub.expectedOutput = s.text(fields, false, at("expected_output")...)
	return sub
}

// text reads a string; null and absence are nil unless it is required.
func (s *schema) text(fields map[string]any, required bool, loc ...any) *string {
	v, ok := fields[loc[len(loc)-1].(string)]
	text, isText := v.(string)
	switch {
	case isText:
		return &text
	case !ok && required:
		s.add("missing", "Field required", fields, nil, loc...)
	case v != nil || required:
		s.add("string_type", "Input should be a valid string", v, nil, loc...)
	}
	return nil
}

func (s *schema) literal(v any, values []string, loc ...any) bool {
	for _, want := range values {
		if v == want {
			return true
		}
	}
	quoted := make([]string, len(values))
	for i, want := range values {
		quoted[i] = "'" + want + "'"
	}
	expected := quoted[len(quoted)-1]
	if n := len(quoted) - 1; n > 0 {
		expected = strings.Join(quoted[:n], ", ") + " or " + expected
	}
	s.add("literal_error", fmt.Sprintf("Input should be %s", expected), v, map[string]any{"expected": expected}, loc...)
	return false
}

// options checks the map of strings that code-judge accepts and does not use.
func (s *schema) options(v any, loc ...any) {
	if v == nil {
		return
	}
	object, ok := v.(map[string]any)
	if !ok {
		s.add("dict_type", "Input should be a valid dictionary", v, nil, loc...)
		return
	}
	for key, value := range object {
		if _, ok := value.(string); !ok {
			s.add("string_type", "Input should be a valid string", value, nil, append(append([]any{}, loc...), key)...)
		}
	}
}
