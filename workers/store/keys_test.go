package store

import (
	"slices"
	"strings"
	"testing"
)

// everyKey builds a key of every sort from hostile names and ordinary ones.
func everyKey() []string {
	names := []string{"a", "b", "audit", "recipe.json", "", ".", "..", "a/b", "%", "%61udit", "manifest.json", "data", "checkpoints", "ü"}
	var keys []string
	for _, run := range names {
		keys = append(keys, RecipeKey(run), AuditPrefix(run)+"00000000000000000001-x")
		for _, stage := range names {
			keys = append(keys,
				BatchKey(run, stage, 0, 0), BatchKey(run, stage, 0, 2), BatchKey(run, stage, 1234567, 0), MetricsKey(run, stage, 3, 0), MetricsKey(run, stage, 3, 1), TimingsKey(run, stage, 3, 0),
				manifestKey(checkpointFolder(CheckpointsPrefix(run, stage), 3)),
				manifestKey(weightsFolder(run, stage, "s1-000003")))
			for _, name := range names {
				keys = append(keys, ArtifactKey(run, stage, name),
					manifestKey(weightsFolder(run, stage, name)),
					segmentKey(JournalPrefix(run, stage, Evals, name, 1, 0), 0),
					segmentKey(JournalPrefix(run, stage, Filter, name, 1, 0), 0))
			}
			keys = append(keys, segmentKey(JournalPrefix(run, stage, Rollouts, IterationGroup(2), 7, 1), 0))
		}
		for _, digest := range names {
			keys = append(keys, DatasetKey(run, digest, "train.jsonl"), DatasetKey(run, digest, ".."))
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func TestNoKeyIsAFolderOfAnotherKey(t *testing.T) {
	keys := everyKey()
	held := map[string]bool{}
	for _, k := range keys {
		held[k] = true
	}
	for _, k := range keys {
		for i := range len(k) {
			if k[i] == '/' && held[k[:i]] {
				t.Fatalf("key %s is a folder of key %s", k[:i], k)
			}
		}
	}
}

func TestNoKeyLeavesItsPlace(t *testing.T) {
	for _, k := range everyKey() {
		if !strings.HasPrefix(k, "runs/") && !strings.HasPrefix(k, "datasets/") {
			t.Fatalf("key %s is outside runs/ and datasets/", k)
		}
		for part := range strings.SplitSeq(k, "/") {
			if part == "" || part == "." || part == ".." || strings.HasPrefix(part, ".") {
				t.Fatalf("key %s has the segment %q", k, part)
			}
		}
	}
}

func TestDifferentNamesNeverShareAKey(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"", "%", ".", "%2e", "a", "A", "a/b", "a%2fb", "a b", "a%20b", "..", "a.", ".a"} {
		k := segment(name)
		if other, taken := seen[k]; taken {
			t.Fatalf("names %q and %q share the segment %q", name, other, k)
		}
		seen[k] = name
	}
}

func TestKeysFollowTheStoreLayout(t *testing.T) {
	for got, want := range map[string]string{
		RecipeKey("r1"): "runs/r1/recipe.json",
		JournalPrefix("r1", "s2", Rollouts, IterationGroup(4), 17, 1): "runs/r1/s2/rollouts/000004/000017/000001",
		JournalPrefix("r1", "sft", Evals, "before-rl", 3, 0):          "runs/r1/sft/evals/before-rl/000003/000000",
		BatchKey("r1", "s2", 4, 0):                                    "runs/r1/s2/batches/000004",
		MetricsKey("r1", "s2", 4, 15):                                 "runs/r1/s2/metrics/000004-015.json",
		TimingsKey("r1", "s2", 4, 0):                                  "runs/r1/s2/timings/000004.json",
		checkpointFolder(CheckpointsPrefix("r1", "s2"), 12):           "runs/r1/s2/checkpoints/00000012",
		weightsFolder("r1", "s2", "s2-000012"):                        "runs/r1/s2/weights/s2-000012",
		AuditPrefix("r1"):                                             "runs/r1/audit/",
		DatasetKey("train", "ab12", "problems.jsonl"):                 "datasets/train/ab12/problems.jsonl",
	} {
		if got != want {
			t.Errorf("key %s, want %s", got, want)
		}
	}
}
