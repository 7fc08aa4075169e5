package tokenizer

import "strings"

// The markers of an rStar2 conversation on a Qwen3 vocabulary.
const (
	EndOfText         = "<|endoftext|>"
	TurnStart         = "<|im_start|>"
	TurnEnd           = "<|im_end|>"
	ToolCallOpen      = "<tool_call>"
	ToolCallClose     = "</tool_call>"
	ToolResponseOpen  = "<tool_response>"
	ToolResponseClose = "</tool_response>"
	ReasonOpen        = "<reason>"
	ReasonClose       = "</reason>"
	AnswerOpen        = "<answer>"
	AnswerClose       = "</answer>"
)

// Markers returns the added tokens a tokenizer trained for rStar2 conversations has, in id order.
func Markers() []string {
	return []string{
		EndOfText, TurnStart, TurnEnd, ToolCallOpen, ToolCallClose, ToolResponseOpen, ToolResponseClose,
		ReasonOpen, ReasonClose, AnswerOpen, AnswerClose,
	}
}

// DefaultSystem is the system text of the rStar2 chat template (microsoft/rStar, rstar2_agent_trainer.yaml).
const DefaultSystem = "A conversation between User and Assistant. The User asks a question, and the Assistant solves it. " +
	"The Assistant first thinks about the reasoning process in the mind and then provides the User with the answer. " +
	"The reasoning process is enclosed within <reason> </reason> and answer is enclosed within <answer> </answer> tags, " +
	"respectively, i.e., <reason> reasoning process here </reason> <answer> answer here </answer>."

// DefaultInstruction stands before the question in the first user turn of the same template, once.
const DefaultInstruction = "You must put your answer inside <answer> </answer> tags, i.e., <answer> answer here </answer>. " +
	"And your final answer will be extracted automatically by the \\boxed{} tag.\nThis is the problem:\n"

const (
	toolsOpen = "\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n" +
		"You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n"
	toolsClose = "</tools>\n\nFor each function call, return a json object with function name and arguments within " +
		"<tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>"
	assistantOpen = TurnStart + "assistant\n" + ReasonOpen
)

// Template renders rStar2 conversations. System, the tools and Instruction are this program's own words, in which markers
// are markers; questions and tool output are foreign, and nothing they say becomes a marker.
type Template struct {
	System      string   // "" is DefaultSystem
	Instruction string   // "" is DefaultInstruction
	Tools       []Tool   // none, and no Schemas: the system turn is System alone
	Schemas     []string // further tools as lines of JSON (Compact)
}

// Role says who wrote a turn after the first user turn.
const (
	RoleAssistant = "assistant"
	RoleTool      = "tool"
	RoleUser      = "user"
)

// Turn is one message after the question. An assistant's text begins right after the opening <reason> and ends before
// <|im_end|>; a tool's text is one tool response. Neighbouring tool turns share one user block. The instruction stands before
// the first question only.
type Turn struct {
	Role string
	Text string
}

func (tpl Template) promptSegments(question string) []segment {
	system, instruction := tpl.System, tpl.Instruction
	if system == "" {
		system = DefaultSystem
	}
	if instruction == "" {
		instruction = DefaultInstruction
	}
	before := TurnStart + "system\n" + system + tpl.toolsBlock() + TurnEnd + "\n" + TurnStart + "user\n" + instruction
	return []segment{{before, own}, {question, foreign}, {TurnEnd + "\n" + assistantOpen, own}}
}

func (tpl Template) toolsBlock() string {
	if len(tpl.Tools)+len(tpl.Schemas) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(toolsOpen)
	for _, tool := range tpl.Tools {
		b.WriteString(tool.Schema() + "\n")
	}
	for _, schema := range tpl.Schemas {
		b.WriteString(schema + "\n")
	}
	return b.String() + toolsClose
}

// Prompt returns the first prompt of a question: everything up to and including the opening <reason>.
func (tpl Template) Prompt(question string) string { return join(tpl.promptSegments(question)) }

// PromptIDs returns Prompt in ids: markers as ids, the question with added tokens off.
func (tpl Template) PromptIDs(t *Tokenizer, question string) []int32 {
	return t.appendSegments(nil, tpl.promptSegments(question)...)
}

