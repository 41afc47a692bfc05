package asyncrun

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/inflight"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/telemetry"
)

// Pipeline is what a Runner needs of the router.
type Pipeline interface {
	// Restore rebuilds the accepted request of a stored one.
	Restore(rec *requests.Record) *Accepted

	// Report counts and logs a response that the pipeline did not conclude itself.
	Report(ctx context.Context, resp *contract.Response, acceptedAt time.Time)

	// ExplainMissingSummary adds the reason to the response to a cancelled request if its
	// answer would otherwise be a summary.
	ExplainMissingSummary(resp *contract.Response)
}

// Accepted is an asynchronous request and the pipeline for it. It is immutable.
type Accepted struct {
	*execution.Request
	Timeout time.Duration
	Fleet   *capabilities.Fleet // the agents when the request was accepted or restored
	Serve   ServeFunc
}

// ServeFunc runs the pipeline for an accepted request. The goroutine that calls it owns
// the run.
type ServeFunc func(ctx context.Context, r *Run) (*contract.Response, error)

// AuditLog is what a Runner reads of the audit log after a restart.
type AuditLog interface {
	Find(ctx context.Context, requestID string) (audit.RequestRecords, error)
	Unfinished(ctx context.Context) ([]audit.Record, error)
}

// Publisher publishes the events of requests in the background. Events may be lost.
type Publisher interface {
	Enqueue(ev *contract.Event)
}

// Config is what a Runner works with. All fields but Tracer are required.
type Config struct {
	Store *requests.Store // disabled in a router without asynchronous requests
	Owner string          // names this process in stored requests
	// IsLive reports whether the process with this owner id may execute requests: it is
	// this process, or another one that has not ended and is not presumed dead.
	IsLive   func(owner string) bool
	AuditLog AuditLog
	Journal  *history.Journal
	Events   Publisher
	Inflight *inflight.Table
	Peers    *Peers
	Executor *execution.Executor
	// StartKey records in the idempotency key of a request that its tasks may be sent.
	StartKey func(ctx context.Context, keyName, requestID string) error
	// EndKey records the response in the idempotency key of its request.
	EndKey func(ctx context.Context, keyName string, resp *contract.Response)
	Tracer *telemetry.Tracer // nil = traces are not recorded
	Logger *slog.Logger
	Now    func() time.Time
}

// maxExecuting bounds the asynchronous requests that execute at the same time.
const maxExecuting = 256

// Runner runs asynchronous requests. It is safe for concurrent use.
type Runner struct {
	cfg            Config
	pipeline       Pipeline
	group          *run.Group
	limiter        *execution.ConcurrencyLimiter
	capacity       capacity
	draining       atomic.Bool // no further task is sent
	closing        sync.Once
	takeOverSignal chan struct{} // capacity 1: see TriggerTakeOver
}

// New returns a Runner that executes requests with the pipeline.
func New(cfg Config, pipeline Pipeline) *Runner {
	return &Runner{
		cfg: cfg, pipeline: pipeline, group: run.New(context.Background()), takeOverSignal: make(chan struct{}, 1),
		limiter: execution.NewConcurrencyLimiter(maxExecuting), capacity: capacity{store: cfg.Store, logger: cfg.Logger},
	}
}

// Close drains the runner: no further task is sent, and tasks that were sent are
// awaited until ctx ends. Requests that are not complete stay stored and are
// resumed after the next start. Only the first call counts.
func (r *Runner) Close(ctx context.Context) {
	r.closing.Do(func() {
		r.draining.Store(true)
		r.limiter.WaitIdle(ctx)
		r.group.Stop(dispatch.ErrHandedOver)
		_ = r.group.Wait() // all goroutines return nil
	})
}

// IsDraining reports whether Close has begun.
func (r *Runner) IsDraining() bool { return r.draining.Load() }

// CountOpen returns how many asynchronous requests have not ended.
func (r *Runner) CountOpen() int { return r.capacity.countOpen() }

