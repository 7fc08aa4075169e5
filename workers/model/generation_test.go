package model

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestASequenceEndsAtEveryIDThatTheFolderNames(t *testing.T) {
	three := int32(3)
	named := Config{EOSTokenID: &three, MoreEOSTokenIDs: []int32{4}}
	for _, c := range []struct {
		config     Config
		generation string
		want       []int32
	}{
		{Config{}, `{}`, nil},
		{named, `{"eos_token_id": null}`, []int32{3, 4}},
		{Config{}, `{"eos_token_id": 0}`, []int32{0}},
		{named, `{"temperature": 0.6, "eos_token_id": [4, 151643, 3, 5, 5], "do_sample": true}`, []int32{3, 4, 151643, 5}},
		{named, `{"eos_token_id": []}`, []int32{3, 4}},
	} {
		if got, err := c.config.Ends([]byte(c.generation)); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v (%v), want %v", c.generation, got, err, c.want)
		}
	}
	if got, err := named.Ends(nil); err != nil || !slices.Equal(got, []int32{3, 4}) {
		t.Errorf("without the file: %v (%v), want 3 and 4", got, err)
	}
}

func TestWhatIsNoIDIsNoEndOfASequence(t *testing.T) {
	for _, value := range []string{`"7"`, `[7, null]`, `[[7]]`, `7.5`, `{}`, `true`, `3000000000`, `[1, "x"]`} {
		_, err := ParseGeneration([]byte(`{"eos_token_id": ` + value + `}`))
		if err == nil || !strings.Contains(err.Error(), "eos_token_id is "+value) || !strings.Contains(err.Error(), GenerationFile) {
			t.Errorf("%s: error %v, want one that names file, key and value", value, err)
		}
		if _, err := ParseConfig(llamaFile(`"eos_token_id": ` + value)); err == nil || !strings.Contains(err.Error(), "eos_token_id") {
			t.Errorf("config.json with %s: error %v, want one that names the key", value, err)
		}
	}
	for _, raw := range []string{``, `[]`, `{`, `{"eos_token_id": 1} x`, `{"eos_token_id": 1, "eos_token_id": 2}`} {
		if ids, err := ParseGeneration([]byte(raw)); err == nil {
			t.Errorf("%s is read as %v, want an error", raw, ids)
		}
	}
}

func FuzzGeneration(f *testing.F) {
	for _, seed := range []string{`{}`, `{"eos_token_id": 7}`, `{"eos_token_id": [151645, 151643], "top_p": 0.95}`, `{"eos_token_id": null}`, `{"eos_token_id": [null]}`,
		`{"eos_token_id": "x"}`, `{"eos_token_id": 1e3}`, `[`, ``, `{"eos_token_id": [-1, 2147483647, 2147483648]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		ids, err := ParseGeneration(raw)
		if err != nil {
			return
		}
		body, err := json.Marshal(map[string]any{"eos_token_id": ids})
		if err != nil {
			t.Fatal(err)
		}
		if again, err := ParseGeneration(body); err != nil || !slices.Equal(again, ids) {
			t.Errorf("%v read back as %v (%v)", ids, again, err)
		}
		ends, err := Config{MoreEOSTokenIDs: []int32{2, 2}}.Ends(raw)
		if err != nil || len(ends) > len(ids)+1 || ends[0] != 2 {
			t.Errorf("with another end: %v (%v)", ends, err)
		}
		for _, id := range ids {
			if !slices.Contains(ends, id) {
				t.Errorf("id %d is lost in %v", id, ends)
			}
		}
	})
}
