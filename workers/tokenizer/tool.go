package tokenizer

import (
	"bytes"
	"encoding/json"
	"strings"
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

// PythonTool is the tool of rStar2: a stateless Python run with standard input. Name, parameters and form are as released; the
// descriptions are this program's own and shorter, by 91 tokens of Qwen3 in every prompt, and no recipe changes them: a model
// that was trained with the released schema (rstar2_agent/config/tool_config/python_tool_config.yaml) reads another prompt here.
// A Tool can say the released schema byte for byte, and clients of the service give schemas of their own.
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

// quote writes a string as Python's json.dumps(s, ensure_ascii=False) does.
func quote(s string) string {
	b, err := encodeJSON(s)
	if err != nil {
		panic("tokenizer: strings always encode as JSON: " + err.Error())
	}
	return unescapeSeparators(string(b))
}

// unescapeSeparators writes the separators of lines and paragraphs as themselves: encoding/json always escapes them, for JavaScript.
func unescapeSeparators(literal string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(literal, '\\')
		if i < 0 {
			return b.String() + literal
		}
		b.WriteString(literal[:i])
		n := 2 // a backslash and what it escapes
		switch {
		case strings.HasPrefix(literal[i:], `\u2028`):
			b.WriteString("\u2028")
			n = 6
		case strings.HasPrefix(literal[i:], `\u2029`):
			b.WriteString("\u2029")
			n = 6
		default:
			b.WriteString(literal[i : i+n])
		}
		literal = literal[i+n:]
	}
}

// Compact returns JSON on one line in the order of its keys, as Python's json.dumps writes what it has read, non-ASCII text as itself.
// Numbers keep their spelling.
func Compact(body []byte) (string, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, body); err != nil {
		return "", err
	}
	return spaced(b.Bytes()), nil
}

// spaced puts a space after every ':' and ',' of compact JSON that is not inside a string, and quotes its strings.
func spaced(compact []byte) string {
	var b strings.Builder
	for len(compact) > 0 {
		n := 1
		switch c := compact[0]; c {
		case '"':
			n = literalLen(compact)
			var s string
			if err := json.Unmarshal(compact[:n], &s); err != nil {
				panic("tokenizer: a string of compact JSON is JSON: " + err.Error())
			}
			b.WriteString(quote(s))
		case ':', ',':
			b.WriteString(string(c) + " ")
		default:
			b.WriteByte(c)
		}
		compact = compact[n:]
	}
	return b.String()
}

// literalLen is the length of the string literal that begins b, quotation marks included.
func literalLen(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

var _ json.Marshaler = propertiesJSON(nil)
