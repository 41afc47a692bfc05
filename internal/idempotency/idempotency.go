// Package idempotency makes it safe to send a request more than once. A caller
// names a request by an idempotency key (the header Idempotency-Key). The first
// request with the key reserves it and is executed; the same request sent again
// gets the stored response of the first one, with Replayed set.
//
//	reservation, stored, err := keys.Reserve(ctx, caller, request.Idempotency, request.RequestID)
//	if stored != nil || err != nil {
//		return stored, err // it was sent before
//	}
//	var resp *contract.Response
//	if err = keys.Start(ctx, reservation, request.RequestID); err == nil {
//		resp, err = execute(ctx, request)
//	}
//	if err != nil {
//		keys.Release(ctx, reservation, request.RequestID) // nothing was done: it may be sent again
//		return nil, err
//	}
//	keys.End(ctx, reservation, resp)
//	return resp, nil
//
// A key contains no response. Responses are looked up where every response is
// stored, so erasing one erases it for its key as well. A key contains how its
// request ended, so that the request is not executed again after its response was
// erased, or deleted to make space.
package idempotency

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// State is the state of the request that reserved a key.
type State int

// The states of a request that reserved a key.
const (
	// Stored is a request with a response to replay; the response of an
	// asynchronous one may be that it has not ended.
	Stored State = iota
	// Executing is a synchronous request that a live process executes.
	Executing
	// Undecided is a synchronous request with a decision and no outcome on
	// record: another process executes it, or ended while it did.
	Undecided
	// Orphaned is a stored request that has not ended and that no live process
	// executes.
	Orphaned
	// Erased is a request whose response is not stored any more: its content was
	// erased, or deleted to make space.
	Erased
)

// Requests finds the request that reserved a key.
type Requests interface {
	// ReplayState returns the state of the request, and a function that loads its
	// response. The error wraps store.ErrNotFound if nothing is stored about it.
	ReplayState(ctx context.Context, requestID string) (State, func() (*contract.Response, error), error)
	// Resume continues an orphaned request.
	Resume(ctx context.Context, requestID string) error
}

// Bucket stores idempotency keys. *store.Bucket implements it.
type Bucket interface {
	store.Versioned
	DeleteRevision(ctx context.Context, key string, revision uint64) error
}

// Timing of reservations.
const (
	// gracePeriod is how long a key stays reserved for a request about which
	// nothing is stored, because it may be about to be stored.
	gracePeriod = time.Minute
	// longestRequest is how long a synchronous request can take, with its writes and
	// the differences between the clocks of several processes.
	longestRequest = contract.MaxTimeoutMS*time.Millisecond + 2*time.Minute
	// releaseTimeout bounds the release of a key after its request's own time.
	releaseTimeout = 10 * time.Second
)

// Reservation is a key that a request has reserved. The zero value is none.
type Reservation struct{ key string }

// RestoreReservation returns the reservation with the name that Name returned.
func RestoreReservation(name string) Reservation { return Reservation{key: name} }

// Name returns the name of the reservation in the store, "" if there is none.
func (r Reservation) Name() string { return r.key }

// Held reports whether a key is reserved.
func (r Reservation) Held() bool { return r.key != "" }

// Keys reserves idempotency keys. It is safe for concurrent use.
type Keys struct {
	cfg      Config
	bucket   Bucket
	requests Requests
	shares   *quota.Ledger
	logger   *slog.Logger
	now      func() time.Time
	started  time.Time
}

// Config is what Keys work with. All fields are required.
type Config struct {
	Bucket   Bucket        // its age limit is that of the keys
	Shares   *quota.Ledger // counts the bytes of the keys; the bucket reports its writes to it
	Requests Requests
	Owner    string // names this process in keys
	// IsLive reports whether the process with this owner id may execute requests.
	IsLive func(owner string) bool
	Logger *slog.Logger
	Now    func() time.Time
}

