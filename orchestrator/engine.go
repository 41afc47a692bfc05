package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/resilience"
)

// Budgets limit a run.
type Budgets struct {
	Steps   int // of all plans together; 0 = 20
	Replans int // plans after the first one; 0 = none
	Retries int // repeated calls, of all steps together; 0 = none
}

// Config of an Orchestrator. Registry, Invoker, Enforcer, Models, Store, Auditor and Owner are
// required.
type Config struct {
	Registry ServerRegistry
	Invoker  Invoker
	Enforcer Enforcer
	Models   Models
	Store    Store
	Auditor  Auditor
	Owner    string // names this process in records
	Budgets  Budgets
	GateTTL  time.Duration // of a call that waits for an approval; 0 = an hour
	// BlockGates ends a run at a call that needs an approval, instead of waiting for it.
	BlockGates bool
	Parallel   int              // calls of one run at a time; 0 = 8
	Now        func() time.Time // nil = time.Now
	Logger     *slog.Logger     // nil = silent
}

// Models return the planner and the verifier of a run. Errors are *PlanError.
type Models interface {
	Planner(c *contract.GoalConstraints) (Planner, error)
	Verifier(c *contract.GoalConstraints) (Verifier, error)
}

// Auditor writes to the audit log what leads to a call or prevents it. A call whose
// permission cannot be recorded is not made.
type Auditor interface {
	RecordRunEvent(ctx context.Context, rec *Record, ev contract.RunEvent) error
}

// Orchestrator executes runs. It is safe for concurrent use.
type Orchestrator struct {
	cfg      Config
	draining chan struct{}
	drain    sync.Once
}

// New returns an Orchestrator, or an error if a required field is missing.
func New(cfg Config) (*Orchestrator, error) {
	if cfg.Registry == nil || cfg.Invoker == nil || cfg.Enforcer == nil || cfg.Models == nil || cfg.Store == nil || cfg.Auditor == nil || cfg.Owner == "" {
		return nil, errors.New("orchestrator: registry, invoker, enforcer, models, store, auditor and owner are required")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Budgets.Steps = cmp.Or(cfg.Budgets.Steps, defaultSteps)
	cfg.Parallel = cmp.Or(cfg.Parallel, defaultParallel)
	cfg.GateTTL = cmp.Or(cfg.GateTTL, time.Hour)
	return &Orchestrator{cfg: cfg, draining: make(chan struct{})}, nil
}

const (
	defaultSteps    = 20
	defaultParallel = 8
)

// Drain stops runs before their next call. Their records can be taken over.
func (o *Orchestrator) Drain() { o.drain.Do(func() { close(o.draining) }) }

func (o *Orchestrator) isDraining() bool {
	select {
	case <-o.draining:
		return true
	default:
		return false
	}
}

// ErrCancelled is the cause of the context of a run that is cancelled.
var ErrCancelled = errors.New("the run was cancelled")

// errStopped ends the execution of a run that this process must not or cannot continue.
var errStopped = errors.New("this process does not continue the run")

// Run executes a run that this process owns, until it has ended or waits for a person, and
// returns the record. A run whose context ends with ErrCancelled ends as cancelled. If the
// context ends otherwise, the run can be taken over.
func (o *Orchestrator) Run(ctx context.Context, rec *Record) (*Record, error) {
	run, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limited, release := context.WithDeadline(run, rec.Deadline)
	defer release()
	x := o.newExecution(ctx, cancel, rec)
	for !x.rec.State.Terminal() && x.rec.ParkedAt.IsZero() {
		err := x.runState(limited)
		if limited.Err() != nil && !errors.Is(err, errStopped) {
			err = x.endEarly(limited)
		}
		if err != nil {
			return x.rec, err
		}
	}
	return x.rec, nil
}

// Abort ends a run that this process owns and cannot execute, because Run panicked, and
// returns the record.
func (o *Orchestrator) Abort(ctx context.Context, rec *Record) (*Record, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	x := o.newExecution(ctx, cancel, rec)
	err := x.failInternal()
	return x.rec, err
}

func (o *Orchestrator) newExecution(ctx context.Context, cancel context.CancelCauseFunc, rec *Record) *execution {
	return &execution{o: o, parent: ctx, cancel: cancel, rec: rec, epoch: rec.Epoch}
}

// execution is one execution of a run by this process. Calls that are made in parallel
// share it; rec is replaced under the lock, and never changed.
type execution struct {
	o      *Orchestrator
	parent context.Context //nolint:containedctx // outlives the deadline of the run, for writes; the execution ends with it
	cancel context.CancelCauseFunc
	epoch  int

	mu  sync.Mutex
	rec *Record

	tools *toolSet // nil = not loaded yet
}

func (x *execution) record() *Record {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.rec
}

// writeTimeout bounds one attempt to write a change.
const writeTimeout = 10 * time.Second

// apply writes a change of the record, and tries again until the store accepts it or the
// process stops. errStopped means that another process executes the run, or that it has
// ended.
func (x *execution) apply(change func(*Record) error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	backoff := resilience.Backoff{Min: 50 * time.Millisecond, Max: 2 * time.Second}
	for {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(x.parent), writeTimeout)
		rec, err := x.o.cfg.Store.Update(ctx, x.rec.ID, func(r *Record) error {
			if r.Owner != x.o.cfg.Owner || r.Epoch != x.epoch || r.State.Terminal() {
				return ErrNotOwner
			}
			return change(r)
		})
		cancel()
		switch {
		case err == nil:
			x.rec = rec
			if rec.CancelledBy != "" {
				x.cancel(ErrCancelled)
			}
			return nil
		case errors.Is(err, ErrNotOwner):
			return errStopped
		case rec != nil: // change has returned the error
			return err
		}
		x.o.cfg.Logger.Error("a step of an orchestration is not stored, trying again", "orchestration_id", x.rec.ID, "error", err)
		if !backoff.Sleep(x.parent) {
			return errStopped
		}
	}
}

