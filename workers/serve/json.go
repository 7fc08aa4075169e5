package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"unicode/utf8"
)

// decode reads a request strictly: one JSON object in UTF-8 whose keys are all known.
func decode(r *http.Request, to any) error {
	if kind := r.Header.Get("Content-Type"); kind != "" {
		if media, _, err := mime.ParseMediaType(kind); err != nil || media != "application/json" {
			return &apiError{status: http.StatusUnsupportedMediaType, message: fmt.Sprintf("Content-Type is %q, want application/json", kind)}
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if !utf8.Valid(body) {
		return badRequest("", "the request is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(to); err != nil {
		return refused(err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return badRequest("", "the request has text after its JSON object at byte %d", dec.InputOffset())
	}
	return checkKeys(body)
}

// checkKeys wants the keys of a valid JSON object to be spelt as they are known, and each to be there once: encoding/json takes
// capitals for small letters, and the last of several values.
func checkKeys(body []byte) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	seen := map[string]bool{}
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return badRequest("", "the request is not one JSON object")
	}
	for dec.More() {
		token, err := dec.Token()
		key, ok := token.(string)
		if err != nil || !ok {
			return badRequest("", "the request is not one JSON object")
		}
		switch {
		case key != strings.ToLower(key):
			return badRequest(key, "the key %s is not known here; leave it out", key)
		case seen[key]:
			return badRequest(key, "the key %s is there twice", key)
		}
		seen[key] = true
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return refused(err)
		}
	}
	return nil
}

// refused names the key that a decoding error is about.
func refused(err error) *apiError {
	var api *apiError
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &api):
		return api
	case errors.As(err, &wrong):
		key := strings.TrimPrefix(wrong.Field, "sampling.") // the Go name of what both requests share
		if key == "" {
			return badRequest("", "the request is a JSON %s, want an object", wrong.Value)
		}
		return badRequest(key, "%s is a JSON %s, want %s", key, wrong.Value, kind(wrong.Type))
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		name = strings.Trim(name, `"`)
		return badRequest(name, "the key %s is not known here; leave it out", name)
	}
	return badRequest("", "the request is not one JSON object: %v", err)
}

// kind is what JSON calls values of a type.
func kind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number that float64 holds"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "a whole number that " + t.String() + " holds"
}

// marshal encodes without HTML escaping: answers are text that people read.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// stopList is "text" or ["text", ...].
type stopList []string

// maxStops is OpenAI's bound.
const maxStops = 4

// UnmarshalJSON implements json.Unmarshaler.
func (s *stopList) UnmarshalJSON(b []byte) error {
	var one string
	var list []string
	switch {
	case string(b) == "null":
		return nil
	case json.Unmarshal(b, &one) == nil:
		list = []string{one}
	case json.Unmarshal(b, &list) != nil:
		return badRequest("stop", "stop is %.40s, want a text or a list of texts", b)
	}
	if len(list) > maxStops {
		return badRequest("stop", "stop has %d texts, want at most %d", len(list), maxStops)
	}
	for _, text := range list {
		if text == "" {
			return badRequest("stop", "stop holds an empty text, which is everywhere")
		}
	}
	*s = list
	return nil
}
