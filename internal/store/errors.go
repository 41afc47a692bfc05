package store

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// What can come back from a store, besides a mistake of the caller's. Every
// error of this package wraps one of them, so errors.Is is all a caller needs.
var (
	// ErrNotFound: there is no such key or message (any more).
	ErrNotFound = errors.New("not found")
	// ErrExists: Create met a key that is there.
	ErrExists = errors.New("exists already")
	// ErrConflict: what was there is not what the caller had read.
	ErrConflict = errors.New("changed meanwhile")
	// ErrFull: a cap, or the disk, leaves no room for this write. Reads and
	// deletes go on, and writes do as soon as there is room.
	ErrFull = errors.New("store is full")
	// ErrTooLarge: one message is larger than a log can hold.
	ErrTooLarge = errors.New("too large for one message")
	// ErrUnavailable: the engine does not answer, or the store is closing. A
	// write that ended so may have happened.
	ErrUnavailable = errors.New("store is unavailable")
	// ErrDamaged: what is stored is not what was written.
	ErrDamaged = errors.New("stored data is damaged")
	// ErrLocked: another process owns the store.
	ErrLocked = errors.New("store is in use")
	// ErrStop is for callbacks: it ends a Read, a Scan or a Follow, which then
	// returns nil.
	ErrStop = errors.New("stop")
)

// Codes of the engine that its client library has no name for.
const (
	codeAccountExceeded       jetstream.ErrorCode = 10002
	codeInsufficientResources jetstream.ErrorCode = 10023
	codeMemoryExceeded        jetstream.ErrorCode = 10028
	codeSequenceNotFound      jetstream.ErrorCode = 10043
	codeStorageExceeded       jetstream.ErrorCode = 10047
	codeStoreFailed           jetstream.ErrorCode = 10077 // "maximum bytes exceeded" and its like
)

// classifyError turns an error of the engine or its client into one of this
// package's. It is the only place that knows their codes.
func classifyError(err error) error {
	if err == nil || isClassified(err) {
		return err
	}
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return classifyAPIError(api)
	}
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return ErrNotFound
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// classifyAPIError says what an answer of the engine that is an error means for a
// caller. What it says about conflicts and absence would add nothing.
func classifyAPIError(api *jetstream.APIError) error {
	switch api.ErrorCode {
	case jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant:
		return ErrConflict
	case jetstream.JSErrCodeMessageNotFound, codeSequenceNotFound:
		return ErrNotFound
	case jetstream.JSErrCodeStreamMessageExceedsMaximum:
		return fmt.Errorf("%w: %w", ErrTooLarge, api)
	case codeAccountExceeded, codeInsufficientResources, codeMemoryExceeded, codeStorageExceeded, codeStoreFailed:
		return fmt.Errorf("%w: %s", ErrFull, api.Description)
	case jetstream.JSErrCodeStreamNotFound, jetstream.JSErrCodeConsumerNotFound:
		// One that was made is missing: the engine has just started, and what
		// it keeps in memory is not there yet.
		return fmt.Errorf("%w: %w", ErrUnavailable, api)
	}
	if api.Code >= 500 || api.Code == 409 { // 409: the first try of the same write is still under way
		return fmt.Errorf("%w: %w", ErrUnavailable, api)
	}
	return fmt.Errorf("the engine refuses: %w", api) // a mistake: trying again is no use
}

// isClassified reports whether err is classified already.
func isClassified(err error) bool {
	for _, target := range []error{
		ErrNotFound, ErrExists, ErrConflict, ErrFull, ErrTooLarge,
		ErrUnavailable, ErrDamaged, ErrLocked, ErrStop,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// isTransient reports whether the same call may succeed a little later.
func isTransient(err error) bool { return errors.Is(err, ErrUnavailable) }

// ignoreStop turns ErrStop, by which a callback ends a walk, into success.
func ignoreStop(err error) error {
	if errors.Is(err, ErrStop) {
		return nil
	}
	return err
}
