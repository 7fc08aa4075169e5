package activities

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/restar-rl/restar/workers/store"
)

// overtaken lets another process write a batch first.
type overtaken struct {
	store.Store
	once sync.Once
	then func()
}

func (o *overtaken) Put(ctx context.Context, key string, body []byte, opt store.PutOptions) (store.ETag, error) {
	if strings.Contains(key, "/batches/") {
		o.once.Do(o.then)
	}
	return o.Store.Put(ctx, key, body, opt)
}

func TestABatchSurvivesItsEncoding(t *testing.T) {
	for _, sequences := range []int{4, 0} {
		in := batch{Stage: "one", Iteration: 3, Step: 4, Version: "one-000003", Groups: 9, AllCorrect: 1, AllWrong: 2, UnknownGroups: 3,
			Degenerate: 1, Samples: 144, Calls: 12, CallErrors: 5, Truncated: 6, Tokens: 1 << 40, Correct: 70, Reward: 70. / 144, Batch: toyBatch(1)}
		in.Batch.Sequences = in.Batch.Sequences[:sequences]
		if sequences == 0 {
			in.Batch.Sequences = nil
		}
		body, err := in.encode()
		must(t, err)
		out, err := decodeBatch(body)
		must(t, err)
		if !reflect.DeepEqual(in, out) {
			t.Fatalf("decoded %+v, want %+v", out, in)
		}
		again, err := out.encode()
		must(t, err)
		if string(again) != string(body) {
			t.Fatal("encoding again gives other bytes")
		}
	}
}

func TestADamagedBatchIsRefused(t *testing.T) {
	body, err := batch{Stage: "one", Step: 1, Batch: toyBatch(0)}.encode()
	must(t, err)
	flipped := append([]byte(nil), body...)
	flipped[len(flipped)-40] ^= 1
	for name, b := range map[string][]byte{
		"no line": body[:10], "no header": body[1:], "cut": body[:len(body)-1], "flipped": flipped, "longer": append(body[:len(body):len(body)], 0),
	} {
		if _, err := decodeBatch(b); err == nil {
			t.Errorf("%s: a damaged batch is read", name)
		}
	}
}
