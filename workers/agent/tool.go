package agent

import (
	"encoding/json"

	"github.com/restar-rl/restar/workers/tokenizer"
)

// Tool turns the arguments of a call into a program for the sandbox.
type Tool struct {
	Name string
	// Stateful programs are cells of one session, which lives with the trajectory.
	Stateful bool
	// Program reads the arguments, which are any JSON value. Its error is shown to the model.
	Program func(arguments json.RawMessage) (code, stdin string, err error)
}

// Python is the stateless Python tool of rStar2-Agent (Fig 3): a string "code" and a string "input" for standard input. A
// missing input is empty; further arguments are ignored.
func Python(name string) Tool {
	return Tool{Name: name, Program: func(arguments json.RawMessage) (string, string, error) {
		fields, code, err := codeOf(arguments)
		if err != nil {
			return "", "", err
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

// Jupyter is the stateful Python tool of rStar2's code (SimJupyterTool): a string "code", a cell that finds what the earlier ones
// have left. Further arguments are ignored.
func Jupyter() Tool {
	return Tool{Name: tokenizer.JupyterToolName, Stateful: true, Program: func(arguments json.RawMessage) (string, string, error) {
		_, code, err := codeOf(arguments)
		return code, "", err
	}}
}

// ToolNamed is what runs the calls of tokenizer.ToolNamed.
func ToolNamed(name string) Tool {
	if name == tokenizer.JupyterToolName {
		return Jupyter()
	}
	return Python(name)
}

func codeOf(arguments json.RawMessage) (fields map[string]json.RawMessage, code string, err error) {
	if fields, err = decodeObject(arguments); err != nil {
		return nil, "", argumentError(err)
	}
	if _, ok := fields["code"]; !ok {
		return nil, "", argumentError(missingArgument("code"))
	}
	if code, err = decodeString("code", fields["code"]); err != nil {
		return nil, "", argumentError(err)
	}
	return fields, code, nil
}
