package tokenizer

import (
	"encoding/json"
	"strings"
	"testing"
)

// releasedTexts is what the released chat template of rStar2-Agent makes of conversations (testdata/template.py).
type releasedTexts struct {
	Conversations []releasedConversation
	Blocks        []struct {
		Responses []string
		Text      string
	}
}

type releasedConversation struct {
	System   string
	Tools    []releasedTool
	Question string
	Written  string // what each assistant turn says before its calls
	Rounds   []struct {
		Calls     []struct{ Code, Input string }
		Responses []string
	}
	Text string
}

type releasedTool struct {
	Function struct {
		Name, Description string
		Parameters        struct {
			Properties map[string]struct{ Description string }
			Required   []string // all, in the order of properties
		}
	}
}

func (r releasedTool) tool() Tool {
	tool := Tool{Name: r.Function.Name, Description: r.Function.Description}
	for _, name := range r.Function.Parameters.Required {
		tool.Parameters = append(tool.Parameters, Parameter{name, r.Function.Parameters.Properties[name].Description})
	}
	return tool
}

func (c releasedConversation) template() Template {
	tpl := Template{System: c.System}
	for _, tool := range c.Tools {
		tpl.Tools = append(tpl.Tools, tool.tool())
	}
	return tpl
}

func (c releasedConversation) turns() []Turn {
	var turns []Turn
	for _, round := range c.Rounds {
		text := c.Written
		for _, call := range round.Calls {
			text += "\n" + PythonTool(DefaultToolName).Call(call.Code, call.Input)
		}
		turns = append(turns, Turn{RoleAssistant, text})
		for _, response := range round.Responses {
			turns = append(turns, Turn{RoleTool, response})
		}
	}
	return turns
}

func TestConversationsAreThoseOfTheReleasedTemplateByteForByte(t *testing.T) {
	rounds, all := 0, readJSON[releasedTexts](t, "testdata/template.json").Conversations
	for _, c := range all {
		rounds += len(c.Rounds)
		if got := c.template().Text(c.Question, c.turns()); got != c.Text {
			t.Errorf("question %q, %d rounds:\n%q\nreleased template\n%q", c.Question, len(c.Rounds), got, c.Text)
		}
	}
	if len(all) < 14 || rounds < 3 {
		t.Errorf("%d conversations with %d rounds, want at least 14 and 3", len(all), rounds)
	}
}

// The released agent loop appends the template of the responses alone, which begins after the line break that the template puts
// between turns; a conversation rendered as a whole has it, and so have the blocks here.
func TestToolBlocksAreThoseOfTheReleasedLoopAfterTheLineBreakThatItLoses(t *testing.T) {
	blocks := readJSON[releasedTexts](t, "testdata/template.json").Blocks
	for _, b := range blocks {
		if got := ToolBlock(b.Responses); got != "\n"+b.Text {
			t.Errorf("%q, released loop %q", got, b.Text)
		}
	}
	if len(blocks) < 2 {
		t.Errorf("%d blocks, want at least 2", len(blocks))
	}
}

func TestSchemasOfOthersReadAsInTheReleasedTemplate(t *testing.T) {
	type row struct {
		Tools []json.RawMessage
		Text  string
	}
	schemas := 0
	for _, c := range readJSON[struct{ Conversations []row }](t, "testdata/template.json").Conversations {
		for _, raw := range c.Tools { // which has other than ASCII text escaped
			schemas++
			line, err := Compact(raw)
			if err != nil || !strings.Contains(c.Text, "\n"+line+"\n") {
				t.Errorf("the text lacks %s (%v)", line, err)
			}
		}
	}
	if schemas < 10 {
		t.Errorf("%d schemas, want at least 10", schemas)
	}
}
