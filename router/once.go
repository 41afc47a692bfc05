package router

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// claimed says which request an Idempotency-Key stands for. The answer is where
// every answer is: in the record of the request, or in the trail.
type claimed struct {
	RequestID string    `json:"request_id"`
	Body      []byte    `json:"body"` // SHA-256 of what it was sent with
	At        time.Time `json:"at"`
}

// keyOf names the key in the store. Callers choose their keys, so the caller is
// part of the name.
func keyOf(caller *contract.Caller, key string) string {
	return "key." + store.HashKey(caller.KeyParts(key)...)
}

// claim makes the key of a request stand for it. Of those who send the same key
// one goes on; the others get its answer (not nil), or are told to wait for it.
func (r *Router) claim(ctx context.Context, j *job) (*contract.Response, error) {
	id := j.req.Idempotency
	if id == nil || j.dryRun() {
		return nil, nil
	}
	if r.keep.Keys == nil {
		e := &contract.Error{Code: contract.CodeInvalidRequest, Message: "the request is not valid"}
		e.Add("", "the header Idempotency-Key needs a server with a store: leave it out")
		return nil, e
	}
	key := keyOf(j.caller, id.Key)
	value, err := strictjson.Marshal(claimed{RequestID: j.req.RequestID, Body: id.Body[:], At: r.cfg.Now().UTC()})
	if err != nil {
		return nil, fmt.Errorf("claim an idempotency key: %w", err)
	}
	_, err = r.keep.Keys.Create(ctx, key, value)
	switch {
	case err == nil:
		j.claimed = key
		return nil, nil
	case errors.Is(err, store.ErrExists):
		return r.claimedBefore(ctx, j, key, value)
	}
	return nil, r.storeTrouble(ctx, "the idempotency key cannot be stored", err)
}

// claimedBefore answers for a key that stands for an earlier request.
func (r *Router) claimedBefore(ctx context.Context, j *job, key string, value []byte) (*contract.Response, error) {
	entry, err := r.keep.Keys.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, inFlight() // given back just now
	}
	var first claimed
	if err == nil {
		err = strictjson.Unmarshal(entry.Value, &first)
	}
	if err != nil {
		return nil, r.storeTrouble(ctx, "the idempotency key cannot be read", err)
	}
	if !bytes.Equal(first.Body, j.req.Idempotency.Body[:]) {
		e := &contract.Error{Code: contract.CodeInvalidRequest, Message: "the request is not valid"}
		e.Add("", "the header Idempotency-Key was sent with another request before: take a new key for a new request")
		return nil, e
	}
	var f found
	err = r.lookUp(ctx, first.RequestID, &f, wholeLife)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, r.takeKey(ctx, j, key, value, &first, entry.Revision)
	case err != nil:
		return nil, r.storeTrouble(ctx, "the answer cannot be looked up", err)
	case f.inflight != nil, f.record == nil && f.outcome == nil && first.At.After(r.started):
		return nil, inFlight()
	case f.record != nil && !f.record.State.Terminal() && r.inflight.Lookup(first.RequestID) == nil:
		// Its process ended between the record and its place in the index of open
		// ones: nobody was told that it was accepted, now somebody is.
		if err := errors.Join(r.keep.Book.AddOpen(ctx, first.RequestID), r.resume(ctx, first.RequestID)); err != nil {
			return nil, r.storeTrouble(ctx, "the request cannot be taken up", err)
		}
	case f.outcome != nil && f.outcome.Content == nil:
		return nil, &contract.Error{Code: contract.CodeConflict, Message: "the answer to this Idempotency-Key was erased"}
	}
	resp, err := f.response(first.RequestID)
	if err != nil {
		return nil, err
	}
	resp.Replayed = true
	return resp, nil
}

// claimGrace is how long a key may stand for a request of which nothing is known:
// it is on its way from the claim to the record.
const claimGrace = time.Minute

// takeKey takes over a key whose request never came to be: its process ended, or
// it was refused, before anything of it was on record.
func (r *Router) takeKey(ctx context.Context, j *job, key string, value []byte, first *claimed, revision uint64) error {
	if first.At.After(r.cfg.Now().Add(-claimGrace)) && first.At.After(r.started) {
		return inFlight()
	}
	_, err := r.keep.Keys.Update(ctx, key, value, revision)
	switch {
	case errors.Is(err, store.ErrConflict):
		return inFlight()
	case err != nil:
		return r.storeTrouble(ctx, "the idempotency key cannot be stored", err)
	}
	j.claimed = key
	return nil
}

func inFlight() error {
	return &contract.Error{Code: contract.CodeConflict, Message: "a request with this Idempotency-Key is being worked on; ask again when it has ended"}
}

// disclaim gives back the key of a request that was refused after all: nothing of
// it was done, so it may be sent again.
func (r *Router) disclaim(ctx context.Context, j *job) {
	if j.claimed == "" {
		return
	}
	ctx, cancel := afterwards(ctx)
	defer cancel()
	if err := r.keep.Keys.Delete(ctx, j.claimed); err != nil {
		r.cfg.Logger.WarnContext(ctx, "an idempotency key is not given back", "request_id", j.req.RequestID, "err", err)
	}
}
