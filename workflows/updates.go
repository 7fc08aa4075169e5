package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"
)

// listen answers progress and takes a person's wishes: pause, resume, stop. A wish that makes no sense is refused before
// it is recorded.
func (t *trainingRun) listen(ctx workflow.Context) error {
	if err := answer(ctx, &t.p); err != nil {
		return err
	}
	for _, u := range []struct {
		name, does string
		valid      func() error
		set        func()
	}{
		{UpdatePause, "wait after the step in progress", t.mayPause, func() { t.control.Paused = true }},
		{UpdateResume, "go on after a pause", t.mayResume, func() { t.control.Paused = false }},
		{UpdateStop, "end after the step in progress and keep everything", t.mayStop, func() { t.control.Stopped = true }},
	} {
		handle := func(ctx workflow.Context) (Control, error) {
			u.set()
			t.describe(ctx)
			return t.control, t.control.tell(ctx, t.heeds)
		}
		opts := workflow.UpdateHandlerOptions{Validator: u.valid, Description: u.does}
		if err := workflow.SetUpdateHandlerWithOptions(ctx, u.name, handle, opts); err != nil {
			return err
		}
	}
	return nil
}

func (t *trainingRun) mayPause() error {
	if t.control.Paused {
		return fmt.Errorf("run %s is paused already", t.Run)
	}
	return t.mayStop()
}

func (t *trainingRun) mayResume() error {
	if !t.control.Paused {
		return fmt.Errorf("run %s is not paused", t.Run)
	}
	return nil
}

func (t *trainingRun) mayStop() error {
	if t.control.Stopped {
		return fmt.Errorf("run %s is stopping already", t.Run)
	}
	return nil
}