// New returns the keys in the bucket.
func New(cfg Config) *Keys {
	return &Keys{cfg: cfg, bucket: cfg.Bucket, requests: cfg.Requests, shares: cfg.Shares, logger: cfg.Logger, now: cfg.Now, started: cfg.Now()}
}

// LoadQuota counts the keys that were stored before the start.
func LoadQuota(ctx context.Context, b *store.Bucket, shares *quota.Ledger) error {
	return b.Scan(ctx, "", func(e store.Entry) error {
		var rec struct {
			Owner quota.Owner `json:"owner"`
		}
		if strictjson.UnmarshalAllowUnknown(e.Value, &rec) == nil {
			shares.Load(rec.Owner, e.Key, len(e.Value), e.At)
		}
		return nil
	})
}

// keyRecord is the stored value of a key. It outlives the records of its request, so
// that a request whose records were deleted is never executed again.
type keyRecord struct {
	Owner     quota.Owner `json:"owner"`
	RequestID string      `json:"request_id"`
	Body      []byte      `json:"body"` // SHA-256 of the request's body
	At        time.Time   `json:"at"`
	Process   string      `json:"process,omitempty"` // that reserved it; "" = one of an earlier version
	Progress  progress    `json:"progress,omitempty"`

	// Set by the end of the request.
	Status     contract.Status `json:"status,omitempty"`
	EndedAt    time.Time       `json:"ended_at,omitzero"`
	AnswerHash []byte          `json:"answer,omitempty"` // SHA-256 of the JSON of the response's data
}

// progress is how far the request with a key got. A key that was stored without it
// belongs to an earlier version, which did not record whether tasks were sent.
type progress string

const (
	progressReserved progress = "reserved" // nothing was executed: the key may be reserved again
	progressStarted  progress = "started"  // tasks may have been sent
	progressEnded    progress = "ended"
)

// Reserve reserves the key for the request. If an earlier request has the key,
// Reserve returns that request's response instead.
//
// Errors are *contract.Error: invalid_request if the key was sent with another
// body, conflict if the first request is being executed, result_expired if its
// response is not stored any more, quota_exceeded if there is no room for another key
// of the caller's tenant, overloaded if the store fails.
func (k *Keys) Reserve(
	ctx context.Context, caller *contract.Caller, id *contract.Idempotency, requestID string,
) (Reservation, *contract.Response, error) {
	// Callers choose the keys, so the caller is part of the name.
	r := Reservation{key: "key." + store.HashKey(caller.KeyParts(id.Key)...)}
	owner := quota.OwnerOf(caller)
	value, err := strictjson.Marshal(keyRecord{Owner: owner, RequestID: requestID, Body: id.Body[:], At: k.now().UTC(), Process: k.cfg.Owner, Progress: progressReserved})
	if err != nil {
		return Reservation{}, nil, fmt.Errorf("reserve an idempotency key: %w", err)
	}
	err = k.create(ctx, owner, r, value)
	var full *contract.Error
	switch {
	case err == nil:
		return r, nil, nil
	case errors.As(err, &full), errors.Is(err, store.ErrExists):
	default:
		return Reservation{}, nil, k.storeError(ctx, "the idempotency key cannot be stored", err)
	}
	entry, err := k.bucket.Get(ctx, r.key)
	switch {
	case errors.Is(err, store.ErrNotFound) && full != nil:
		return Reservation{}, nil, full
	case errors.Is(err, store.ErrNotFound):
		return Reservation{}, nil, errExecuting() // released in between
	}
	var first keyRecord
	if err == nil {
		err = strictjson.Unmarshal(entry.Value, &first)
	}
	if err != nil {
		return Reservation{}, nil, k.storeError(ctx, "the idempotency key cannot be read", err)
	}
	if !bytes.Equal(first.Body, id.Body[:]) {
		return Reservation{}, nil, errInvalid("the header Idempotency-Key was sent with another request before: use a new key for a new request")
	}
	stored, err := k.replay(ctx, &first)
	switch {
	case !errors.Is(err, store.ErrNotFound):
		return Reservation{}, stored, err
	case first.Progress != progressReserved:
		return Reservation{}, nil, errExpired(&first)
	}
	if err := k.takeOver(ctx, r, value, &first, entry.Revision); err != nil {
		return Reservation{}, nil, err
	}
	return r, nil, nil
}

