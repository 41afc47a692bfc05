package orchestrations

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/orchestrator"
)

// ContentEraser erases the contents of the audit log. *audit.Log implements it.
type ContentEraser interface {
	Erase(ctx context.Context, requestID string, by *contract.Caller, life time.Duration) (int, error)
}

// Eraser erases the runs of a Service. It is safe for concurrent use.
type Eraser struct {
	service  *Service
	contents ContentEraser
}

// Eraser returns the Eraser of the runs.
func (s *Service) Eraser() Eraser { return Eraser{service: s, contents: s.cfg.Contents} }

// Erase removes the record of a run that has ended, or ends within a few seconds, and the contents of its records in the
// audit log, which keeps their facts. The run of a task is erased with the request. Errors
// are *contract.Error; it is safe to call Erase again after overloaded.
func (e Eraser) Erase(ctx context.Context, id string, caller *contract.Caller) error {
	rec, err := e.service.load(ctx, id, caller)
	switch {
	case err != nil:
		return err
	case !rec.Caller.SamePrincipal(caller) && !caller.SeesAll():
		return &contract.Error{Code: contract.CodeForbidden, Message: "only the caller of the run, or an administrator, may erase it"}
	case rec.RequestID != "":
		return &contract.Error{Code: contract.CodeConflict, Message: "the run is a task of request " + rec.RequestID + ": erase that request"}
	}
	err = history.AwaitEnding(ctx, func(ctx context.Context) error {
		if rec, err = e.service.load(ctx, id, caller); err != nil {
			return err
		}
		return e.checkEnded(ctx, rec)
	})
	if err != nil {
		return err
	}
	// The record comes last, because while it exists the caller can try again.
	_, err = e.contents.Erase(ctx, id, caller, rec.EndedAt.Sub(history.TimeOfID(id)))
	if err == nil {
		err = e.service.store.delete(ctx, id)
	}
	if err != nil {
		return e.callerError(ctx, "the orchestration cannot be erased", err)
	}
	return nil
}

func (e Eraser) callerError(ctx context.Context, operation string, err error) error {
	return store.CallerError(ctx, e.service.cfg.Logger, operation, err)
}

// checkEnded returns conflict if the run has not ended, or its end is still being recorded.
func (e Eraser) checkEnded(ctx context.Context, rec *orchestrator.Record) error {
	ending := history.NewEndingError("orchestration " + rec.ID)
	switch {
	case !rec.State.Terminal() && rec.CancelledBy != "":
		return ending
	case !rec.State.Terminal():
		return &contract.Error{Code: contract.CodeConflict, Message: "orchestration " + rec.ID + " has not ended: cancel it first"}
	}
	open, err := e.service.store.isOpen(ctx, rec.ID)
	switch {
	case err != nil:
		return e.callerError(ctx, "the orchestration cannot be erased", err)
	case open:
		return ending
	}
	return nil
}

// CancelRuns cancels the runs of a request's tasks, and reports whether one had not ended. It
// implements history.RequestRuns. A run in which a call is in flight ends a moment later.
func (e Eraser) CancelRuns(ctx context.Context, requestID, by string) (cancelled bool, err error) {
	var ids []string
	err = e.service.store.scanOpen(ctx, func(rec *orchestrator.Record) {
		if rec.RequestID == requestID && !rec.State.Terminal() {
			ids = append(ids, rec.ID)
		}
	})
	if err != nil {
		return false, e.callerError(ctx, "the orchestrations of the request cannot be found", err)
	}
	for _, id := range ids {
		_, err := e.service.cancel(ctx, id, by)
		known, ok := errors.AsType[*contract.Error](err)
		switch {
		case err == nil:
			cancelled = true
		case ok && (known.Code == contract.CodeConflict || known.Code == contract.CodeNotFound): // it has ended meanwhile
		default:
			return cancelled, err
		}
	}
	return cancelled, nil
}

// EndedRuns returns the runs of a request: those of its tasks, and the one with its id. It
// implements history.RequestRuns. The error is conflict if one of them has not ended, that of
// history.NewEndingError if it is about to end.
func (e Eraser) EndedRuns(ctx context.Context, requestID string) (runs history.EndedRuns, err error) {
	ids, err := e.service.store.findRuns(ctx, requestID)
	if err != nil {
		return history.EndedRuns{}, e.callerError(ctx, "the orchestrations of the request cannot be found", err)
	}
	for _, id := range ids {
		rec, err := e.service.store.get(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return history.EndedRuns{}, e.callerError(ctx, "an orchestration of the request cannot be read", err)
		}
		if err := e.checkEnded(ctx, rec); err != nil {
			return history.EndedRuns{}, err
		}
		runs.IDs = append(runs.IDs, id)
		if rec.EndedAt.After(runs.At) {
			runs.At = rec.EndedAt
		}
	}
	return runs, nil
}

// DeleteRun removes the record of a run. It implements history.RequestRuns.
func (e Eraser) DeleteRun(ctx context.Context, id string) error {
	return e.service.store.delete(ctx, id)
}

// findRuns returns the ids of the runs that are tasks of a request, or have its id.
func (s *runStore) findRuns(ctx context.Context, requestID string) (ids []string, err error) {
	err = s.bucket.Scan(ctx, recordPrefix, func(e store.Entry) error {
		id := e.Key[len(recordPrefix):]
		if id != requestID && !bytes.Contains(e.Value, []byte(requestID)) {
			return nil // most are not decoded
		}
		var rec struct {
			RequestID string `json:"request_id"`
		}
		if id == requestID || strictjson.UnmarshalDeepAllowUnknown(e.Value, &rec) == nil && rec.RequestID == requestID {
			ids = append(ids, id)
		}
		return nil
	})
	return ids, err
}

// delete removes a run. No revision of its record can be read any more.
func (s *runStore) delete(ctx context.Context, id string) error {
	if err := s.records.Delete(ctx, id); err != nil {
		return fmt.Errorf("delete orchestration %s: %w", id, err)
	}
	s.followers.notify(id)
	return nil
}
