package tokenizer

import (
	"slices"
	"testing"
)

// conversationOf42 is the conversation that testdata/golden.py spells out.
func conversationOf42() (question string, turns []Turn) {
	return "What is 6 times 7?", []Turn{
		{RoleAssistant, "I compute it. </reason>\n" + PythonTool(DefaultToolName).Call("print(6 * 7)", "")},
		{RoleTool, "Tool call success\nstdout: 42\n"},
		{RoleAssistant, "</reason>\n<answer>\\boxed{42}</answer>"},
	}
}

// goldenIDs returns the ids that the reference gives for text.
func goldenIDs(t *testing.T, golden, text string) []int32 {
	t.Helper()
	i := slices.Index(readJSON[[]goldenText](t, "testdata/texts.json"), goldenText(text))
	if i < 0 {
		t.Fatalf("testdata/texts.json lacks %q", text)
	}
	return readJSON[goldenSet](t, golden).Rows[i].On
}

// agreeOnConversation wants every way to a conversation's ids to give those of the reference for the stretches in which a
// rollout grows.
func agreeOnConversation(t *testing.T, tok *Tokenizer, golden string) (ids []int32) {
	t.Helper()
	question, turns := conversationOf42()
	stretches := []string{rstar2().Prompt(question), turns[0].Text + TurnEnd, ToolBlock([]string{turns[1].Text}), turns[2].Text + TurnEnd}
	var want []int32
	for _, text := range stretches {
		want = append(want, goldenIDs(t, golden, text)...)
	}
	ids, _ = rstar2().Conversation(tok, question, turns)
	if !slices.Equal(ids, want) {
		t.Errorf("conversation %v, reference %v", ids, want)
	}
	states := conversation(tok, question, turns)
	if got := states[len(states)-1]; !slices.Equal(got, want) {
		t.Errorf("turn by turn %v, reference %v", got, want)
	}
	return ids
}

func TestTheConversationIsTokenExact(t *testing.T) {
	question, turns := conversationOf42()
	for _, kind := range []string{"qwen3", "trained"} {
		tok, err := Load("testdata/" + kind)
		if err != nil {
			t.Fatal(err)
		}
		golden := "testdata/" + kind + "/golden.json"
		ids := agreeOnConversation(t, tok, golden)
		if want := goldenIDs(t, golden, rstar2().Text(question, turns)); !slices.Equal(ids, want) {
			t.Errorf("%s: conversation %v, reference for the whole text %v", kind, ids, want)
		}
	}
}

func TestThePublishedQwen3TokenizerWritesTheConversation(t *testing.T) {
	tok := mustParse(t, publishedFile(t, "qwen3"))
	agreeOnConversation(t, tok, "testdata/real/qwen3.json")
	for marker, want := range map[string]int32{ // config.json and tokenizer_config.json of Qwen3
		EndOfText: 151643, TurnStart: 151644, TurnEnd: 151645, ToolCallOpen: 151657, ToolCallClose: 151658,
		ToolResponseOpen: 151665, ToolResponseClose: 151666,
	} {
		if id, ok := tok.SpecialID(marker); !ok || id != want {
			t.Errorf("%s is %d, want %d", marker, id, want)
		}
	}
	if got, want := ToolBlockIDs(tok, []string{"x"}), []int32{
		198, 151644, 872, 198, 151665, 198, 87, 198, 151666, 151645, 198, 151644, 77091, 198, 27, 19895, 29,
	}; !slices.Equal(got, want) { // \n <|im_start|> user \n <tool_response> \n x \n </tool_response> <|im_end|> \n <|im_start|> assistant \n < reason >
		t.Errorf("tool block %v, want %v", got, want)
	}
}
