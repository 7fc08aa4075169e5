package serving

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/tokenizer"
)

// printer shows a conversation: the model's text as it comes, each call as its program, each response set off from both.
type printer struct {
	out      io.Writer
	json     bool
	color    bool
	held     string // text that could be the beginning of a call, or is a call that is not finished
	lineOpen bool   // the last thing written was not a line break
}

func newPrinter(out io.Writer, asJSON, color bool) *printer {
	return &printer{out: out, json: asJSON, color: color}
}

// Colours of a terminal: those of most schemes that are readable on light and dark ground.
const (
	plain  = "\x1b[0m"
	faint  = "\x1b[2m"
	callAs = "\x1b[36m" // cyan
	saidAs = "\x1b[33m" // yellow
)

func (p *printer) event(kind string, data map[string]any) {
	data["event"] = kind
	enc := json.NewEncoder(p.out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(data) // texts and numbers: only the pipe can fail, and then nobody reads
}

func (p *printer) write(style, text string) {
	if text == "" {
		return
	}
	p.lineOpen = !strings.HasSuffix(text, "\n")
	if p.color && style != "" {
		text = style + text + plain
	}
	fmt.Fprint(p.out, text)
}

// closeLine ends a line that has been begun.
func (p *printer) closeLine() {
	if p.lineOpen {
		p.write("", "\n")
	}
}

// ask invites a question.
func (p *printer) ask() {
	if !p.json {
		p.closeLine()
		p.write("", "> ")
		p.lineOpen = false // the person's Enter ends it
	}
}

// note tells something that is not the model's.
func (p *printer) note(text string) {
	if p.json {
		p.event("note", map[string]any{"text": text})
		return
	}
	p.closeLine()
	p.write(faint, text)
	p.write("", "\n")
}

// text shows more of the model's text. A call is held back until it is whole.
func (p *printer) text(more string) {
	if p.json {
		p.event("text", map[string]any{"text": more})
		return
	}
	p.held += more
	for p.held != "" {
		at := strings.Index(p.held, tokenizer.ToolCallOpen)
		if at < 0 {
			keep := beginning(p.held, tokenizer.ToolCallOpen)
			p.write("", printable(p.held[:len(p.held)-keep]))
			p.held = p.held[len(p.held)-keep:]
			return
		}
		end := strings.Index(p.held[at:], tokenizer.ToolCallClose)
		if end < 0 {
			p.write("", printable(p.held[:at]))
			p.held = p.held[at:]
			return
		}
		end += at + len(tokenizer.ToolCallClose)
		p.write("", printable(p.held[:at]))
		p.call(p.held[at:end])
		p.held = p.held[end:]
	}
}

// beginning returns how many bytes at the end of text begin mark.
func beginning(text, mark string) int {
	for n := min(len(mark)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, mark[:n]) {
			return n
		}
	}
	return 0
}

// call shows a call as the program that it runs, or as it is where it is none.
func (p *printer) call(block string) {
	p.closeLine()
	calls := agent.ParseToolCalls(block)
	var fields struct{ Code, Input string }
	if len(calls) != 1 || calls[0].Err != nil || json.Unmarshal(calls[0].Arguments, &fields) != nil || fields.Code == "" {
		p.block(callAs, "call", block)
		return
	}
	p.block(callAs, calls[0].Name, fields.Code)
	if fields.Input != "" {
		p.block(callAs, "input", fields.Input)
	}
}

// response shows what a call came to.
func (p *printer) response(outcome agent.OutcomeType, response string) {
	if p.json {
		p.event("response", map[string]any{"outcome": outcome, "text": response})
		return
	}
	p.flush()
	p.block(saidAs, string(outcome), response)
}

// block shows lines set off from the conversation.
func (p *printer) block(style, title, text string) {
	p.closeLine()
	p.write(style, "┌ "+title+"\n")
	for line := range strings.SplitSeq(strings.TrimRight(printable(text), "\n"), "\n") {
		p.write(style, "│ "+line+"\n")
	}
}

// flush shows what was held back and is no call.
func (p *printer) flush() {
	p.write("", printable(p.held))
	p.held = ""
	p.closeLine()
}

// end says why an answer is over, where it is not because the model had answered.
func (p *printer) end(stop agent.StopReason) {
	if p.json {
		p.event("end", map[string]any{"stop": stop})
		return
	}
	p.flush()
	switch stop {
	case agent.Answered:
	case "":
		p.note("stopped; the answer is forgotten")
	default:
		p.note("the answer is cut off: " + string(stop))
	}
}

// printable takes control characters out of a model's text, which could do things to a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// scanLines calls each for every line of in.
func scanLines(in io.Reader, each func(string)) {
	s := bufio.NewScanner(in)
	s.Buffer(nil, largestQuestion)
	for s.Scan() {
		each(s.Text())
	}
}