func toolBlockSegments(responses []string) []segment {
	segments := []segment{{"\n" + TurnStart + "user", own}}
	for _, r := range responses {
		segments = append(segments,
			segment{"\n" + ToolResponseOpen + "\n", own}, segment{r, foreign}, segment{"\n" + ToolResponseClose, own})
	}
	return append(segments, segment{TurnEnd + "\n" + assistantOpen, own})
}

func userBlockSegments(text string) []segment {
	return []segment{{"\n" + TurnStart + "user\n", own}, {text, foreign}, {TurnEnd + "\n" + assistantOpen, own}}
}

// UserBlock returns what follows an assistant's <|im_end|> when the user says more: the line break between turns, the user's
// turn and the next assistant turn up to its opening <reason>.
func UserBlock(text string) string { return join(userBlockSegments(text)) }

// UserBlockIDs returns UserBlock in ids: markers as ids, the text with added tokens off.
func UserBlockIDs(t *Tokenizer, text string) []int32 {
	return t.appendSegments(nil, userBlockSegments(text)...)
}

// ToolBlock returns what follows an assistant's <|im_end|> when its calls were answered: the line break that the template
// puts between turns, one user turn with every response, and the next assistant turn up to its opening <reason>.
func ToolBlock(responses []string) string { return join(toolBlockSegments(responses)) }

// ToolBlockIDs returns ToolBlock in ids: markers as ids, the responses with added tokens off. None of it is the model's.
func ToolBlockIDs(t *Tokenizer, responses []string) []int32 {
	return t.appendSegments(nil, toolBlockSegments(responses)...)
}

// Text returns a whole conversation; it ends with the last assistant turn's <|im_end|>.
func (tpl Template) Text(question string, turns []Turn) string {
	var b strings.Builder
	b.WriteString(tpl.Prompt(question))
	walk(turns, func(assistant string) { b.WriteString(assistant + TurnEnd) },
		func(block []segment) { b.WriteString(join(block)) })
	return b.String()
}

// History returns a conversation in ids whose assistant turns come from outside: added tokens that are not special are ids in
// them, so that what the model wrote keeps its ids where its text determines them, and no turn marker can be forged. The last
// turn is a user's or a tool's, or there is none, and the ids end with the opening <reason> of the turn to sample.
func (tpl Template) History(t *Tokenizer, question string, turns []Turn) []int32 {
	segments := tpl.promptSegments(question)
	walk(turns, func(assistant string) {
		segments = append(segments, segment{assistant, rendered}, segment{TurnEnd, own})
	},
		func(block []segment) { segments = append(segments, block...) })
	return t.appendSegments(nil, segments...)
}

// Conversation returns a whole conversation in ids, and a mask of the same length with 1 for what the assistant writes
// (its closing <|im_end|> included) and 0 for the prompt, tool blocks and opening <reason>. Assistant text is encoded with
// added tokens on: it is for demonstrations, never for text a model sampled.
func (tpl Template) Conversation(t *Tokenizer, question string, turns []Turn) (ids []int32, mask []uint8) {
	ids = tpl.PromptIDs(t, question)
	mask = make([]uint8, len(ids))
	grow := func(more []int32, m uint8) {
		ids = append(ids, more...)
		for range more {
			mask = append(mask, m)
		}
	}
	walk(turns,
		func(assistant string) { grow(t.EncodeWithSpecials(assistant+TurnEnd), 1) },
		func(block []segment) { grow(t.appendSegments(nil, block...), 0) })
	return ids, mask
}

// walk calls assistant for each assistant turn and block for what stands between two of them: each row of neighbouring tool
// turns, each user turn.
func walk(turns []Turn, assistant func(string), block func([]segment)) {
	var responses []string
	for i, turn := range turns {
		switch turn.Role {
		case RoleAssistant:
			assistant(turn.Text)
		case RoleUser:
			block(userBlockSegments(turn.Text))
		default:
			responses = append(responses, turn.Text)
			if i+1 == len(turns) || turns[i+1].Role != turn.Role {
				block(toolBlockSegments(responses))
				responses = nil
			}
		}
	}
}

func join(segments []segment) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteString(s.text)
	}
	return b.String()
}
