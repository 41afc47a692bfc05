package asyncrun

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/inflight"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
)

func TestRetryUntilDone_RetriesTemporaryErrorsOnly(t *testing.T) {
	permanent := errors.New("permanent")
	for _, tt := range []struct {
		name   string
		errs   []error // of the attempts
		want   error
		writes int
	}{
		{"success", []error{nil}, nil, 1},
		{"store recovers", []error{store.ErrUnavailable, store.ErrUnavailable, nil}, nil, 3},
		{"permanent error", []error{store.ErrUnavailable, permanent}, permanent, 2},
		{"request has ended", []error{requests.ErrEnded}, requests.ErrEnded, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				writes := 0
				err := retryUntilDone(t.Context(), func(context.Context) error { writes++; return tt.errs[writes-1] })
				if !errors.Is(err, tt.want) || writes != tt.writes {
					t.Errorf("got error %v after %d writes, want %v after %d", err, writes, tt.want, tt.writes)
				}
			})
		})
	}
}

func TestRetryUntilDone_EndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := retryUntilDone(ctx, func(context.Context) error { return store.ErrUnavailable })
		if !errors.Is(err, store.ErrUnavailable) || ctx.Err() == nil {
			t.Errorf("got error %v, context %v; want %v after the deadline", err, ctx.Err(), store.ErrUnavailable)
		}
	})
}

func TestRunner_RetriesRecoveryStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Runner{cfg: Config{Logger: slog.New(slog.DiscardHandler)}}
		attempts, start := 0, time.Now()
		err := r.retryStep(t.Context(), "step", func(context.Context) error {
			if attempts++; attempts < 3 {
				return errors.New("not yet")
			}
			return nil
		})
		if err != nil || attempts != 3 {
			t.Errorf("got error %v after %d attempts, want success after 3", err, attempts)
		}
		backoff := execution.NewWriteBackoff()
		if got, want := time.Since(start), backoff.Next()+backoff.Next(); got != want {
			t.Errorf("got pauses of %v, want %v", got, want)
		}
	})
}

// TestWroteEnd_RecognizesItsOwnEnd loses the confirmation of a write: the retry finds an
// ended request, possibly ended by another process.
func TestWroteEnd_RecognizesItsOwnEnd(t *testing.T) {
	ended := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	owned := &execution.OwnedRequest{Owner: "me", Epoch: 2}
	own := requests.Record{Owner: "me", Epoch: 2, EndedAt: ended}
	for _, tt := range []struct {
		name   string
		change func(*requests.Record)
		err    error
		want   bool
	}{
		{"own end", func(*requests.Record) {}, requests.ErrEnded, true},
		{"another error", func(*requests.Record) {}, requests.ErrNotOwner, false},
		{"another owner", func(rec *requests.Record) { rec.Owner = "other" }, requests.ErrEnded, false},
		{"another epoch", func(rec *requests.Record) { rec.Epoch = 3 }, requests.ErrEnded, false},
		{"another time", func(rec *requests.Record) { rec.EndedAt = ended.Add(1) }, requests.ErrEnded, false},
	} {
		rec := own
		tt.change(&rec)
		if got := wroteEnd(owned, &rec, tt.err, ended); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// The end of a cancelled request is recorded before its context ends, so a later error of
// the pipeline is not a failure.
func TestRunner_LogsNoErrorIfTheRequestWasCancelled(t *testing.T) {
	var log bytes.Buffer
	r := &Runner{cfg: Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(inflight.ErrCancelled)
	r.finishRun(ctx, &Run{}, &requests.Record{ID: "cancelled"}, nil, store.ErrUnavailable)
	if log.Len() > 0 {
		t.Errorf("got the log %q, want none", log.String())
	}
}

func TestCapacity_RejectsRequestsBeyondTheLimit(t *testing.T) {
	caller := &contract.Caller{Tenant: "acme"}
	c := &capacity{store: requests.Disabled()}
	c.checkedUntil.Store(time.Now().Add(time.Hour).UnixMilli()) // the store has space
	for range maxOpen - 1 {
		c.addStored(caller)
	}
	if err := c.reserve(t.Context(), caller); err != nil {
		t.Errorf("the last one: got %v, want no error", err)
	}
	var rejected *contract.Error
	if err := c.reserve(t.Context(), caller); !errors.As(err, &rejected) || rejected.Code != contract.CodeOverloaded {
		t.Errorf("one too many: got %v, want %s", err, contract.CodeOverloaded)
	}
	if got := c.countOpen(); got != maxOpen {
		t.Errorf("got %d open, want %d: a rejected request does not count", got, maxOpen)
	}
	c.release(caller)
	if err := c.reserve(t.Context(), caller); err != nil {
		t.Errorf("after release: got %v, want no error", err)
	}
}
