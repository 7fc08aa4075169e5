package agent

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/restar-rl/restar/workers/sandbox"
)

// ResponseFormat shapes the text of a tool response. Lengths are in code points; 0 leaves a text whole.
type ResponseFormat struct {
	StreamChars   int  // stdout and stderr are each cut to their first so many (code-judge: 1000)
	ResponseChars int  // then the whole response keeps both its ends (verl: 256)
	ExecutionTime bool // end with the execution-time line of code-judge; it makes a run depend on the clock
}

const (
	successLine   = "Tool call success"
	failureLine   = "Tool call failure"
	parsePrefix   = "Failed to decode tool call: "
	executePrefix = "Error when executing tool: "
	cutMark       = "...(truncated)..."

	timeoutReason = "worker_timeout"
	// timeoutStdout replaces what a program printed before its time ran out: how far it got depends on the machine, and
	// code-judge, whose output the released weights know, loses it too.
	timeoutStdout = "Suicide from timeout.\n"
)

// FormatToolResponse writes what the model reads about a finished program: a status line, then reason, stdout and stderr where
// there are any, joined by line breaks (rStar2-Agent §2.1; strings of the released code_judge_utils.py). Streams keep their
// own trailing line breaks.
func FormatToolResponse(r sandbox.Result, f ResponseFormat) string {
	lines := []string{successLine}
	if r.Status != sandbox.Success {
		lines = []string{failureLine, "reason: " + reasonOf(r)}
	}
	stdout, stderr := r.Stdout, r.Stderr
	if r.Status == sandbox.Timeout {
		stdout, stderr = timeoutStdout, ""
	}
	if stdout = cutHead(clean(stdout), f.StreamChars); stdout != "" {
		lines = append(lines, "stdout: "+stdout)
	}
	if stderr = cutHead(clean(stderr), f.StreamChars); stderr != "" {
		lines = append(lines, "stderr: "+stderr)
	}
	if f.ExecutionTime {
		lines = append(lines, executionTime(r.Wall))
	}
	return f.finish(strings.Join(lines, "\n"))
}

func executionTime(wall time.Duration) string {
	return fmt.Sprintf("execution time: %.2fs", wall.Seconds())
}

// reasonOf names a failure. Exceptions and exit codes have an empty reason, as in code-judge; the limits that it does not know
// say what they are, since their programs leave no stderr.
func reasonOf(r sandbox.Result) string {
	switch r.Status {
	case sandbox.Timeout:
		return timeoutReason
	case sandbox.OOM:
		return "memory_limit"
	case sandbox.OutputLimit:
		return "output_limit"
	case sandbox.Killed:
		return "killed"
	default:
		return ""
	}
}

// parseResponse and executeResponse are the texts of calls that never became a program.
func (f ResponseFormat) parseResponse(err error) string {
	return f.finish(clean(parsePrefix + err.Error()))
}

func (f ResponseFormat) executeResponse(err error) string {
	return f.finish(clean(executePrefix + err.Error()))
}

// finish makes a whole response safe and short.
func (f ResponseFormat) finish(text string) string {
	return cutMiddle(escapeMarkers(text), f.ResponseChars)
}

// ansi matches the escape sequences of terminals: CSI, OSC, and the two-character ones.
var ansi = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|\x1b[ -/]*[0-~]")

// clean makes foreign text valid UTF-8 without terminal escapes.
func clean(text string) string {
	return ansi.ReplaceAllString(strings.ToValidUTF8(text, "\uFFFD"), "")
}

// marker matches the tags that delimit turns and tool responses.
var marker = regexp.MustCompile(`<(/?tool_response>|\|(?:im_start|im_end|endoftext)\|>)`)

// escapeMarkers keeps foreign text from closing its own response in the eyes of a reader: "<" of a delimiter becomes "<\". Its
// ids are safe without this, since foreign text is encoded with added tokens off.
func escapeMarkers(text string) string { return marker.ReplaceAllString(text, `<\$1`) }

// cutHead keeps the first n code points.
func cutHead(text string, n int) string {
	if n == 0 || len(text) <= n {
		return text
	}
	return text[:offset(text, n)]
}

// cutMiddle keeps the first n/2 and the last n/2 code points of a longer text around a mark (verl, side "middle").
func cutMiddle(text string, n int) string {
	count := utf8.RuneCountInString(text)
	if n == 0 || count <= n {
		return text
	}
	half := n / 2
	return text[:offset(text, half)] + cutMark + text[offset(text, count-half):]
}

// offset returns the byte position of code point n, or the length of a shorter text.
func offset(text string, n int) int {
	for i := range text {
		if n == 0 {
			return i
		}
		n--
	}
	return len(text)
}
