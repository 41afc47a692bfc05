package execution

import (
	"context"
	"errors"
	"log/slog"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
)

// ResultStore stores results that agents post to their callback URL.
type ResultStore interface {
	// StoreResult stores the result of a task. The first result wins, and storing
	// the same one again succeeds. Errors are those of internal/requests,
	// store.ErrNotFound if the request is unknown, or a *contract.Error.
	StoreResult(ctx context.Context, grant contract.TaskGrant, result *contract.Result) error
}

// StoredResults is the ResultStore of stored requests: results go to the record,
// whichever process executes the request.
type StoredResults struct {
	Store  *requests.Store
	Logger *slog.Logger
}

// errUnchanged ends a change without a write.
var errUnchanged = errors.New("the task already has this result")

// StoreResult implements ResultStore.
func (s *StoredResults) StoreResult(ctx context.Context, grant contract.TaskGrant, result *contract.Result) error {
	_, err := s.Store.Update(ctx, grant.RequestID, func(rec *requests.Record) error {
		fresh, err := rec.Deliver(grant.TaskID, grant.AgentID, result)
		if err == nil && !fresh {
			return errUnchanged
		}
		return err
	})
	switch {
	case errors.Is(err, errUnchanged):
		return nil
	case store.IsTemporary(err):
		return store.CallerError(ctx, s.Logger, "the result cannot be stored", err)
	}
	return err
}