// create stores a new key. The error is store.ErrExists, quota_exceeded, or one of the
// store.
func (k *Keys) create(ctx context.Context, owner quota.Owner, r Reservation, value []byte) error {
	if err := k.shares.Admit(owner, r.key); err != nil {
		return err
	}
	_, err := k.bucket.Create(ctx, r.key, value)
	if err != nil && !errors.Is(err, store.ErrExists) && !errors.Is(err, store.ErrUnavailable) {
		k.shares.Withdraw(r.key)
	}
	return err
}

// replay returns the response of the first request with the key. The error wraps
// store.ErrNotFound if nothing is stored about that request.
func (k *Keys) replay(ctx context.Context, first *keyRecord) (*contract.Response, error) {
	state, response, err := k.requests.ReplayState(ctx, first.RequestID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, err
	case err != nil:
		return nil, k.storeError(ctx, "the response cannot be looked up", err)
	}
	switch state {
	case Executing:
		return nil, errExecuting()
	case Undecided:
		if k.mayExecute(first, math.MaxInt64) {
			return nil, errExecuting()
		}
	case Orphaned:
		// The process ended before the request was in the index of open ones, so the
		// caller got no response that accepts the request. Now it gets one.
		if err := k.requests.Resume(ctx, first.RequestID); err != nil {
			return nil, k.storeError(ctx, "the request cannot be resumed", err)
		}
	case Stored, Erased:
	}
	resp, err := response()
	if err != nil {
		return nil, err
	}
	if state == Erased {
		first.Status = resp.Status
		return nil, errExpired(first)
	}
	replayed := *resp
	replayed.Replayed = true
	return &replayed, nil
}

// mayExecute reports whether the process of the first request may be executing it.
// A request of this process counts until it is maxAge old. Only another process knows the
// requests that it keeps in memory, so they count until they must have ended.
func (k *Keys) mayExecute(first *keyRecord, maxAge time.Duration) bool {
	age := k.now().Sub(first.At)
	switch first.Process {
	case k.cfg.Owner:
		return age < maxAge
	case "":
		return age < maxAge && first.At.After(k.started)
	}
	return age < longestRequest && k.cfg.IsLive(first.Process)
}

// takeOver reserves a key whose first request was rejected, or whose process
// ended, before anything about it was stored.
func (k *Keys) takeOver(ctx context.Context, r Reservation, value []byte, first *keyRecord, revision uint64) error {
	if k.mayExecute(first, gracePeriod) {
		return errExecuting()
	}
	_, err := k.bucket.Update(ctx, r.key, value, revision)
	switch {
	case errors.Is(err, store.ErrConflict):
		return errExecuting()
	case err != nil:
		return k.storeError(ctx, "the idempotency key cannot be stored", err)
	}
	return nil
}

// Start records that the request with the key is about to be executed. If Start
// returns an error, the request must not be executed.
func (k *Keys) Start(ctx context.Context, r Reservation, requestID string) error {
	err := k.updateKey(ctx, r, requestID, func(rec *keyRecord) { rec.Progress = progressStarted })
	if err != nil {
		return k.storeError(ctx, "the idempotency key cannot be stored", err)
	}
	return nil
}

// End records the response of the request with the key. If that fails, the error is
// logged: the key then protects the request as one that was started.
func (k *Keys) End(ctx context.Context, r Reservation, resp *contract.Response) {
	if !r.Held() {
		return
	}
	ended := contract.EndedRequest{RequestID: resp.RequestID, Status: resp.Status, EndedAt: k.now().UTC()}
	if data, err := strictjson.Marshal(resp.Data); err == nil {
		hash := sha256.Sum256(data)
		ended.AnswerHash = hash[:]
	}
	k.RecordEnd(ctx, r, &ended)
}

