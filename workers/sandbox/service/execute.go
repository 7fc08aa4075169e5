package service

import (
	"context"
	"errors"
	"time"

	"github.com/restar-rl/restar/workers/sandbox"
	"github.com/restar-rl/restar/workers/sandbox/service/wire"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// retryPause is between two runs of a call whose sandbox failed: a zygote that died is found out within it, and the next run
// goes to another one.
const retryPause = 20 * time.Millisecond

// execute runs a ticket's call, again while the sandbox itself fails.
func (d *desk) execute(t *ticket, queue time.Duration) outcome {
	stop := context.AfterFunc(d.life, func() { t.cancel(context.Cause(d.life)) })
	defer stop()
	ctx := t.ctx
	if !t.endBy.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, t.endBy, errDeadline)
		defer cancel()
	}
	ctx, span := d.opt.Tracer.Start(ctx, "sandbox.call", trace.WithAttributes(
		attribute.String("restar.call_id", t.call.ID), attribute.String("restar.rollout_id", t.rollout),
		attribute.String("restar.class", t.class.String()), attribute.Float64("restar.queue_ms", ms(queue))))
	defer span.End()
	began := time.Now()
	o := outcome{queue: queue}
	runner, tries := d.opt.Runner, d.opt.Attempts
	if t.on != nil {
		runner, tries = t.on, 1 // a failure ends the session: nothing is left to try again on
	}
	for o.attempts = 1; ; o.attempts++ {
		var err error
		o.result, err = runner.Run(ctx, t.call)
		o.settle(ctx, err)
		if o.status != wire.InfraError {
			break
		}
		d.opt.Log.Warn("sandbox: the sandbox failed a call", "call", t.call.ID, "attempt", o.attempts, "error", err)
		d.meters.failed.Inc()
		if o.attempts >= tries {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryPause):
		}
	}
	o.queue += o.result.Queue
	o.run = time.Since(began) - o.result.Queue
	span.SetAttributes(attribute.String("restar.status", o.status), attribute.Int("restar.attempts", o.attempts), attribute.Float64("restar.cpu_ms", ms(o.result.CPU)))
	if o.status == wire.InfraError {
		span.SetStatus(codes.Error, o.reason)
	}
	return o
}

// settle types the end of one run.
func (o *outcome) settle(ctx context.Context, err error) {
	o.status, o.reason, o.retry = string(o.result.Status), "", false
	switch {
	case err == nil && known(o.result.Status):
	case err == nil:
		o.status, o.reason, o.retry = wire.InfraError, "the sandbox returned no status", true
	case ctx.Err() != nil:
		cause := context.Cause(ctx)
		o.status, o.reason, o.retry = wire.Cancelled, cause.Error(), again(cause)
	case errors.Is(err, sandbox.ErrSessionEnded):
		o.status, o.reason = wire.Rejected, err.Error()
	case errors.Is(err, sandbox.ErrInfrastructure), errors.Is(err, sandbox.ErrClosed):
		o.status, o.reason, o.retry = wire.InfraError, err.Error(), true
	default:
		o.status, o.reason = wire.Rejected, err.Error() // a request that every node would refuse
	}
	if err != nil {
		o.result = sandbox.Result{Tier: o.result.Tier, Queue: o.result.Queue, SessionEnded: o.result.SessionEnded || errors.Is(err, sandbox.ErrSessionEnded)} // nothing is known of the program
	}
}

func known(s sandbox.Status) bool {
	switch s {
	case sandbox.Success, sandbox.Error, sandbox.Timeout, sandbox.OOM, sandbox.Killed, sandbox.OutputLimit:
		return true
	}
	return false
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
