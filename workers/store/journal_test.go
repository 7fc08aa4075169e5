package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func record(i int) Record { return Record{fmt.Sprint(i), json.RawMessage(fmt.Sprint(i))} }

func TestARecordIsDurableWithoutAnybodyAskingForIt(t *testing.T) {
	s := NewMemory()
	j, _, err := OpenJournal(t.Context(), s, "j")
	must(t, err)
	must(t, j.Append(record(1)))
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		got, err := ReadJournal(t.Context(), s, "j")
		must(t, err)
		if len(got) == 1 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the record is not in the store after a minute")
		}
	}
}

func TestFlushMakesEverythingAppendedBeforeItDurableInOrder(t *testing.T) {
	s := NewMemory()
	j, _, err := OpenJournal(t.Context(), s, "j")
	must(t, err)
	for i := range 50 {
		must(t, j.Append(record(i)))
		if i%7 == 0 {
			must(t, j.Flush(t.Context()))
			got, err := ReadJournal(t.Context(), s, "j")
			must(t, err)
			if len(got) != i+1 {
				t.Fatalf("%d records durable after flush, want %d", len(got), i+1)
			}
		}
	}
	must(t, j.Close(t.Context()))
	got, err := ReadJournal(t.Context(), s, "j")
	must(t, err)
	for i, r := range got {
		if r.Key != fmt.Sprint(i) {
			t.Fatalf("record %d has key %s", i, r.Key)
		}
	}
	if len(got) != 50 {
		t.Fatalf("%d records, want 50", len(got))
	}
}

func TestConcurrentAppendsAndFlushesLoseNothing(t *testing.T) {
	s := NewMemory()
	j, _, err := OpenJournal(t.Context(), s, "j")
	must(t, err)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 100 {
				if err := j.Append(record(w*100 + i)); err != nil {
					t.Error(err)
				}
				if i%10 == 0 {
					if err := j.Flush(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	must(t, j.Close(t.Context()))
	got, err := ReadJournal(t.Context(), s, "j")
	must(t, err)
	seen := map[string]bool{}
	for _, r := range got {
		seen[r.Key] = true
	}
	if len(got) != 800 || len(seen) != 800 {
		t.Fatalf("%d records, %d distinct, want 800", len(got), len(seen))
	}
}

func TestRecordsComeBackAsTheyWereWritten(t *testing.T) {
	s := NewMemory()
	j, _, err := OpenJournal(t.Context(), s, "j")
	must(t, err)
	const value = `{"f":0.10000000149011612,"big":18446744073709551615,"t":"<b>&\u2028\n"}`
	must(t, j.Append(Record{"k<&>", json.RawMessage(value)}))
	must(t, j.Close(t.Context()))
	got, err := ReadJournal(t.Context(), s, "j")
	must(t, err)
	if got[0].Key != "k<&>" || string(got[0].Value) != value {
		t.Fatalf("read %q %s, wrote %s", got[0].Key, got[0].Value, value)
	}
}

func TestAnOutageKeepsRecordsForTheNextFlush(t *testing.T) {
	s := &outage{Store: NewMemory(), down: true}
	j, _, err := OpenJournal(t.Context(), s, "j")
	must(t, err)
	must(t, j.Append(record(0)))
	wantErr(t, j.Flush(t.Context()), errDown)
	must(t, j.Append(record(1)))
	s.set(false)
	must(t, j.Flush(t.Context()))
	got, err := ReadJournal(t.Context(), s, "j")
	must(t, err)
	if len(got) != 2 || got[0].Key != "0" || got[1].Key != "1" {
		t.Fatalf("journal holds %v, want records 0 and 1", got)
	}
}

var errDown = errors.New("store is down")

type outage struct {
	Store
	mu   sync.Mutex
	down bool
}

func (o *outage) set(down bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.down = down
}

func (o *outage) Put(ctx context.Context, key string, body []byte, opt PutOptions) (ETag, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.down {
		return "", errDown
	}
	return o.Store.Put(ctx, key, body, opt)
}

func TestAJournalWithAGapOrATornSegmentIsRefused(t *testing.T) {
	for name, objects := range map[string]map[string]string{
		"gap":         {"j/000000": "{\"key\":\"a\",\"value\":1}\n", "j/000002": "{\"key\":\"b\",\"value\":1}\n"},
		"no first":    {"j/000001": "{\"key\":\"a\",\"value\":1}\n"},
		"torn":        {"j/000000": "{\"key\":\"a\",\"value\":1}"},
		"not a line":  {"j/000000": "hello\n"},
		"wrong child": {"j/000000/x": "{}\n"},
	} {
		s := NewMemory()
		for k, v := range objects {
			_, err := s.Put(t.Context(), k, []byte(v), PutOptions{})
			must(t, err)
		}
		if _, err := ReadJournal(t.Context(), s, "j"); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "j/") {
			t.Errorf("%s: error is %v, want ErrCorrupt naming the segment", name, err)
		}
	}
}

func TestAValueThatIsNotJSONIsRefusedWhenAppended(t *testing.T) {
	j, _, err := OpenJournal(t.Context(), NewMemory(), "j")
	must(t, err)
	if err := j.Append(Record{"k", json.RawMessage("NaN")}); err == nil {
		t.Fatal("NaN was accepted")
	}
	must(t, j.Close(t.Context()))
	if err := j.Append(record(0)); err == nil {
		t.Fatal("a closed journal took a record")
	}
}
