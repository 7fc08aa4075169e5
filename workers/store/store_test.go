package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestMemoryKeepsTheContract(t *testing.T) {
	conform(t, NewMemory())
}

func TestS3KeepsTheContract(t *testing.T) {
	conform(t, newDevserver(t).open())
}

// A folder that keeps metadata in files, as where the file system has no
// extended attributes, is recognized by its meta-s3.
func TestS3OnAFileSystemWithoutAttributesKeepsTheContract(t *testing.T) {
	d := newDevserver(t, "meta-s3")
	conform(t, d.open())
	inFiles, err := filepath.Glob(filepath.Join(d.dir, "meta-s3", "restar", "contract", "first", "*"))
	must(t, err)
	if len(inFiles) == 0 {
		t.Fatal("no metadata files: the suite ran with attributes")
	}
}

// conform is the one suite that every Store must pass.
func conform(t *testing.T, s Store) {
	for _, c := range []struct {
		promise string
		check   func(*testing.T, context.Context, Store)
	}{
		{"what was put is got to the byte", putThenGet},
		{"a missing object is ErrNotFound", missing},
		{"IfNoneMatch lets the first write win", firstWins},
		{"IfMatch writes only over the version that was read", compareAndSwap},
		{"of many racing writers one wins", race},
		{"a listing is complete, ordered and sized", listing},
		{"deleting nothing is no error", deletion},
		{"a call ends with its context", cancelled},
		{"two preconditions are refused", contradiction},
		{"PutOnce hands the loser the winner's content", putOnce},
		{"PutSame refuses another result", putSame},
		{"a journal's loser loads the winner and goes on", journalLoser},
		{"a checkpoint is written once", checkpointOnce},
	} {
		t.Run(c.promise, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			c.check(t, ctx, s)
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error is %v, want %v", err, want)
	}
}

func putThenGet(t *testing.T, ctx context.Context, s Store) {
	for i, body := range [][]byte{{}, []byte("x"), bytes.Repeat([]byte{0, 255, '\n'}, 100_000)} {
		key := fmt.Sprintf("contract/body/%d", i)
		etag, err := s.Put(ctx, key, body, PutOptions{})
		must(t, err)
		got, gotTag, err := s.Get(ctx, key)
		must(t, err)
		if !bytes.Equal(got, body) || gotTag != etag || etag == "" {
			t.Fatalf("got %d bytes, version %q; put %d bytes, version %q", len(got), gotTag, len(body), etag)
		}
	}
}

func missing(t *testing.T, ctx context.Context, s Store) {
	_, _, err := s.Get(ctx, "contract/none/such")
	wantErr(t, err, ErrNotFound)
}

func firstWins(t *testing.T, ctx context.Context, s Store) {
	const key = "contract/first"
	_, err := s.Put(ctx, key, []byte("one"), PutOptions{IfNoneMatch: true})
	must(t, err)
	_, err = s.Put(ctx, key, []byte("two"), PutOptions{IfNoneMatch: true})
	wantErr(t, err, ErrExists)
	got, _, err := s.Get(ctx, key)
	must(t, err)
	if string(got) != "one" {
		t.Fatalf("content is %q, want the first write", got)
	}
}

func compareAndSwap(t *testing.T, ctx context.Context, s Store) {
	const key = "contract/swap"
	_, err := s.Put(ctx, key, []byte("a"), PutOptions{IfMatch: `"0123456789abcdef0123456789abcdef"`})
	wantErr(t, err, ErrChanged)
	first, err := s.Put(ctx, key, []byte("a"), PutOptions{})
	must(t, err)
	second, err := s.Put(ctx, key, []byte("b"), PutOptions{IfMatch: first})
	must(t, err)
	_, err = s.Put(ctx, key, []byte("c"), PutOptions{IfMatch: first})
	wantErr(t, err, ErrChanged)
	got, etag, err := s.Get(ctx, key)
	must(t, err)
	if string(got) != "b" || etag != second {
		t.Fatalf("content is %q version %q, want \"b\" version %q", got, etag, second)
	}
}

func race(t *testing.T, ctx context.Context, s Store) {
	var wins atomic.Int64
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			_, err := s.Put(ctx, "contract/race", fmt.Appendf(nil, "writer %d", i), PutOptions{IfNoneMatch: true})
			if err == nil {
				wins.Add(1)
			} else if !errors.Is(err, ErrExists) {
				t.Errorf("writer %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if wins.Load() != 1 {
		t.Fatalf("%d of 16 racing writers won, want 1", wins.Load())
	}
}

func listing(t *testing.T, ctx context.Context, s Store) {
	// More than one page of S3 (1000), and neighbours that share a prefix.
	const n = 1100
	var wg sync.WaitGroup
	work := make(chan int)
	for range 16 {
		wg.Go(func() {
			for i := range work {
				if _, err := s.Put(ctx, fmt.Sprintf("contract/list/%06d", i), bytes.Repeat([]byte("x"), i%7), PutOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	wg.Wait()
	_, err := s.Put(ctx, "contract/listed", nil, PutOptions{})
	must(t, err)
	entries, err := s.List(ctx, "contract/list/")
	must(t, err)
	if len(entries) != n {
		t.Fatalf("%d entries, want %d", len(entries), n)
	}
	for i, e := range entries {
		if e.Key != fmt.Sprintf("contract/list/%06d", i) || e.Size != int64(i%7) || e.ETag == "" {
			t.Fatalf("entry %d is %+v", i, e)
		}
	}
	part, err := s.List(ctx, "contract/list/00001")
	must(t, err)
	if len(part) != 10 {
		t.Fatalf("a prefix inside a name lists %d entries, want 10", len(part))
	}
	none, err := s.List(ctx, "contract/unlisted/")
	must(t, err)
	if len(none) != 0 {
		t.Fatalf("an empty folder lists %v", none)
	}
}

func deletion(t *testing.T, ctx context.Context, s Store) {
	_, err := s.Put(ctx, "contract/gone", []byte("x"), PutOptions{})
	must(t, err)
	must(t, s.Delete(ctx, "contract/gone"))
	must(t, s.Delete(ctx, "contract/gone"))
	_, _, err = s.Get(ctx, "contract/gone")
	wantErr(t, err, ErrNotFound)
}

func cancelled(t *testing.T, ctx context.Context, s Store) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	_, err := s.Put(ctx, "contract/late", nil, PutOptions{})
	wantErr(t, err, context.Canceled)
	_, _, err = s.Get(ctx, "contract/late")
	wantErr(t, err, context.Canceled)
	_, err = s.List(ctx, "contract/late")
	wantErr(t, err, context.Canceled)
	wantErr(t, s.Delete(ctx, "contract/late"), context.Canceled)
}

func contradiction(t *testing.T, ctx context.Context, s Store) {
	if _, err := s.Put(ctx, "contract/both", nil, PutOptions{IfNoneMatch: true, IfMatch: "v"}); err == nil {
		t.Fatal("a put with both preconditions was accepted")
	}
}

func putOnce(t *testing.T, ctx context.Context, s Store) {
	won, mine, err := PutOnce(ctx, s, "contract/once", []byte("first"))
	must(t, err)
	lost, theirs, err := PutOnce(ctx, s, "contract/once", []byte("second"))
	must(t, err)
	if string(won) != "first" || !mine || string(lost) != "first" || theirs {
		t.Fatalf("first call: %q %v, second call: %q %v", won, mine, lost, theirs)
	}
}

func putSame(t *testing.T, ctx context.Context, s Store) {
	must(t, PutSame(ctx, s, "contract/same", []byte("1")))
	must(t, PutSame(ctx, s, "contract/same", []byte("1")))
	wantErr(t, PutSame(ctx, s, "contract/same", []byte("2")), ErrCorrupt)
}

func journalLoser(t *testing.T, ctx context.Context, s Store) {
	const prefix = "contract/journal"
	zombie, _, err := OpenJournal(ctx, s, prefix)
	must(t, err)
	winner, _, err := OpenJournal(ctx, s, prefix)
	must(t, err)
	must(t, winner.Append(Record{"turn", []byte(`{"who":"winner"}`)}))
	must(t, winner.Flush(ctx))
	must(t, zombie.Append(Record{"turn", []byte(`{"who":"zombie"}`)}))
	wantErr(t, zombie.Flush(ctx), ErrSuperseded)
	wantErr(t, zombie.Append(Record{"turn", []byte(`1`)}), ErrSuperseded)
	again, records, err := OpenJournal(ctx, s, prefix)
	must(t, err)
	if len(records) != 1 || string(records[0].Value) != `{"who":"winner"}` {
		t.Fatalf("the loser loads %q, want the winner's record", records)
	}
	must(t, again.Append(Record{"turn", []byte(`{"who":"loser, going on"}`)}))
	must(t, again.Close(ctx))
	records, err = ReadJournal(ctx, s, prefix)
	must(t, err)
	if len(records) != 2 || string(records[1].Value) != `{"who":"loser, going on"}` {
		t.Fatalf("journal holds %q", records)
	}
}

func checkpointOnce(t *testing.T, ctx context.Context, s Store) {
	prefix := CheckpointsPrefix("contract", "s1")
	a := []Blob{{"weights", []byte("aaaa")}, {"adam.m", []byte("bb")}}
	b := []Blob{{"weights", []byte("cccc")}, {"adam.m", []byte("dd")}}
	_, won, err := WriteCheckpoint(ctx, s, prefix, 3, a, map[string]string{"numerics": "x"})
	must(t, err)
	c, lost, err := WriteCheckpoint(ctx, s, prefix, 3, b, nil)
	must(t, err)
	if !won || lost || c.Meta["numerics"] != "x" {
		t.Fatalf("first won %v, second won %v, meta %v", won, lost, c.Meta)
	}
	got, blobs, err := ReadCheckpoint(ctx, s, prefix, 3)
	must(t, err)
	same := slices.EqualFunc(blobs, a, func(x, y Blob) bool { return x.Name == y.Name && bytes.Equal(x.Data, y.Data) })
	if !same || got.Step != 3 {
		t.Fatalf("step %d blobs %q, want step 3 %q", got.Step, blobs, a)
	}
}
