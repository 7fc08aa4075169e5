package tokenizer

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write what is derived in testdata, and unicode_tables.go, again")

// corpus is a small text of every kind that conversations hold.
func corpus() []string {
	tpl := Template{Tools: []Tool{PythonTool(DefaultToolName)}}
	return []string{
		tpl.Text("What is the gcd of 48 and 18?", sampleTurns()),
		strings.Repeat("the quick brown fox jumps over the lazy dog, and the dog sleeps\n", 3),
		"for i in range(10):\n    print(i * i)\nimport math\nprint(math.comb(5, 2))\n",
		"你好，世界。世界你好。 Привет, привет! été é 😀😀 naïve café aaaaaaaa abababab !!!!!!!!",
		"I'm sure we'll see they've done it's don't you'd we're\n\n\n    indented\n\ttab\r\nwindows\r\n",
	}
}

func sampleTurns() []Turn {
	call := PythonTool(DefaultToolName).Call("import math\nprint(math.gcd(48,18))", "")
	return []Turn{
		{RoleAssistant, "Let me compute. </reason>\n" + call},
		{RoleTool, "Tool call success\nstdout: 6\n"},
		{RoleAssistant, "</reason>\n<answer>\\boxed{6}</answer>"},
	}
}

func trained(t testing.TB) *Tokenizer {
	t.Helper()
	tok, err := Train(corpus(), 640, Markers())
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func loaded(t testing.TB) *Tokenizer {
	t.Helper()
	tok, err := Load("testdata/trained")
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestTrainingIsAFunctionOfTheTexts(t *testing.T) {
	if *update {
		if err := trained(t).Save("testdata/trained"); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/trained/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		got, err := trained(t).Files()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got["tokenizer.json"], want) {
			t.Fatal("training on the same texts gives another file than before")
		}
	}
}

func TestSavingWhatWasLoadedKeepsEveryByte(t *testing.T) {
	dir := t.TempDir()
	if err := loaded(t).Save(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		want, err := os.ReadFile(filepath.Join("testdata/trained", name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s changed by loading and saving", name)
		}
	}
}

func TestFilesRoundTripWithoutAFolder(t *testing.T) {
	files, err := loaded(t).Files()
	if err != nil {
		t.Fatal(err)
	}
	tok, err := FromFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	text := "What is the gcd of 48 and 18?"
	if !slices.Equal(tok.Encode(text), loaded(t).Encode(text)) {
		t.Error("ids differ after Files and FromFiles")
	}
}

func TestMergesAreReadInBothForms(t *testing.T) {
	body, err := os.ReadFile("testdata/trained/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]any
	if err := json.Unmarshal(body, &file); err != nil {
		t.Fatal(err)
	}
	model := file["model"].(map[string]any)
	var pairs []any
	for _, m := range model["merges"].([]any) {
		left, right, _ := strings.Cut(m.(string), " ")
		pairs = append(pairs, []string{left, right})
	}
	model["merges"] = pairs
	body, err = json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := parse(body)
	if err != nil {
		t.Fatal(err)
	}
	text := "the quick brown fox"
	if !slices.Equal(tok.Encode(text), loaded(t).Encode(text)) {
		t.Error("merges written as lists give other ids than merges written as lines")
	}
}

func TestTheConfigNamesTheEndOfTurn(t *testing.T) {
	body, err := os.ReadFile("testdata/trained/tokenizer_config.json")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		EOS string `json:"eos_token"`
		Pad string `json:"pad_token"`
	}
	if err := json.Unmarshal(body, &config); err != nil {
		t.Fatal(err)
	}
	if config.EOS != TurnEnd || config.Pad != EndOfText || !utf8.Valid(body) {
		t.Errorf("eos %q and pad %q, want %q and %q", config.EOS, config.Pad, TurnEnd, EndOfText)
	}
}