// advance writes an event.
func (x *execution) advance(event Event, entry contract.RunEvent, change func(*Record)) error {
	return x.apply(func(r *Record) error {
		if change != nil {
			change(r)
		}
		return r.Advance(event, entry, x.o.cfg.Now())
	})
}

// fail ends the run for a reason.
func (x *execution) fail(event Event, failure contract.RunError) error {
	return x.apply(func(r *Record) error { return r.fail(event, failure, x.o.cfg.Now()) })
}

// endEarly ends a run whose context has ended.
func (x *execution) endEarly(ctx context.Context) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrCancelled):
		return x.apply(func(r *Record) error {
			r.CancelledBy = cmp.Or(r.CancelledBy, "its caller")
			return r.endCancelled(x.o.cfg.Now())
		})
	case errors.Is(cause, context.DeadlineExceeded) && x.parent.Err() == nil:
		return x.fail(EventTimeout, contract.RunError{Reason: contract.ReasonTimeout, Message: "the goal was not reached within timeout_ms"})
	}
	return errStopped
}

// runState does the work of the present state, which an event ends.
func (x *execution) runState(ctx context.Context) error {
	if x.o.isDraining() {
		return errStopped
	}
	switch x.rec.State {
	case StateInit:
		return x.advance(EventAccepted, contract.RunEvent{}, nil)
	case StateDiscover:
		return x.discover(ctx)
	case StateAuth:
		return x.authorize(ctx)
	case StateDescribe:
		return x.describe(ctx)
	case StatePlan:
		return x.plan(ctx)
	case StateExecute:
		return x.execute(ctx)
	case StateObserve:
		return x.observe()
	case StateVerify:
		return x.verify(ctx)
	case StateCommit:
		return x.advance(EventCommitted, contract.RunEvent{}, func(r *Record) { r.Errors = nil })
	}
	return fmt.Errorf("unknown state %q", x.rec.State)
}

// abort ends a run that cannot be continued.
func (x *execution) abort(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the end of the context ends the run
	}
	x.o.cfg.Logger.Error("an orchestration cannot be continued", "orchestration_id", x.rec.ID, "state", x.rec.State, "error", err)
	return x.failInternal()
}

// failInternal ends a run that cannot be continued, for a reason that its caller is not shown.
func (x *execution) failInternal() error {
	return x.fail(EventAborted, contract.RunError{Reason: contract.ReasonInternal, Message: "the run cannot be continued"})
}
