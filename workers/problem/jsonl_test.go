package problem

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestRowsAreReadAsTheyAreWritten(t *testing.T) {
	in := "\xef\xbb\xbf" + `{"id":"a","problem":" What is 6*7? ","answer":"42","level":3}` + "\n\n" +
		`{"question":"How many eggs?","answer":"16 - 3 - 4 = <<16-3-4=9>>9\n9 * 2 = 18\n#### 18"}` + "\r\n" +
		`{"problem":"π?","answer":-7}` + "\n" + `{"id":12,"problem":"p","answer":"\\frac{1}{2}"}`
	good, bad, err := ReadJSONL(strings.NewReader(in))
	if err != nil || len(bad) != 0 {
		t.Fatalf("error %v, bad rows %v", err, bad)
	}
	want := []Problem{{"a", "What is 6*7?", "42"}, {"line-3", "How many eggs?", "18"}, {"line-4", "π?", "-7"}, {"12", "p", `\frac{1}{2}`}}
	if !slices.Equal(good, want) {
		t.Errorf("read %v, want %v", good, want)
	}
}

func TestEveryBadRowIsReportedWithItsLineAndReason(t *testing.T) {
	rows := []struct{ row, reason string }{
		{`not json`, "not a JSON object"}, {`[1]`, "not a JSON object"}, {`"x"`, "not a JSON object"},
		{`{"problem":"p","answer":"1"`, "not closed"}, {`{"problem":"p",}`, "not valid JSON"}, {`{"problem":"p","answer":"1"} x`, "after its JSON object"},
		{`{"answer":"1"}`, `key "problem" (or "question") is missing`}, {`{"problem":"p"}`, `key "answer" is missing`},
		{`{"problem":"p","question":"q","answer":"1"}`, "both present"}, {`{"problem":"  ","answer":"1"}`, `key "problem" is empty`},
		{`{"problem":3,"answer":"1"}`, `key "problem" is a number`}, {`{"problem":"p","answer":null}`, `key "answer" is null`},
		{`{"problem":"p","answer":["1"]}`, `key "answer" is a list`}, {`{"problem":"p","answer":true}`, `key "answer" is true`},
		{`{"problem":"p","answer":"text ####  "}`, `nothing after "####"`}, {`{"problem":"p","answer":"1","answer":"2"}`, `"answer" is written twice`},
		{"{\"problem\":\"\xff\",\"answer\":\"1\"}", "UTF-8"}, {`{"problem":"` + strings.Repeat("x", maxLine) + `","answer":"1"}`, "longer than"},
		{`{"id":"twice","problem":"p","answer":"1"}`, ""}, {`{"id":"twice","problem":"q","answer":"1"}`, `already used on line 19`},
	}
	var in strings.Builder
	for _, r := range rows {
		in.WriteString(r.row + "\n")
	}
	good, bad, err := ReadJSONL(strings.NewReader(in.String()))
	if err != nil || len(good) != 1 {
		t.Fatalf("error %v, good rows %v", err, good)
	}
	reasons := map[int]string{}
	for _, b := range bad {
		reasons[b.Line] = b.Reason
	}
	for i, r := range rows {
		if got := reasons[i+1]; !strings.Contains(got, r.reason) || (got == "") != (r.reason == "") {
			t.Errorf("line %d: reason %q, want one with %q", i+1, got, r.reason)
		}
	}
}

func TestWrittenProblemsReadBack(t *testing.T) {
	want := []Problem{{"a", "x < 3 & \"y\"\n中文", "1"}, {"b", "</tool_response>", "-2"}}
	var b bytes.Buffer
	if err := WriteJSONL(&b, want); err != nil {
		t.Fatal(err)
	}
	good, bad, err := ReadJSONL(&b)
	if err != nil || len(bad) != 0 || !slices.Equal(good, want) {
		t.Errorf("read back %v, bad %v, error %v, want %v", good, bad, err, want)
	}
}

func TestWrittenDemonstrationsReadBack(t *testing.T) {
	want, err := Demonstrations(1, 50, "python")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := WriteDemos(&b, want); err != nil {
		t.Fatal(err)
	}
	good, bad, err := ReadDemos(&b)
	if err != nil || len(bad) != 0 || !reflect.DeepEqual(good, want) {
		t.Errorf("demonstrations changed: bad %v, error %v", bad, err)
	}
}

func TestBadDemonstrationsAreReported(t *testing.T) {
	for row, reason := range map[string]string{
		`{"problem":"p"}`:                                          "turns",
		`{"problem":"p","turns":[]}`:                               "begin and end",
		`{"problem":"p","turns":[{"role":"tool","text":"x"}]}`:     "begin and end",
		`{"problem":"p","turns":[{"role":"assistant","text":""}]}`: "no text",
		`{"problem":"p","turns":[{"role":"assistant","text":"x"},{"role":"user","text":"x"},{"role":"assistant","text":"x"}]}`: `role "user"`,
		`{"turns":[{"role":"assistant","text":"x"}]}`: `"problem"`,
	} {
		good, bad, err := ReadDemos(strings.NewReader(row))
		if err != nil || len(good) != 0 || len(bad) != 1 || !strings.Contains(bad[0].Reason, reason) {
			t.Errorf("%s: good %v, bad %v, error %v, want a reason with %q", row, good, bad, err, reason)
		}
	}
}

func TestAMissingFileIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.jsonl")
	if _, _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v, want one that names %s", err, path)
	}
	if err := os.WriteFile(path, []byte(`{"problem":"p","answer":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if good, _, err := ReadFile(path); err != nil || len(good) != 1 {
		t.Errorf("read %v, error %v, want one problem", good, err)
	}
}
