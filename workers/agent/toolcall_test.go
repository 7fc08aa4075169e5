package agent

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestTrap20ToolCallsAreParsedStrictly(t *testing.T) {
	const valid = `{"name": "f", "arguments": {"code": "print(1)"}}`
	for name, c := range map[string]struct {
		text string
		want []string // the name of a call, or the start of its error text
	}{
		"no tags":                       {"2 + 2 = 4", nil},
		"valid":                         {"<tool_call>\n" + valid + "\n</tool_call>", []string{"f"}},
		"inside reasoning":              {"<reason>hm <tool_call>" + valid + "</tool_call> so</reason>", []string{"f"}},
		"two calls":                     {"<tool_call>" + valid + "</tool_call>\n<tool_call>" + valid + "</tool_call>", []string{"f", "f"}},
		"unclosed":                      {"<tool_call>" + valid, nil},
		"only the closing tag":          {valid + "</tool_call>", nil},
		"closing before opening":        {"</tool_call><tool_call>" + valid, nil},
		"bad JSON":                      {"<tool_call>{'name': 'f'}</tool_call>", []string{"!invalid character '\\''"}},
		"empty":                         {"<tool_call>\n</tool_call>", []string{"!unexpected end of JSON input"}},
		"cut off":                       {`<tool_call>{"name": "f", "arguments": {"code"</tool_call>`, []string{"!unexpected end of JSON input"}},
		"missing arguments":             {`<tool_call>{"name": "f"}</tool_call>`, []string{"!'arguments'"}},
		"missing name":                  {`<tool_call>{"arguments": {}}</tool_call>`, []string{"!'name'"}},
		"keys are case-sensitive":       {`<tool_call>{"Name": "f", "arguments": {}}</tool_call>`, []string{"!'name'"}},
		"duplicate key":                 {`<tool_call>{"name": "f", "name": "g", "arguments": {}}</tool_call>`, []string{"!duplicate key 'name'"}},
		"duplicate key inside":          {`<tool_call>{"name": "f", "arguments": {"a": [{"b": 1, "b": 2}]}}</tool_call>`, []string{"!duplicate key 'b'"}},
		"same key at two depths":        {`<tool_call>{"name": "f", "arguments": {"name": "g"}}</tool_call>`, []string{"f"}},
		"key equal to an earlier value": {`<tool_call>{"x": "name", "name": "f", "arguments": {}}</tool_call>`, []string{"f"}},
		"trailing garbage":              {"<tool_call>" + valid + "}</tool_call>", []string{"!invalid character '}' after top-level value"}},
		"two objects in a block":        {"<tool_call>" + valid + valid + "</tool_call>", []string{"!invalid character '{' after top-level value"}},
		"trailing comma":                {`<tool_call>{"name": "f", "arguments": {},}</tool_call>`, []string{"!invalid character '}'"}},
		"raw line break in a string":    {"<tool_call>{\"name\": \"f\", \"arguments\": {\"code\": \"a\nb\"}}</tool_call>", []string{"!invalid character '\\n' in string literal"}},
		"not an object":                 {"<tool_call>[1]</tool_call>", []string{"!expected a JSON object, found array"}},
		"name is not a string":          {`<tool_call>{"name": 1, "arguments": {}}</tool_call>`, []string{"!'name' must be a string, found number"}},
		"further keys are ignored":      {`<tool_call>{"id": 7, "name": "f", "arguments": {}}</tool_call>`, []string{"f"}},
		"closing tag in a string ends the match early": {
			`<tool_call>{"name": "f", "arguments": {"code": "print('</tool_call>')"}}</tool_call>`, []string{"!unexpected end of JSON input"},
		},
		"one good, one bad": {"<tool_call>" + valid + "</tool_call><tool_call>x</tool_call>", []string{"f", "!invalid character 'x'"}},
	} {
		calls := ParseToolCalls(c.text)
		if len(calls) != len(c.want) {
			t.Errorf("%s: %d calls, want %d", name, len(calls), len(c.want))
			continue
		}
		for i, want := range c.want {
			got := calls[i].Name
			if calls[i].Err != nil {
				got = "!" + calls[i].Err.Error()
			}
			if !strings.HasPrefix(got, want) || (want[0] != '!' && calls[i].Err != nil) {
				t.Errorf("%s: call %d is %q, want %q", name, i, got, want)
			}
		}
	}
}

func TestTrap20PythonArgumentsAreAnObjectOfStrings(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"code": "print(1)", "input": "x"}`:  "print(1)|x",
		`{"code": "print(1)"}`:                "print(1)|",
		`{"code": "", "input": "", "k": [1]}`: "|",
		`{"code": "a\nb\u00e9"}`:              "a\nbé|",
		`{"input": "x"}`:                      "!bad arguments: missing required argument 'code'",
		`{"code": 1}`:                         "!bad arguments: 'code' must be a string, found number",
		`{"code": null}`:                      "!bad arguments: 'code' must be a string, found null",
		`{"code": "a", "input": ["x"]}`:       "!bad arguments: 'input' must be a string, found array",
		`"print(1)"`:                          "!bad arguments: expected a JSON object, found string",
		`"{\"code\": \"print(1)\"}"`:          "!bad arguments: expected a JSON object, found string",
	} {
		code, stdin, err := Python("f").Program(json.RawMessage(arguments))
		got := code + "|" + stdin
		if err != nil {
			got = "!" + err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", arguments, got, want)
		}
	}
}

func FuzzToolCallParser(f *testing.F) {
	f.Add("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"code\": \"print(1)\", \"input\": \"\"}}\n</tool_call>")
	f.Add("<tool_call>{\"name\": \"f\", \"name\": 1, \"arguments\": [[[{}]]]}</tool_call><tool_call>")
	f.Add("<tool_call>" + strings.Repeat("[", 20000) + "</tool_call>")
	f.Add("<tool_call>\xff\x00\"\\ud800\"</tool_call>")
	f.Fuzz(func(t *testing.T, text string) {
		for _, call := range ParseToolCalls(text) {
			if !strings.Contains(text, callOpen+call.Body+callClose) {
				t.Fatalf("body %q is not a block of the text", call.Body)
			}
			if (call.Err == nil) != (call.Arguments != nil) {
				t.Fatalf("call %+v is neither a call nor an error", call)
			}
			if call.Err == nil {
				var any map[string]any
				if err := json.Unmarshal([]byte(call.Body), &any); err != nil || any["name"] == nil {
					t.Fatalf("accepted %q, which is not an object with a name: %v", call.Body, err)
				}
				_, _, _ = Python("f").Program(call.Arguments)
			}
			outcome := ResponseFormat{ResponseChars: 256}.parseResponse(errOr(call.Err))
			if strings.Contains(outcome, "</tool_response>") {
				t.Fatalf("response %q closes itself", outcome)
			}
		}
	})
}

func errOr(err error) error {
	if err == nil {
		return missingArgument("none")
	}
	return err
}