// RecordEnd is End for a request that has no contract.Response.
func (k *Keys) RecordEnd(ctx context.Context, r Reservation, ended *contract.EndedRequest) {
	err := k.updateKey(ctx, r, ended.RequestID, func(rec *keyRecord) {
		rec.Progress, rec.Status, rec.EndedAt, rec.AnswerHash = progressEnded, ended.Status, ended.EndedAt, ended.AnswerHash
	})
	if err != nil {
		k.logger.WarnContext(ctx, "cannot record the end of a request with an idempotency key", "request_id", ended.RequestID, "error", err)
	}
}

// updateKey changes the key, as long as it belongs to the request.
func (k *Keys) updateKey(ctx context.Context, r Reservation, requestID string, change func(*keyRecord)) error {
	if !r.Held() {
		return nil
	}
	_, err := store.CompareAndSet(ctx, k.bucket, r.key, func(entry store.Entry) ([]byte, error) {
		if entry.Revision == 0 {
			return nil, store.ErrNotFound
		}
		var rec keyRecord
		if err := strictjson.Unmarshal(entry.Value, &rec); err != nil {
			return nil, err
		}
		if rec.RequestID != requestID {
			return nil, errors.New("the key was reserved again")
		}
		change(&rec)
		return strictjson.Marshal(rec)
	})
	return err
}

// Release gives up a reservation whose request was rejected before anything of it
// was done, unless another request has taken the key over. If ctx has ended, the key
// is released nevertheless.
func (k *Keys) Release(ctx context.Context, r Reservation, requestID string) {
	if !r.Held() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := k.deleteKey(ctx, r, requestID); err != nil {
		k.logger.WarnContext(ctx, "cannot release idempotency key", "request_id", requestID, "error", err)
	}
}

// deleteKey deletes the key, as long as it belongs to the request.
func (k *Keys) deleteKey(ctx context.Context, r Reservation, requestID string) error {
	entry, err := k.bucket.Get(ctx, r.key)
	var rec keyRecord
	if err == nil {
		err = strictjson.Unmarshal(entry.Value, &rec)
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return err
	case rec.RequestID != requestID:
		return nil
	}
	if err := k.bucket.DeleteRevision(ctx, r.key, entry.Revision); !errors.Is(err, store.ErrConflict) {
		return err
	}
	return nil // it was taken over since
}

func (k *Keys) storeError(ctx context.Context, operation string, err error) error {
	return store.CallerError(ctx, k.logger, operation, err)
}

func errExecuting() error {
	return &contract.Error{Code: contract.CodeConflict, Message: "a request with this Idempotency-Key is being executed; try again when it has ended"}
}

// errExpired is returned for a request that may have been executed, and whose
// response is not stored any more.
func errExpired(first *keyRecord) error {
	ended := &contract.EndedRequest{RequestID: first.RequestID, Status: first.Status, EndedAt: first.EndedAt, AnswerHash: first.AnswerHash}
	message := "the request was executed before, and its response is not stored any more: use a new key to execute it again"
	if ended.Status == "" {
		ended.Status = contract.StatusFailed
		message = "the request was sent before, and its outcome is not known: use a new key to execute it again"
	}
	return &contract.Error{Code: contract.CodeResultExpired, Message: message, Ended: ended}
}

func errInvalid(detail string) error {
	return contract.InvalidRequest("", detail)
}

// NoKeys rejects idempotency keys: a router without a store cannot replay a
// response.
type NoKeys struct{}

// Reserve returns invalid_request.
func (NoKeys) Reserve(context.Context, *contract.Caller, *contract.Idempotency, string) (Reservation, *contract.Response, error) {
	return Reservation{}, nil, errInvalid("the header Idempotency-Key needs a server with a store: leave it out")
}

// Start does nothing.
func (NoKeys) Start(context.Context, Reservation, string) error { return nil }

// End does nothing.
func (NoKeys) End(context.Context, Reservation, *contract.Response) {}

// Release does nothing.
func (NoKeys) Release(context.Context, Reservation, string) {}
