package store

import (
	"context"
	"errors"
	"log/slog"

	"github.com/caprouter/caprouter/contract"
)

// CallerError returns the error for the caller of a request that needs the store,
// and logs its cause. The operation completes the sentence, for example "the
// request cannot be stored".
func CallerError(ctx context.Context, logger *slog.Logger, operation string, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case ctx.Err() != nil:
		return &contract.Error{Code: contract.CodeOverloaded, Message: operation + " in the time the request has; try again with more"}
	}
	logger.ErrorContext(ctx, "store", "operation", operation, "err", err)
	return &contract.Error{Code: contract.CodeOverloaded, Message: operation + " now; try again"}
}

// IsTemporary reports whether the store rejected a write that it may accept later:
// it is full, or not available.
func IsTemporary(err error) bool {
	return errors.Is(err, ErrFull) || errors.Is(err, ErrUnavailable)
}