// startRun runs an accepted request in the background. Its capacity is reserved.
func (r *Runner) startRun(accepted *Accepted, rec *requests.Record) {
	r.group.Go("request "+rec.ID, func(ctx context.Context) error {
		defer r.capacity.release(&rec.Caller)
		owned := r.ownedRequest(rec, ctx.Done(), r.limiter.NewPermit(quota.OwnerOf(&rec.Caller)))
		emit := r.newEmitter(rec.ID)
		ctx, cancelCause := context.WithCancelCause(ctx)
		defer cancelCause(nil)
		ctx, cancel := context.WithDeadline(ctx, rec.Deadline)
		defer cancel()
		ctx, span := r.cfg.Tracer.ContinueSpan(ctx, "asynchronous request", rec.Traceparent)
		defer span.End()
		span.SetString(telemetry.AttrRequestID, rec.ID)
		current := &Run{
			Request: accepted.Request, Persistence: r.cfg.Executor.Asynchronous(owned, r.IsDraining), Emit: emit,
			Inflight: inflight.NewRequest(rec.ID, rec.TraceID, accepted.Caller, cancelCause),
			runner:   r, owned: owned,
		}
		current.restorePlan(rec)
		r.cfg.Inflight.Add(current.Inflight)
		var resp *contract.Response
		defer func() { r.cfg.Inflight.Remove(current.Inflight, resp) }()
		err := run.CatchPanic(func() (err error) {
			resp, err = r.serveRun(ctx, current, accepted.Serve)
			return err
		})
		if resp != nil {
			span.SetString(telemetry.AttrOutcome, string(resp.Status))
		}
		r.finishRun(ctx, current, rec, resp, err)
		return nil
	})
}

// serveRun runs the pipeline as soon as there is a permit. It also serves a request
// whose deadline has passed meanwhile, so that the outcome is recorded.
func (r *Runner) serveRun(ctx context.Context, current *Run, serve ServeFunc) (*contract.Response, error) {
	current.Persistence.Permit.Acquire(ctx)
	defer current.Persistence.Permit.Release()
	if errors.Is(context.Cause(ctx), dispatch.ErrHandedOver) || r.IsDraining() {
		return nil, dispatch.ErrHandedOver
	}
	return serve(ctx, current)
}

// finishRun emits the final event of a request, or gives the request up if the
// pipeline failed.
func (r *Runner) finishRun(ctx context.Context, current *Run, rec *requests.Record, resp *contract.Response, err error) {
	switch {
	case err == nil:
		current.Emit(&contract.Event{Type: contract.EventFinal, Response: resp})
	case errors.Is(context.Cause(ctx), dispatch.ErrHandedOver):
		current.owned.StoreDeferred(ctx) // the next process continues with it
	case errors.Is(err, dispatch.ErrHandedOver), errors.Is(err, requests.ErrEnded), errors.Is(err, requests.ErrNotOwner),
		errors.Is(context.Cause(ctx), inflight.ErrCancelled):
		// The next process resumes the request, or it was ended elsewhere:
		// CancelStored records the end before it cancels the context.
	default:
		r.cfg.Logger.ErrorContext(ctx, "asynchronous request failed", "request_id", rec.ID, "error", err)
		current.giveUp(ctx)
	}
}

// concludeStored does everything that follows from the end of a request outside of the
// pipeline.
func (r *Runner) concludeStored(ctx context.Context, req *execution.Request, rec *requests.Record, emit func(*contract.Event)) {
	_ = r.recordResponse(ctx, req, rec.Response) // logged; the next start tries again
	r.pipeline.Report(ctx, rec.Response, rec.CreatedAt)
	emit(&contract.Event{Type: contract.EventFinal, Response: rec.Response})
}

// recordResponse writes the response to the audit log and to the idempotency key, and
// then removes the request from the index of open ones. The cause of an error is logged.
func (r *Runner) recordResponse(ctx context.Context, req *execution.Request, resp *contract.Response) error {
	ctx, cancel := execution.Detach(ctx)
	defer cancel()
	return r.writeResponse(ctx, req, resp)
}

// writeResponse is recordResponse within ctx.
func (r *Runner) writeResponse(ctx context.Context, req *execution.Request, resp *contract.Response) error {
	if err := r.cfg.Journal.RecordResponse(ctx, history.EncodeResponse(req.Subject(), resp)); err != nil {
		return err
	}
	r.cfg.EndKey(ctx, req.KeyName, resp)
	if err := r.cfg.Store.RemoveOpen(ctx, resp.RequestID); err != nil {
		r.cfg.Logger.WarnContext(ctx, "an ended request stays in the index of open ones until the next start",
			"request_id", resp.RequestID, "error", err)
	}
	return nil
}

func (r *Runner) ownedRequest(rec *requests.Record, stopping <-chan struct{}, permit execution.Permit) *execution.OwnedRequest {
	return &execution.OwnedRequest{
		Store: r.cfg.Store, ID: rec.ID, Owner: rec.Owner, Epoch: rec.Epoch, Stopping: stopping, Permit: permit, Logger: r.cfg.Logger,
	}
}

// newEmitter returns a function that publishes events of the request. It never waits.
func (r *Runner) newEmitter(id string) func(*contract.Event) {
	return func(ev *contract.Event) {
		ev.RequestID, ev.At = id, r.cfg.Now().UTC()
		r.cfg.Events.Enqueue(ev)
	}
}
