package tokenizer

import (
	"os"
	"strings"
	"testing"
)

// rewrite changes the stored tokenizer.json and parses the result.
func rewrite(t *testing.T, old, new string) error {
	t.Helper()
	body, err := os.ReadFile("testdata/trained/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(body), old) {
		t.Fatalf("testdata/trained/tokenizer.json does not hold %q", old)
	}
	_, err = parse([]byte(strings.Replace(string(body), old, new, 1)))
	return err
}

func TestAFileThatWouldGiveOtherIDsIsRefusedByName(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`"type": "NFC"`, `"type": "NFKC"`, "NFKC"},
		{`"type": "BPE"`, `"type": "Unigram"`, "Unigram"},
		{`"byte_fallback": false`, `"byte_fallback": true`, "byte_fallback"},
		{`"behavior": "Isolated"`, `"behavior": "Removed"`, "Isolated"},
		{`"type": "NFC"`, `"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]`, "Lowercase"},
		{`"truncation": null`, `"truncation": {"max_length": 3}`, "truncation"},
		{`"padding": null`, `"padding": {}`, "padding"},
		{`"post_processor": {`, `"post_processor": {"type": "RobertaProcessing", "x": 1}, "unused": {`, "RobertaProcessing"},
		{`"decoder": {`, `"decoder": {"type": "Metaspace"}, "unused": {`, "decoder"},
		{`"Regex": "(?i:`, `"Regex": "(?i:x)|(?i:`, "(?i:x)"},
		{`"Regex": "(?i:`, `"Regex": "a++|(?i:`, "+|"},
		{`"Regex": "(?i:`, `"Regex": "[a&&b]|(?i:`, "&&"},
		{`"Regex": "(?i:`, `"Regex": "\\p{Greek}|(?i:`, "Greek"},
		{`"Regex": "(?i:`, `"Regex": "\\w|(?i:`, `\\w`},
		{`"Regex": "(?i:`, `"Regex": "x$|(?i:`, "$"},
		{`"type": "Split"`, `"type": "Metaspace"`, "Metaspace"},
		{`"content": "<|im_start|>"`, `"content": "<|endoftext|>"`, "listed twice"},
		{`"id": 630,`, `"id": 629,`, "both have id 629"},
		{`"id": 630,`, `"id": 3,`, "in the vocabulary"},
		{`"id": 630,`, `"id": 1073741824,`, "1073741824"},
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
