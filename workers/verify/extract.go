package verify

import "strings"

// The places an answer was found.
const (
	InAnswer = "answer"  // a box inside the last <answer> block
	InText   = "text"    // a box elsewhere, which only the lenient rule takes
	Nowhere  = "nowhere" // no box
)

const (
	answerOpen  = "<answer>"
	answerClose = "</answer>"
)

// Extract returns the content of the last \boxed{} in the last <answer> block, or else of the last one anywhere in the text. It
// is the lenient rule that rStar2-Agent's released reward uses (positives without an answer tag count), confined to what the
// model wrote. Path is InAnswer, InText or Nowhere.
func Extract(modelText string) (answer, path string, ok bool) {
	if answer, path, ok = ExtractStrict(modelText); ok {
		return answer, path, true
	}
	if answer, ok = lastBox(modelText); ok {
		return answer, InText, true
	}
	return "", Nowhere, false
}

// ExtractStrict returns the content of the last \boxed{} in the last <answer> block (rStar2-Agent §2.1), and nothing else.
func ExtractStrict(modelText string) (answer, path string, ok bool) {
	block, ok := lastAnswer(modelText)
	if !ok {
		return "", Nowhere, false
	}
	if answer, ok = lastBox(block); !ok {
		return "", Nowhere, false
	}
	return answer, InAnswer, true
}

// lastAnswer returns the content of the last <answer> block that is closed.
func lastAnswer(text string) (string, bool) {
	end := strings.LastIndex(text, answerClose)
	if end < 0 {
		return "", false
	}
	start := strings.LastIndex(text[:end], answerOpen)
	if start < 0 {
		return "", false
	}
	start += len(answerOpen)
	return text[start : start+strings.Index(text[start:], answerClose)], true
}

// lastBox returns the content of the last complete \boxed{} or \fbox{} in text, in one pass. A box whose brace is never
// closed has no content, so the one before it counts. Escaped braces are text.
func lastBox(text string) (string, bool) {
	var open []int // places of braces that are not closed yet; a box's brace is stored as its complement
	start, end := -1, -1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			if brace := boxBrace(text, i); brace > 0 {
				open = append(open, ^brace)
				i = brace
			} else {
				i++
			}
		case '{':
			open = append(open, i)
		case '}':
			if len(open) == 0 {
				continue
			}
			if brace := ^open[len(open)-1]; brace > start {
				start, end = brace, i
			}
			open = open[:len(open)-1]
		}
	}
	if start < 0 {
		return "", false
	}
	return strings.TrimSpace(text[start+1 : end]), true
}

// boxBrace returns the place of the opening brace of the box command at i, or 0 where there is none.
func boxBrace(text string, i int) int {
	for _, command := range []string{`\boxed`, `\fbox`} {
		if rest, ok := strings.CutPrefix(text[i:], command); ok {
			brace := len(text) - len(strings.TrimLeft(rest, " "))
			if brace < len(text) && text[brace] == '{' {
				return brace
			}
		}
	}
	return 0
}
