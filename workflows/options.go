package workflows

import (
	"fmt"
	"time"

	"github.com/restar-rl/restar/activities"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Nil receivers: they only name the methods.
var (
	curation *activities.Curation
	trainer  *activities.Trainer
	rollouts *activities.Rollouts
	selector *activities.Selection
	scoring  *activities.Scoring
)

// retries repeat an activity for as long as the failure is one of infrastructure. The first retry comes at once, since a
// supervisor fails the activities of a dead worker explicitly; the cap keeps a lasting outage from hammering the store.
var retries = temporal.RetryPolicy{
	InitialInterval:        200 * time.Millisecond,
	BackoffCoefficient:     2,
	MaximumInterval:        30 * time.Second,
	NonRetryableErrorTypes: []string{activities.ErrInput, activities.ErrNumerics},
}

// on returns the options of activities on one task queue. longest bounds one attempt; a lost host is noticed by heartbeat.
func on(ctx workflow.Context, queue string, longest time.Duration, summary string, args ...any) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:             queue,
		StartToCloseTimeout:   longest,
		HeartbeatTimeout:      20 * time.Second, // three missed beats of the 5 s ticker and room for a busy machine
		RetryPolicy:           &retries,
		DisableEagerExecution: true, // work goes to whoever has room, not to whoever decided it
		Summary:               fmt.Sprintf(summary, args...),
	})
}

// Longest attempts. They only bound a hung process: real work ends far sooner or heartbeats its progress.
const (
	shortWork = 30 * time.Minute
	longWork  = 12 * time.Hour
)

// as returns the options of a child workflow by id.
func as(ctx workflow.Context, id, summary string, args ...any) workflow.Context {
	return workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            id,
		TaskQueue:             activities.QueueOrchestrator,
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE, // a run started again finds its work in the store
		StaticSummary:         fmt.Sprintf(summary, args...),
	})
}
