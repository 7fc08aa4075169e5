package agent

import "encoding/json"

// Tool turns the arguments of a call into a program for the sandbox.
type Tool struct {
	Name string
	// Program reads the arguments, which are any JSON value. Its error is shown to the model.
	Program func(arguments json.RawMessage) (code, stdin string, err error)
}

// Python is the stateless Python tool of rStar2-Agent (Fig 3): a string "code" and a string "input" for standard input. A
// missing input is empty; further arguments are ignored.
func Python(name string) Tool {
	return Tool{Name: name, Program: func(arguments json.RawMessage) (string, string, error) {
		fields, err := decodeObject(arguments)
		if err != nil {
			return "", "", argumentError(err)
		}
		if _, ok := fields["code"]; !ok {
			return "", "", argumentError(missingArgument("code"))
		}
		code, err := decodeString("code", fields["code"])
		if err != nil {
			return "", "", argumentError(err)
		}
		raw, ok := fields["input"]
		if !ok {
			return code, "", nil
		}
		stdin, err := decodeString("input", raw)
		if err != nil {
			return "", "", argumentError(err)
		}
		return code, stdin, nil
	}}
}
