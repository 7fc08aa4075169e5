package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

var errCrash = errors.New("crash")

// recorded runs a sample to its end and returns it with its encoded turn records.
func recorded(t *testing.T, sample int) (Trajectory, [][]byte) {
	t.Helper()
	var journal [][]byte
	tr := mustRun(t, newTestAgent(t, newFakeEngine(mixedScript), &fakeRunner{}, testConfig()), testTask(sample), func(r TurnRecord) error {
		body, err := r.Encode()
		journal = append(journal, body)
		return err
	})
	return tr, journal
}

func decodeJournal(t *testing.T, journal [][]byte) []TurnRecord {
	t.Helper()
	records := make([]TurnRecord, len(journal))
	for i, body := range journal {
		var err error
		if records[i], err = DecodeTurnRecord(body); err != nil {
			t.Fatal(err)
		}
	}
	return records
}

func TestCrashAfterAnyTurnGivesTheSameTrajectory(t *testing.T) {
	longest := 0
	for sample := range 24 {
		want, full := recorded(t, sample)
		longest = max(longest, len(full))
		for crash := range len(full) + 1 {
			var journal [][]byte
			first := newTestAgent(t, newFakeEngine(mixedScript), &fakeRunner{}, testConfig())
			_, err := first.Run(context.Background(), testTask(sample), func(r TurnRecord) error {
				if len(journal) == crash {
					return errCrash // the turn was computed and never recorded
				}
				body, err := r.Encode()
				journal = append(journal, body)
				return err
			})
			if crash < len(full) && !errors.Is(err, errCrash) {
				t.Fatalf("sample %d: no crash in turn %d: %v", sample, crash, err)
			}
			e, r, task := newFakeEngine(mixedScript), &fakeRunner{}, testTask(sample)
			resume, err := Rebuild(task, decodeJournal(t, journal))
			if err != nil {
				t.Fatal(err)
			}
			task.Resume = &resume
			got := mustRun(t, newTestAgent(t, e, r, testConfig()), task, nil)
			if mustCanonical(t, got) != mustCanonical(t, want) {
				t.Errorf("sample %d: crash after %d turns gives another trajectory", sample, crash)
			}
			if e.generated[task.Key()] != len(full)-len(journal) {
				t.Errorf("sample %d: %d turns were sampled again after a crash with %d of %d recorded", sample, e.generated[task.Key()], len(journal), len(full))
			}
		}
	}
	if longest < 3 {
		t.Errorf("the longest trajectory has %d turns; the fake model is too short", longest)
	}
}

func TestFirstRecordedToolOutcomeIsTheOutcomeForEver(t *testing.T) {
	_, full := recorded(t, 0)
	records := decodeJournal(t, full[:1])
	calls := records[0].Calls
	resume, err := Rebuild(testTask(0), records)
	if err != nil {
		t.Fatal(err)
	}
	task := testTask(0)
	task.Resume = &resume
	got := mustRun(t, newTestAgent(t, newFakeEngine(mixedScript), constantRunner("other"), testConfig()), task, nil)
	if !slices.Equal(got.Turns[0].Calls, calls) {
		t.Errorf("outcomes %+v became %+v", calls, got.Turns[0].Calls)
	}
}

func TestResumingDoesNotChangeWhatItResumesFrom(t *testing.T) {
	_, full := recorded(t, 0)
	resume, err := Rebuild(testTask(0), decodeJournal(t, full[:1]))
	if err != nil {
		t.Fatal(err)
	}
	before := mustCanonical(t, resume)
	task := testTask(0)
	task.Resume = &resume
	a := newTestAgent(t, newFakeEngine(mixedScript), &fakeRunner{}, testConfig())
	first := mustCanonical(t, mustRun(t, a, task, nil))
	if mustCanonical(t, mustRun(t, a, task, nil)) != first || mustCanonical(t, resume) != before {
		t.Error("a resumed run changed its starting point")
	}
}

func TestRecordsThatDoNotFollowAreRefused(t *testing.T) {
	_, full := recorded(t, 0)
	records := decodeJournal(t, full)
	for name, bad := range map[string][]TurnRecord{
		"gap":     records[1:],
		"twice":   {records[0], records[0]},
		"foreign": {func() TurnRecord { r := records[0]; r.Key = "1/1/2/3/9"; return r }()},
		"endless": {func() TurnRecord { r := records[0]; r.ToolIDs, r.Stop = nil, ""; return r }()},
	} {
		if _, err := Rebuild(testTask(0), bad); err == nil {
			t.Errorf("%s records were accepted", name)
		}
	}
	other := testTask(1)
	resume, _ := Rebuild(testTask(0), nil)
	other.Resume = &resume
	if _, err := newTestAgent(t, newFakeEngine(mixedScript), &fakeRunner{}, testConfig()).Run(context.Background(), other, nil); err == nil {
		t.Error("a task continued another's trajectory")
	}
}

