package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

const prefix = "runs/r/s1/checkpoints/"

func blobs(step int64) []Blob {
	return []Blob{{"weights", fmt.Appendf(nil, "weights of %d", step)}, {"adam.m", fmt.Appendf(nil, "m of %d", step)}}
}

func write(t *testing.T, s Store, steps ...int64) {
	t.Helper()
	for _, step := range steps {
		_, _, err := WriteCheckpoint(t.Context(), s, prefix, step, blobs(step), nil)
		must(t, err)
	}
}

func steps(t *testing.T, s Store) []int64 {
	t.Helper()
	all, err := Checkpoints(t.Context(), s, prefix)
	must(t, err)
	var out []int64
	for _, c := range all {
		out = append(out, c.Step)
	}
	return out
}

// errCrash stands for the death of the writer.
var errCrash = errors.New("writer died")

// crashing refuses every put after the first n.
type crashing struct {
	Store
	n int
}

func (c *crashing) Put(ctx context.Context, key string, body []byte, opt PutOptions) (ETag, error) {
	if c.n--; c.n < 0 {
		return "", errCrash
	}
	return c.Store.Put(ctx, key, body, opt)
}

func TestAPartialCheckpointIsIgnoredAndCanBeWrittenAgain(t *testing.T) {
	for puts := range 3 { // two blobs, then the manifest
		s := NewMemory()
		write(t, s, 1)
		_, _, err := WriteCheckpoint(t.Context(), &crashing{s, puts}, prefix, 2, blobs(2), nil)
		wantErr(t, err, errCrash)
		c, ok, err := Latest(t.Context(), s, prefix)
		must(t, err)
		if !ok || c.Step != 1 {
			t.Fatalf("after a death at put %d the newest checkpoint is %d (%v), want 1", puts, c.Step, ok)
		}
		_, _, err = ReadCheckpoint(t.Context(), s, prefix, 2)
		wantErr(t, err, ErrNotFound)
		write(t, s, 2)
		if got := steps(t, s); !reflect.DeepEqual(got, []int64{1, 2}) {
			t.Fatalf("checkpoints %v, want 1 and 2", got)
		}
	}
}

func TestACheckpointListsEveryObjectAndItsHash(t *testing.T) {
	s := NewMemory()
	write(t, s, 7)
	body, _, err := s.Get(t.Context(), prefix+"00000007/manifest.json")
	must(t, err)
	var m struct {
		Objects []struct{ Name, Key, SHA256 string }
	}
	must(t, json.Unmarshal(body, &m))
	// sha256sum of "weights of 7" and "m of 7".
	want := map[string]string{
		"weights": "878d79caae3dbb033e017d200fb40687df48d35d8fb2f2f1290a553264b85133",
		"adam.m":  "ba1bc17ab9b2b635b7774e059fe1ce0d4d26bca61b63812626ab1ca8ed7401c5",
	}
	for _, o := range m.Objects {
		if want[o.Name] != o.SHA256 || !strings.HasPrefix(o.Key, "data/") || !strings.HasSuffix(o.Key, ".safetensors") {
			t.Fatalf("manifest lists %+v", o)
		}
		_, _, err := s.Get(t.Context(), prefix+"00000007/"+o.Key)
		must(t, err)
	}
	if len(m.Objects) != 2 {
		t.Fatalf("manifest lists %d objects, want 2", len(m.Objects))
	}
}

// damage changes one object of a checkpoint.
func damage(t *testing.T, s Store, step int64, change func(key string)) {
	t.Helper()
	entries, err := s.List(t.Context(), fmt.Sprintf("%s%08d/data/weights", prefix, step))
	must(t, err)
	if len(entries) != 1 {
		t.Fatalf("%d objects for weights, want 1", len(entries))
	}
	change(entries[0].Key)
}

func TestADamagedCheckpointIsRefused(t *testing.T) {
	for name, change := range map[string]func(*testing.T, Store, string){
		"missing": func(t *testing.T, s Store, key string) { must(t, s.Delete(t.Context(), key)) },
		"flipped": func(t *testing.T, s Store, key string) {
			_, err := s.Put(t.Context(), key, []byte("weights of 3"), PutOptions{})
			must(t, err)
		},
		"short": func(t *testing.T, s Store, key string) {
			_, err := s.Put(t.Context(), key, []byte("weights"), PutOptions{})
			must(t, err)
		},
	} {
		s := NewMemory()
		write(t, s, 1, 2)
		damage(t, s, 2, func(key string) { change(t, s, key) })
		if _, _, err := ReadCheckpoint(t.Context(), s, prefix, 2); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: error is %v, want ErrCorrupt", name, err)
		}
		c, got, _, ok, err := LoadLatest(t.Context(), s, prefix)
		if err != nil || !ok || c.Step != 1 || !reflect.DeepEqual(got, blobs(1)) {
			t.Errorf("%s: the newest good checkpoint is %d (%v, %v), want 1", name, c.Step, ok, err)
		}
	}
}

