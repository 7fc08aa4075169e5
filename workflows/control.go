package workflows

import (
	"errors"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// signalControl carries a person's wish from the run to the workflow at work below it.
const signalControl = "control"

// Control is what a person has asked of a run. It travels into children with their input and by signal afterwards.
type Control struct {
	Paused  bool `json:"paused"`
	Stopped bool `json:"stopped"`
}

// listen keeps c up to date with signals until the workflow ends, and passes each on.
func (c *Control) listen(ctx workflow.Context, passOn func(workflow.Context)) {
	ch := workflow.GetSignalChannel(ctx, signalControl)
	workflow.Go(ctx, func(ctx workflow.Context) {
		for ch.Receive(ctx, c) {
			passOn(ctx)
		}
	})
}

// drain reads the signals that arrived since the last decision, so that continue-as-new loses none.
func (c *Control) drain(ctx workflow.Context) {
	ch := workflow.GetSignalChannel(ctx, signalControl)
	for ch.ReceiveAsync(c) {
	}
}

// gate waits while the run is paused and reports whether it is to stop.
func (c *Control) gate(ctx workflow.Context) (stop bool, err error) {
	err = workflow.Await(ctx, func() bool { return !c.Paused || c.Stopped })
	return c.Stopped, err
}

// tell passes control on to a child by id. A child that has just ended is no error: the next one gets it as input.
func (c *Control) tell(ctx workflow.Context, child string) error {
	if child == "" {
		return nil
	}
	err := workflow.SignalExternalWorkflow(ctx, child, "", signalControl, *c).Get(ctx, nil)
	var gone *serviceerror.NotFound
	var unknown *temporal.UnknownExternalWorkflowExecutionError
	if errors.As(err, &gone) || errors.As(err, &unknown) {
		return nil
	}
	return err
}
