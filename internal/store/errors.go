package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/loglimit"
)

// Errors of a store. Every error of this package wraps one of them, or is a mistake
// of the caller.
var (
	// ErrNotFound: the key or message does not exist.
	ErrNotFound = errors.New("not found")
	// ErrExists: the key to create exists.
	ErrExists = errors.New("already exists")
	// ErrConflict: the revision is not the one that the caller has read.
	ErrConflict = errors.New("changed meanwhile")
	// ErrFull: a limit, or the disk, has no space for this write. Reads and deletes
	// work, and writes do as soon as there is space.
	ErrFull = errors.New("store is full")
	// ErrTooLarge: the message is larger than a log accepts.
	ErrTooLarge = errors.New("too large for one message")
	// ErrUnavailable: the engine does not answer, or the store is closed. It is not
	// known whether the write happened.
	ErrUnavailable = errors.New("store is unavailable")
	// ErrDamaged: the stored data differs from what was written.
	ErrDamaged = errors.New("stored data is damaged")
	// ErrLocked: another process owns the store.
	ErrLocked = errors.New("store is in use")
	// ErrStop, returned by a callback, ends a Read, a Scan or a Follow without an
	// error.
	ErrStop = errors.New("stop")
)

// Error codes of the engine for which its client has no constants.
const (
	codeAccountExceeded       jetstream.ErrorCode = 10002
	codeInsufficientResources jetstream.ErrorCode = 10023
	codeMemoryExceeded        jetstream.ErrorCode = 10028
	codeSequenceNotFound      jetstream.ErrorCode = 10043
	codeStorageExceeded       jetstream.ErrorCode = 10047
	codeStoreFailed           jetstream.ErrorCode = 10077 // "maximum bytes exceeded" and similar
)

// classifyError converts an error of the engine or its client to one of this
// package.
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

// classifyAPIError converts an error answer of the engine. Its text is dropped where
// it adds nothing.
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
		// An existing stream is missing: the engine has just started and has not
		// recreated it yet.
		return fmt.Errorf("%w: %w", ErrUnavailable, api)
	}
	if api.Code >= 500 || api.Code == 409 { // 409: the first attempt of the same write is in progress
		return fmt.Errorf("%w: %w", ErrUnavailable, api)
	}
	return fmt.Errorf("rejected by the engine: %w", api) // a mistake of the caller: a retry does not help
}

// isClassified reports whether err is one of this package.
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

// isTransient reports whether a retry may succeed.
func isTransient(err error) bool { return errors.Is(err, ErrUnavailable) }

// ignoreStop returns nil for ErrStop.
func ignoreStop(err error) error {
	if errors.Is(err, ErrStop) {
		return nil
	}
	return err
}

// CallerError returns the error for the caller of a request that needs the store,
// and logs its cause. The operation completes the sentence, for example "the
// request cannot be stored". While the store is full or not available, which would
// be one line for each request, it logs one line a minute for each operation.
func CallerError(ctx context.Context, logger *slog.Logger, operation string, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case ctx.Err() != nil:
		return &contract.Error{Code: contract.CodeOverloaded, Message: operation + " in the time the request has; try again with more"}
	}
	if IsTemporary(err) {
		ctx = loglimit.With(ctx, "store: "+operation)
	}
	logger.ErrorContext(ctx, "store", "operation", operation, "error", err)
	return &contract.Error{Code: contract.CodeOverloaded, Message: operation + " now; try again"}
}

// IsTemporary reports whether the store rejected a write that it may accept later:
// it is full, or not available.
func IsTemporary(err error) bool {
	return errors.Is(err, ErrFull) || errors.Is(err, ErrUnavailable)
}
