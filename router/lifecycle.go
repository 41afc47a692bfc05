package router

import (
	"context"
	"errors"

	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/inflight"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
)

// Resume resumes the stored requests that no live process executes, and records that the
// other ones of the previous process were interrupted. New requests may be routed
// meanwhile. If the store rejects a write, it retries until ctx ends.
func (r *Router) Resume(ctx context.Context) error { return r.async.ResumeAll(ctx) }

// TriggerTakeOver is to be called after other processes that share the store may have ended:
// TakeOver then looks for their requests. It does not wait.
func (r *Router) TriggerTakeOver() { r.async.TriggerTakeOver() }

// TakeOver resumes the stored requests of other processes that end, until ctx ends.
func (r *Router) TakeOver(ctx context.Context) error { return r.async.TakeOver(ctx) }

// CloseReplica records an outcome for each synchronous request that a dead replica did not
// complete, and returns their number. See history.Journal.
func (r *Router) CloseReplica(ctx context.Context, log history.ChainCloser, replica string) (int, error) {
	return r.journal.CloseReplica(ctx, log, replica, func(ctx context.Context, requestID string) (bool, error) {
		_, err := r.cfg.Storage.Requests.Get(ctx, requestID)
		if errors.Is(err, store.ErrNotFound) {
			return false, nil
		}
		return err == nil, err
	})
}

// FollowPeers acts on the messages of the other processes that share the store, until
// ctx ends.
func (r *Router) FollowPeers(ctx context.Context) error {
	return r.peers.Follow(ctx, r.callbacks, r.inflight)
}

// Close is the graceful shutdown of asynchronous requests: tasks that were sent are
// awaited until ctx ends, and all else is resumed after the next start. It also waits for
// the responses that are recorded in the background.
func (r *Router) Close(ctx context.Context) {
	r.async.Close(ctx)
	if err := r.journal.Close(ctx); err != nil {
		r.cfg.Logger.WarnContext(ctx, "some responses may not be in the audit log", "error", err)
	}
}

// OpenRequests returns how many asynchronous requests have not ended.
func (r *Router) OpenRequests() int { return r.async.CountOpen() }

const keyRevoked = "the key of the caller's token was revoked"

// StopRevoked ends the requests in flight whose caller's key is revoked. A stored request
// whose end cannot be recorded now is left to the next call: if only its context ended, it
// would stay open, and no process would resume it.
func (r *Router) StopRevoked(ctx context.Context) {
	for _, request := range r.inflight.OfCallers(r.cfg.IsRevoked) {
		_, err := r.async.CancelStored(ctx, request.ID(), keyRevoked)
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, requests.ErrEnded) {
			request.Cancel(inflight.ErrCancelled)
		}
	}
}
