package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

const (
	callOpen  = "<tool_call>"
	callClose = "</tool_call>"
)

// callBlock matches from the first opening tag to the next closing tag, as the model was taught: a closing tag inside a string
// of the program ends the call early and makes it a parse error that the model can read.
var callBlock = regexp.MustCompile(`(?s)<tool_call>(.*?)</tool_call>`)

// ToolCall is one closed <tool_call> block. Err is set if the block is not a call, and then Name and Arguments are empty.
type ToolCall struct {
	Body      string // text between the tags, as written
	Name      string
	Arguments json.RawMessage
	Err       error
}

// ParseToolCalls finds the calls of one assistant turn in order (released rStar2 parser "rstar2_agent_hermes"). A text without
// a closed block has no calls. A block must be one JSON object with a string "name" and "arguments"; duplicate keys, anything
// behind the object and every syntax fault are errors of that block. Further keys are ignored.
func ParseToolCalls(text string) []ToolCall {
	if !strings.Contains(text, callOpen) || !strings.Contains(text, callClose) {
		return nil
	}
	var calls []ToolCall
	for _, m := range callBlock.FindAllStringSubmatch(text, -1) {
		calls = append(calls, parseCall(m[1]))
	}
	return calls
}

func parseCall(body string) ToolCall {
	call := ToolCall{Body: body}
	fields, err := decodeObject([]byte(body))
	if err != nil {
		call.Err = err
		return call
	}
	for _, key := range []string{"name", "arguments"} {
		if _, ok := fields[key]; !ok {
			call.Err = fmt.Errorf("'%s'", key) // the message of Python's KeyError, which the model was trained on
			return call
		}
	}
	name, err := decodeString("name", fields["name"])
	if err != nil {
		call.Err = err
		return call
	}
	call.Name, call.Arguments = name, fields["arguments"]
	return call
}

// decodeObject reads exactly one JSON object with distinct keys at every depth. Keys are compared by their exact spelling.
func decodeObject(body []byte) (map[string]json.RawMessage, error) {
	var raw json.RawMessage
	if err := json.Unmarshal(body, &raw); err != nil {
		return nil, err
	}
	if err := checkKeys(json.NewDecoder(bytes.NewReader(raw))); err != nil {
		return nil, err
	}
	if kind := kindOf(raw); kind != "object" {
		return nil, fmt.Errorf("expected a JSON object, found %s", kind)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	return fields, nil
}

func decodeString(key string, raw json.RawMessage) (string, error) {
	if kind := kindOf(raw); kind != "string" {
		return "", fmt.Errorf("'%s' must be a string, found %s", key, kind)
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err
}

// checkKeys walks the tokens of a valid JSON value and refuses an object that names a key twice.
func checkKeys(dec *json.Decoder) error {
	var open []map[string]bool // one per open object or array; nil for an array
	key := false               // the next string token of the innermost object is a key
	for {
		token, err := dec.Token()
		if err != nil {
			return nil // the end of the one value
		}
		switch t := token.(type) {
		case json.Delim:
			switch t {
			case '{':
				open, key = append(open, map[string]bool{}), true
				continue
			case '[':
				open = append(open, nil)
			default:
				open = open[:len(open)-1]
			}
		case string:
			if key {
				if seen := open[len(open)-1]; seen[t] {
					return fmt.Errorf("duplicate key '%s'", t)
				}
				open[len(open)-1][t] = true
				key = false
				continue
			}
		}
		key = len(open) > 0 && open[len(open)-1] != nil
	}
}

// kindOf names the type of a valid JSON value.
func kindOf(raw json.RawMessage) string {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	default:
		return "number"
	}
}
