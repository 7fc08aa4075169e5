package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
)

// FuzzJournalSegment wants every object under a journal's key to be whole records, which are written back to the same content, or
// corrupt; and what lacks its last byte, as a torn write would leave it, to be corrupt.
func FuzzJournalSegment(f *testing.F) {
	good, err := encodeSegment([]Record{{"turn/3", json.RawMessage(`{"ids":[1,2],"log_probs":"AACAvw=="}`)}, {"final/3", json.RawMessage(`"<é>"`)}})
	if err != nil {
		f.Fatal(err)
	}
	for _, body := range [][]byte{nil, good, good[:len(good)-1], []byte("\n"), []byte("{}\n"), []byte("{\"key\":\"a\",\"value\":1}{}\n"), []byte("{\"key\":\"\xff\",\"value\":null}\n"), []byte("null\n")} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		records, err := decodeSegment("j/000000", body)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) || records != nil {
				t.Fatalf("%d records and error %v, want none and ErrCorrupt", len(records), err)
			}
			return
		}
		if want := bytes.Count(body, []byte("\n")); len(records) != want {
			t.Fatalf("%d records in %d lines", len(records), want)
		}
		again, err := encodeSegment(records)
		if err != nil {
			t.Fatal(err)
		}
		back, err := decodeSegment("j/000000", again)
		if err != nil || len(back) != len(records) {
			t.Fatalf("%d records written back are read as %d (%v)", len(records), len(back), err)
		}
		twice, err := encodeSegment(back)
		if err != nil || !bytes.Equal(again, twice) {
			t.Fatalf("written twice it differs (%v):\n%q\n%q", err, again, twice)
		}
		for i := range back {
			if back[i].Key != records[i].Key {
				t.Fatalf("record %d has key %q, want %q", i, back[i].Key, records[i].Key)
			}
		}
		if len(body) == 0 {
			return
		}
		if torn, err := decodeSegment("j/000000", body[:len(body)-1]); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("torn before its end it is read as %d records (%v)", len(torn), err)
		}
	})
}