func TestTrajectoryRecordSurvivesToTheBit(t *testing.T) {
	for sample := range 10 {
		tr, _ := recorded(t, sample)
		tr.LogProbs[tr.Turns[0].Start] = math.SmallestNonzeroFloat32
		tr.LogProbs[tr.Turns[0].Start+1] = float32(math.Copysign(0, -1))
		body, err := tr.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeTrajectory(body)
		if err != nil {
			t.Fatal(err)
		}
		again, err := back.Encode()
		if err != nil || !bytes.Equal(body, again) {
			t.Errorf("sample %d: record changed (%v)\n%s\n%s", sample, err, body, again)
		}
		for i := range tr.LogProbs {
			if math.Float32bits(back.LogProbs[i]) != math.Float32bits(tr.LogProbs[i]) || back.Mask[i] != tr.Mask[i] {
				t.Fatalf("sample %d: token %d changed", sample, i)
			}
		}
	}
}

func TestTimingsAreOutsideTheDigest(t *testing.T) {
	tr, _ := recorded(t, 0)
	before, _ := tr.Digest()
	tr.Timings.Generate++
	tr.Timings.Retries = 99
	if after, _ := tr.Digest(); after != before {
		t.Error("timings changed the digest")
	}
	body, _ := tr.Encode()
	back, err := DecodeTrajectory(body)
	if err != nil || back.Timings != tr.Timings {
		t.Errorf("timings %+v came back as %+v (%v)", tr.Timings, back.Timings, err)
	}
	canonical, _ := tr.Canonical()
	if bytes.Contains(canonical, []byte("_ns")) || !bytes.Contains(body, []byte("\"timings\":{")) {
		t.Error("timings are in the wrong place")
	}
	tr.IDs[tr.Turns[0].Start]++
	if after, _ := tr.Digest(); after == before {
		t.Error("a token is outside the digest")
	}
}

func TestRecordsAreReadStrictly(t *testing.T) {
	tr, journal := recorded(t, 0)
	body, _ := tr.Encode()
	for name, bad := range map[string]string{
		"unknown field":  strings.Replace(string(body), "{", `{"extra":1,`, 1),
		"trailing data":  string(body) + "{}",
		"other format":   strings.Replace(string(body), `"format":1`, `"format":2`, 1),
		"short floats":   strings.Replace(string(body), `"log_probs":"AAAA`, `"log_probs":"`, 1),
		"wide turn":      strings.Replace(string(body), `"start":`, `"start":-`, 1),
		"empty":          "",
		"half a record":  string(body[:len(body)/2]),
		"another record": string(journal[0]),
	} {
		if _, err := DecodeTrajectory([]byte(bad)); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	for name, bad := range map[string]string{
		"unknown field": strings.Replace(string(journal[0]), "{", `{"extra":1,`, 1),
		"trailing data": string(journal[0]) + "1",
		"other format":  strings.Replace(string(journal[0]), `"format":1`, `"format":7`, 1),
		"another":       string(body),
	} {
		if _, err := DecodeTurnRecord([]byte(bad)); err == nil {
			t.Errorf("turn record with %s was accepted", name)
		}
	}
}

func FuzzTrajectoryRecord(f *testing.F) {
	task := testTask(0)
	e := newFakeEngine(turns(callText("print(1)"), answerText("408")))
	a, err := New(e, &fakeRunner{}, testTokenizer(), testConfig())
	if err != nil {
		f.Fatal(err)
	}
	task.Prompt = task.Prompt[:4]
	var journal [][]byte
	tr, err := a.Run(context.Background(), task, func(r TurnRecord) error {
		body, err := r.Encode()
		journal = append(journal, body)
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	body, _ := tr.Encode()
	f.Add(body)
	f.Add(journal[0])
	f.Add([]byte(`{"format":1,"prompt_len":1,"ids":[1],"log_probs":"AAAAAA==","entropy":"AAAAAA==","turns":[{"start":-5,"end":9000000000}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if r, err := DecodeTurnRecord(body); err == nil {
			again, err := r.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := DecodeTurnRecord(again); err != nil {
				t.Fatalf("record no longer decodes: %v", err)
			}
		}
		tr, err := DecodeTrajectory(body)
		if err != nil {
			return
		}
		canonical, err := tr.Canonical()
		if err != nil {
			t.Fatalf("decoded but not encoded: %v", err)
		}
		back, err := DecodeTrajectory(canonical)
		if err != nil {
			t.Fatalf("canonical bytes do not decode: %v", err)
		}
		again, err := back.Canonical()
		if err != nil || !bytes.Equal(canonical, again) {
			t.Fatalf("canonical bytes changed (%v):\n%s\n%s", err, canonical, again)
		}
		if !json.Valid(canonical) {
			t.Fatal("canonical bytes are not JSON")
		}
	})
}
