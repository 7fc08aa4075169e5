package workflows

import "go.temporal.io/sdk/worker"

// Register makes every workflow of restar known to a worker.
func Register(r worker.WorkflowRegistry) {
	for _, w := range []any{TrainingRun, Curate, FineTune, Reinforce, STaR, Rollout, Evaluate} {
		r.RegisterWorkflow(w)
	}
}
