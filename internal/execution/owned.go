package execution

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/store"
)

// writeTimeout bounds a write that continues after the context of the request has
// ended.
const writeTimeout = 10 * time.Second

// Detach returns a context for a write that must happen although the context of
// the request has ended.
func Detach(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
}

// MaxWritePause is the longest pause between attempts to write a change that the store
// rejects.
const MaxWritePause = 2 * time.Second

// NewWriteBackoff returns the pauses between these attempts.
func NewWriteBackoff() *resilience.Backoff {
	return &resilience.Backoff{Min: 50 * time.Millisecond, Max: MaxWritePause}
}

// OwnedRequest is the stored record of a request that this process executes. Owner and
// epoch are a fencing token: after another process has taken over the request, all
// changes fail with requests.ErrNotOwner.
type OwnedRequest struct {
	Store *requests.Store
	ID    string
	Owner string
	Epoch int
	// Stopping is closed when this process cannot write any more.
	Stopping <-chan struct{}
	// WriteUntil is when changes that must happen are given up, because a caller
	// waits for the response. The zero time is never.
	WriteUntil time.Time
	// Permit is released while the store rejects a change.
	Permit Permit
	Logger *slog.Logger

	// deferred is an outcome that the next change stores, usually the end of the request:
	// one write instead of two. Nil = there is none.
	deferred *deferredOutcome
}

// deferredOutcome is the outcome of a task that the record does not contain yet.
type deferredOutcome struct {
	taskID     string
	outcome    requests.Outcome
	superseded bool // the record contains another result, because a callback was faster
}

// Change makes one change of the record. A deferred outcome is stored in the same write,
// before the change.
func (o *OwnedRequest) Change(ctx context.Context, change func(*requests.Record) error) (*requests.Record, error) {
	rec, err := o.Store.Update(ctx, o.ID, func(rec *requests.Record) error {
		if err := rec.CheckOwner(o.Owner, o.Epoch); err != nil {
			return err
		}
		if t := o.deferred; t != nil {
			err := rec.Finish(t.taskID, t.outcome)
			if t.superseded = errors.Is(err, requests.ErrDifferentResult); err != nil && !t.superseded {
				return err
			}
		}
		return change(rec)
	})
	// Write the field only if it is set: if there are several parts, their goroutines call
	// Change at the same time, and no outcome is deferred.
	if err == nil && o.deferred != nil {
		o.deferred = nil
	}
	return rec, err
}

// IsSuperseded reports, within a change, whether the record contains another result than
// the deferred outcome, because a callback was faster. That result counts, and its agent
// has received the confirmation.
func (o *OwnedRequest) IsSuperseded() bool { return o.deferred != nil && o.deferred.superseded }

// StoreDeferred stores a deferred outcome by itself, because this process does not end the
// request.
func (o *OwnedRequest) StoreDeferred(ctx context.Context) {
	if o.deferred != nil {
		_, _ = o.ChangeUntilStored(ctx, func(*requests.Record) error { return nil }) // an error: it was ended elsewhere
	}
}

// ChangeUntilStored makes a change that records what has already happened. It retries as long
// as the store rejects the change, because the record must not fall behind.
func (o *OwnedRequest) ChangeUntilStored(ctx context.Context, change func(*requests.Record) error) (*requests.Record, error) {
	backoff := NewWriteBackoff()
	for {
		attempt, cancel := o.detach(ctx)
		rec, err := o.Change(attempt, change)
		cancel()
		if err == nil || !store.IsTemporary(err) || !o.Pause(backoff.Next()) {
			return rec, err
		}
	}
}

// detach is Detach within WriteUntil.
func (o *OwnedRequest) detach(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.WriteUntil.IsZero() || time.Until(o.WriteUntil) > writeTimeout {
		return Detach(ctx)
	}
	return context.WithDeadline(context.WithoutCancel(ctx), o.WriteUntil)
}

// Pause waits before another attempt to write, without a permit. It returns false
// if the process stops, or WriteUntil comes first.
func (o *OwnedRequest) Pause(d time.Duration) bool {
	if !o.WriteUntil.IsZero() && time.Until(o.WriteUntil) <= d {
		return false
	}
	o.Permit.Release()
	defer acquireNow(o.Permit)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-o.Stopping:
		return false
	}
}
