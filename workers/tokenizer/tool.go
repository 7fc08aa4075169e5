package tokenizer

import (
	"bytes"
	"encoding/json"
)

// Tool is a function the model may call, in the OpenAI function format.
type Tool struct {
	Name        string
	Description string
	Parameters  []Parameter // in the order they are shown
}

// Parameter is a string argument of a tool. All parameters are required.
type Parameter struct {
	Name        string
	Description string
}

// DefaultToolName is the tool name of the rStar2 code; the released 14B weights were trained with
// "execute_python_code_with_standard_io" (arXiv 2508.20722, Fig. 3).
const DefaultToolName = "python_code_with_standard_io"

// PythonTool is the tool of rStar2: a stateless Python run with standard input.
func PythonTool(name string) Tool {
	return Tool{
		Name:        name,
		Description: "Run Python code and return what it prints.",
		Parameters:  []Parameter{{"code", "Python code to run."}, {"input", "Standard input."}},
	}
}

// JupyterToolName is the stateful tool of the rStar2 code (SimJupyterTool).
const JupyterToolName = "jupyter_code"

// JupyterTool is a Python cell that finds what earlier cells of its conversation have left.
func JupyterTool() Tool {
	return Tool{
		Name:        JupyterToolName,
		Description: "Run a Python cell and return what it prints. Names live on in later cells.",
		Parameters:  []Parameter{{"code", "Python code to run."}},
	}
}

// ToolNamed is the tool of a name: JupyterTool has its own, every other one is a PythonTool.
func ToolNamed(name string) Tool {
	if name == JupyterToolName {
		return JupyterTool()
	}
	return PythonTool(name)
}

type toolJSON struct {
	Type     string       `json:"type"`
	Function functionJSON `json:"function"`
}

type functionJSON struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Parameters  parametersJSON `json:"parameters"`
}

type parametersJSON struct {
	Type       string         `json:"type"`
	Properties propertiesJSON `json:"properties"`
	Required   []string       `json:"required"`
}

type propertiesJSON []Parameter

type propertyJSON struct {
	Type        string `json:"type"`
	Description string `json:"description"`
}

// MarshalJSON writes the properties in the order given.
func (p propertiesJSON) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, parameter := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := encodeJSON(parameter.Name)
		if err != nil {
			return nil, err
		}
		value, err := encodeJSON(propertyJSON{"string", parameter.Description})
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Schema returns the tool as one line of JSON, spaced as Python's json.dumps does: what the chat template's tojson writes.
func (tool Tool) Schema() string {
	required := make([]string, len(tool.Parameters))
	for i, p := range tool.Parameters {
		required[i] = p.Name
	}
	line, err := encodeJSON(toolJSON{"function", functionJSON{
		tool.Name, tool.Description, parametersJSON{"object", tool.Parameters, required},
	}})
	if err != nil {
		panic("tokenizer: strings always encode as JSON: " + err.Error())
	}
	return spaced(line)
}

// Call returns the text with which an assistant calls tool, markers included. Values are in the order of Parameters.
func (tool Tool) Call(values ...string) string {
	var b bytes.Buffer
	b.WriteString(ToolCallOpen + "\n" + `{"name": ` + quote(tool.Name) + `, "arguments": {`)
	for i, p := range tool.Parameters {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quote(p.Name) + ": " + quote(values[i]))
	}
	b.WriteString("}}\n" + ToolCallClose)
	return b.String()
}

func quote(s string) string {
	b, err := encodeJSON(s)
	if err != nil {
		panic("tokenizer: strings always encode as JSON: " + err.Error())
	}
	return string(b)
}

// Compact returns JSON on one line in the order of its keys, spaced as Python's json.dumps does.
func Compact(body []byte) (string, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, body); err != nil {
		return "", err
	}
	return spaced(b.Bytes()), nil
}

// spaced puts a space after every ':' and ',' of compact JSON that is not inside a string.
func spaced(compact []byte) string {
	var b bytes.Buffer
	inString := false
	for i, c := range compact {
		b.WriteByte(c)
		switch {
		case c == '"' && !escaped(compact, i):
			inString = !inString
		case !inString && (c == ':' || c == ','):
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// escaped reports whether an odd number of backslashes stands before i.
func escaped(b []byte, i int) bool {
	n := 0
	for i-1-n >= 0 && b[i-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

var _ json.Marshaler = propertiesJSON(nil)