func TestPruningKeepsTheNewestAndNeverTheLastGoodOne(t *testing.T) {
	s := NewMemory()
	write(t, s, 1, 2, 3, 4, 5)
	_, err := PruneCheckpoints(t.Context(), s, prefix, 2)
	must(t, err)
	if got := steps(t, s); !reflect.DeepEqual(got, []int64{4, 5}) {
		t.Fatalf("checkpoints %v, want 4 and 5", got)
	}
	left, err := s.List(t.Context(), prefix+"00000001/")
	must(t, err)
	if len(left) != 0 {
		t.Fatalf("a pruned checkpoint left %v", left)
	}
	write(t, s, 6, 7)
	for _, step := range []int64{6, 7} {
		damage(t, s, step, func(key string) {
			_, err := s.Put(t.Context(), key, fmt.Appendf(nil, "Weights of %d", step), PutOptions{})
			must(t, err)
		})
	}
	_, err = PruneCheckpoints(t.Context(), s, prefix, 2)
	must(t, err)
	if got := steps(t, s); !reflect.DeepEqual(got, []int64{5, 6, 7}) {
		t.Fatalf("checkpoints %v, want the damaged 6 and 7 and the last good one, 5", got)
	}
}

func TestWhatAnInterruptedDeletionLeftIsDeleted(t *testing.T) {
	s := NewMemory()
	write(t, s, 1, 2, 3, 4)
	for _, step := range []int64{1, 4} { // 1 was being deleted, 4 may be in the course of being written
		must(t, s.Delete(t.Context(), manifestKey(checkpointFolder(prefix, step))))
	}
	_, err := PruneCheckpoints(t.Context(), s, prefix, 2)
	must(t, err)
	for step, want := range map[int64]int{1: 0, 2: 3, 3: 3, 4: 2} {
		left, err := s.List(t.Context(), checkpointFolder(prefix, step)+"/")
		must(t, err)
		if len(left) != want {
			t.Errorf("checkpoint %d has %d objects, want %d", step, len(left), want)
		}
	}
	for i := range 3 {
		_, _, err := PublishWeights(t.Context(), s, "r", "s1", fmt.Sprintf("s1-%06d", i), blobs(int64(i)), nil)
		must(t, err)
	}
	must(t, s.Delete(t.Context(), manifestKey(weightsFolder("r", "s1", "s1-000000"))))
	_, err = PruneWeights(t.Context(), s, "r", "s1", nil)
	must(t, err)
	left, err := s.List(t.Context(), WeightsPrefix("r", "s1"))
	must(t, err)
	if len(left) != 6 {
		t.Errorf("%d objects of weights are left, want the 3 of each of two versions", len(left))
	}
}

func TestPublishedWeightsKeepTheLastTwoVersions(t *testing.T) {
	s := NewMemory()
	for i := range 4 {
		_, won, err := PublishWeights(t.Context(), s, "r", "s1", fmt.Sprintf("s1-%06d", i), blobs(int64(i)), map[string]string{"digest": "d"})
		must(t, err)
		if !won {
			t.Fatalf("version %d was not written", i)
		}
		_, err = PruneWeights(t.Context(), s, "r", "s1", nil)
		must(t, err)
	}
	for i, want := range []error{ErrNotFound, ErrNotFound, nil, nil} {
		m, got, err := ReadWeights(t.Context(), s, "r", "s1", fmt.Sprintf("s1-%06d", i))
		if !errors.Is(err, want) {
			t.Fatalf("version %d: error %v, want %v", i, err, want)
		}
		if want == nil && (m.Meta["digest"] != "d" || !reflect.DeepEqual(got, blobs(int64(i)))) {
			t.Fatalf("version %d holds %q %v", i, got, m.Meta)
		}
	}
	_, won, err := PublishWeights(t.Context(), s, "r", "s1", "s1-000003", blobs(99), nil)
	must(t, err)
	_, got, err := ReadWeights(t.Context(), s, "r", "s1", "s1-000003")
	must(t, err)
	if won || !reflect.DeepEqual(got, blobs(3)) {
		t.Fatalf("publishing a version again replaced it")
	}
}
