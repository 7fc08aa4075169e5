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

var update = flag.Bool("update", false, "write testdata/tokenizer.json again")

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
	tok, err := Load("testdata")
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

type goldenRow struct {
	Text    string
	On, Off []int32
	Decoded string
}

// The golden ids were made by Hugging Face tokenizers 0.23.3 (testdata/golden.py) from the tokenizer.json beside them.
func TestHuggingFaceGivesTheSameIDs(t *testing.T) {
	if *update {
		if err := trained(t).Save("testdata"); err != nil {
			t.Fatal(err)
		}
	}
	body, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []goldenRow
	if err := json.Unmarshal(body, &rows); err != nil {
		t.Fatal(err)
	}
	tok := loaded(t)
	for _, row := range rows {
		if got := tok.EncodeWithSpecials(row.Text); !slices.Equal(got, row.On) {
			t.Errorf("%q with added tokens: %v, Hugging Face %v", row.Text, got, row.On)
		}
		if got := tok.Encode(row.Text); !slices.Equal(got, row.Off) {
			t.Errorf("%q without added tokens: %v, Hugging Face %v", row.Text, got, row.Off)
		}
		if got := tok.Decode(row.On); got != row.Decoded {
			t.Errorf("%q decodes to %q, Hugging Face %q", row.Text, got, row.Decoded)
		}
	}
}

func TestTrainingIsAFunctionOfTheTexts(t *testing.T) {
	want, err := os.ReadFile("testdata/tokenizer.json")
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
		want, err := os.ReadFile(filepath.Join("testdata", name))
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

// rewrite changes the stored tokenizer.json and parses the result.
func rewrite(t *testing.T, old, new string) error {
	t.Helper()
	body, err := os.ReadFile("testdata/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(body), old) {
		t.Fatalf("testdata/tokenizer.json does not hold %q", old)
	}
	_, err = parse([]byte(strings.Replace(string(body), old, new, 1)))
	return err
}

func TestAFileThatWouldGiveOtherIDsIsRefusedByName(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`"type": "NFC"`, `"type": "NFKC"`, "NFKC"},
		{`"type": "BPE"`, `"type": "Unigram"`, "Unigram"},
		{`"byte_fallback": false`, `"byte_fallback": true`, "byte_fallback"},
		{`"lstrip": false`, `"lstrip": true`, "lstrip"},
		{`"behavior": "Isolated"`, `"behavior": "Removed"`, "Isolated"},
		{`"add_prefix_space": false`, `"add_prefix_space": true`, "add_prefix_space"},
		{`"dropout": null`, `"dropout": 0.1`, "dropout"},
		{`"ÿ": 187,`, ``, "0xff"},
		{`"!": 0,`, `"!": 1,`, "id 1"},
	} {
		err := rewrite(t, c.old, c.new)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s -> %s: error %v, want one that names %q", c.old, c.new, err, c.want)
		}
	}
	if _, err := Load(t.TempDir()); err == nil || !strings.Contains(err.Error(), "tokenizer.json") {
		t.Errorf("empty folder: error %v, want one that names tokenizer.json", err)
	}
}

func TestMergesAreReadInBothForms(t *testing.T) {
	body, err := os.ReadFile("testdata/tokenizer.json")
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
	body, err := os.ReadFile("testdata/tokenizer_config.json")
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
