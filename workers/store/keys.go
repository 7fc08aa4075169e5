package store

import (
	"fmt"
	"strings"
)

// Every key of the store is built here. Names (of runs, stages, evaluations,
// data sets, versions) become one path segment each, escaped so that two names
// never meet and none can leave its place. Numbers are padded so that a listing
// is in numeric order.

// Kind tells what a journal of trajectories is for.
type Kind string

// The kinds of journals, one folder each.
const (
	Rollouts Kind = "rollouts" // training rollouts, grouped by iteration
	Evals    Kind = "evals"    // evaluations, grouped by name
	Filter   Kind = "filter"   // difficulty filtering, grouped by name
)

// RunPrefix begins every key of a run.
func RunPrefix(run string) string { return "runs/" + segment(run) + "/" }

// RecipeKey holds what was asked, resolved, with its numerics id.
func RecipeKey(run string) string { return RunPrefix(run) + "recipe.json" }

// StagePrefix begins every key of a stage of a run.
func StagePrefix(run, stage string) string { return RunPrefix(run) + stageSegment(stage) + "/" }

// IterationGroup is the journal group of a rollout round.
func IterationGroup(iteration int) string { return number(iteration) }

// JournalGroupPrefix begins the journals of one rollout round, evaluation or filter.
func JournalGroupPrefix(run, stage string, kind Kind, group string) string {
	return StagePrefix(run, stage) + string(kind) + "/" + segment(group) + "/"
}

// JournalPrefix is the journal of one slice of one prompt: group is
// IterationGroup(i) for rollouts and a name otherwise.
func JournalPrefix(run, stage string, kind Kind, group string, ordinal, slice int) string {
	return JournalGroupPrefix(run, stage, kind, group) + number(ordinal) + "/" + number(slice)
}

// BatchKey holds the chosen samples, advantages and digests of one of an iteration's updates.
func BatchKey(run, stage string, iteration, update int) string {
	return StagePrefix(run, stage) + "batches/" + updateName(iteration, update)
}

// updateName is an iteration's number, and from its second optimizer step on that step's within it.
func updateName(iteration, update int) string {
	if update == 0 {
		return number(iteration)
	}
	return fmt.Sprintf("%s-%03d", number(iteration), update)
}

// BatchesPrefix begins the batches of a stage.
func BatchesPrefix(run, stage string) string { return StagePrefix(run, stage) + "batches/" }

// WeightsPrefix begins the published weights of a stage.
func WeightsPrefix(run, stage string) string { return StagePrefix(run, stage) + "weights/" }

// CheckpointsPrefix begins the checkpoints of a stage.
func CheckpointsPrefix(run, stage string) string { return StagePrefix(run, stage) + "checkpoints/" }

// MetricsKey holds the deterministic metrics of one of an iteration's updates.
func MetricsKey(run, stage string, iteration, update int) string {
	return StagePrefix(run, stage) + "metrics/" + updateName(iteration, update) + ".json"
}

// TimingsKey holds everything about one of an iteration's updates that is not deterministic.
func TimingsKey(run, stage string, iteration, update int) string {
	return StagePrefix(run, stage) + "timings/" + updateName(iteration, update) + ".json"
}

// ArtifactKey holds a named result of a stage: a report, a table, a tokenizer.
func ArtifactKey(run, stage, name string) string {
	return ArtifactsPrefix(run, stage) + segment(name)
}

// ArtifactsPrefix begins the named results of a stage.
func ArtifactsPrefix(run, stage string) string { return StagePrefix(run, stage) + "artifacts/" }

// AuditPrefix begins the audit segments of a run.
func AuditPrefix(run string) string { return RunPrefix(run) + auditSegment + "/" }

// DatasetPrefix begins the files of a curated set.
func DatasetPrefix(name, digest string) string {
	return "datasets/" + segment(name) + "/" + segment(digest) + "/"
}

// DatasetKey holds one file of a curated set.
func DatasetKey(name, digest, file string) string {
	return DatasetPrefix(name, digest) + segment(file)
}

const auditSegment = "audit"

// number pads to 6 digits: a listing stays in numeric order for a million
// iterations, ordinals or segments; larger numbers stay unique.
func number(n int) string { return fmt.Sprintf("%06d", n) }

// stageSegment keeps a stage from taking the name of a run-level key.
func stageSegment(stage string) string {
	if stage == auditSegment || stage == "recipe.json" {
		return fmt.Sprintf("%%%02x%s", stage[0], stage[1:])
	}
	return segment(stage)
}

// segment escapes a name into one non-empty path segment: letters, digits, '-',
// '_' and inner '.' stay, everything else becomes %xx. It is one-to-one.
func segment(name string) string {
	if name == "" {
		return "%"
	}
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; plain(c) || c == '.' && i > 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	return b.String()
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}
