package activities

import (
	"bytes"
	"testing"

	"github.com/restar-rl/restar/workers/agent"
	"github.com/restar-rl/restar/workers/store"
	"github.com/restar-rl/restar/workers/train"
)

// FuzzJournalRecord wants every record of a slice's journal to be a turn or a trajectory, or an error.
func FuzzJournalRecord(f *testing.F) {
	turn := agent.TurnRecord{Key: "1/0/0/0/3", IDs: []int32{5, 6}, LogProbs: []float32{-1, -2}, Entropy: []float32{1, 2}, Finish: "stop", Version: "v", Stop: agent.Answered}
	body, err := turn.Encode()
	if err != nil {
		f.Fatal(err)
	}
	task := agent.Task{Prompt: []int32{1}}
	task.Address.Purpose, task.Address.Sample = 1, 3
	t, err := agent.Rebuild(task, []agent.TurnRecord{turn})
	if err != nil {
		f.Fatal(err)
	}
	final, err := t.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add("turn/3", body)
	f.Add("final/3", final)
	f.Add("final/3", body)
	f.Add("turn/-1", body)
	f.Add("turn/99999999999999999999", body)
	f.Add("", []byte("{}"))
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		logs, err := readLogs([]store.Record{{Key: key, Value: value}})
		if err != nil {
			return
		}
		if len(logs.turns)+len(logs.final) != 1 {
			t.Fatalf("record %q was read as %d turns and %d trajectories", key, len(logs.turns), len(logs.final))
		}
		for sample, tr := range logs.final {
			if got := countOne(&tr); got.Samples != 1 || got.Tokens < 0 {
				t.Fatalf("sample %d counts %+v", sample, got)
			}
		}
	})
}

// FuzzStoredBatch wants every object under a batch's key to be a batch that is written back to the same content, or an error.
func FuzzStoredBatch(f *testing.F) {
	raw, err := batch{Stage: "one", Step: 2, Groups: 3, Batch: toyBatch(0)}.encode()
	if err != nil {
		f.Fatal(err)
	}
	empty, err := train.EncodeBatch(train.Batch{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add(append([]byte("{}\n"), empty...))
	f.Add(append([]byte("null\n"), empty...))
	f.Add(append([]byte(`{"stage":"x","more":1}`+"\n"), empty...))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := decodeBatch(raw)
		if err != nil {
			return
		}
		again, err := b.encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := decodeBatch(again)
		if err != nil {
			t.Fatalf("written again it is refused: %v", err)
		}
		twice, err := back.encode()
		if err != nil || !bytes.Equal(twice, again) {
			t.Fatalf("written twice it differs (%v)", err)
		}
	})
}
