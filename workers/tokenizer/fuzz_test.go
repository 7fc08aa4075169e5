package tokenizer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzTokenizerFile wants every file to be a tokenizer that encodes, or an error.
func FuzzTokenizerFile(f *testing.F) {
	files, err := filepath.Glob("testdata/*/tokenizer.json")
	if err != nil || len(files) < 9 {
		f.Fatalf("%d tokenizers in testdata (%v), want 9", len(files), err)
	}
	for _, path := range files {
		body, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
		f.Add(body[:len(body)/2])
	}
	for _, text := range []string{
		"", "null", "[]", "{}", `{"model":null}`, `{"pre_tokenizer":{"type":"Sequence","pretokenizers":[null]}}`, `{"added_tokens":[{"id":-1,"content":"x"}]}`,
		`{"decoder":{"type":"ByteLevel"},"pre_tokenizer":{"type":"ByteLevel"},"model":{"vocab":{"a":-5}}}`,
		`{"decoder":{"type":"ByteLevel"},"pre_tokenizer":{"type":"ByteLevel"},"model":{"vocab":{"a":2147483647},"merges":[["a"]]}}`,
		`{"decoder":{"type":"ByteLevel"},"normalizer":{"type":"Sequence","normalizers":[null]},"pre_tokenizer":{"type":"Split","pattern":{"Regex":"["}}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		tok, err := parse(body)
		if err != nil {
			return
		}
		for _, text := range []string{"Hello, 中文 12\n\xff", string(body[:min(len(body), 200)])} {
			for _, ids := range [][]int32{tok.Encode(text), tok.Frame(tok.EncodeWithSpecials(text))} {
				if got := tok.Decode(ids); !utf8.ValidString(got) {
					t.Fatalf("%q decodes to %q", text, got)
				}
			}
		}
	})
}

// FuzzRoundTrip wants every text back, and the same text from a stream.
func FuzzRoundTrip(f *testing.F) {
	tok := trained(f)
	for _, text := range append([]string{"", "\xff", "\xe4\xb8", "a\u0301\u0301", "\U00010043\u0327"}, fragments...) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want := toNFC(validUTF8(text))
		ids := tok.Encode(text)
		if got := tok.Decode(ids); got != want {
			t.Fatalf("%q comes back as %q, want %q", text, got, want)
		}
		if got := streamed(tok, ids); got != want {
			t.Fatalf("%q streams as %q, want %q", text, got, want)
		}
		if strings.ToValidUTF8(text, "") == text && validUTF8(text) != text {
			t.Fatalf("valid text %q is changed", text)
		}
	})
}
