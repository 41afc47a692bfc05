package history

import (
	"context"
	"errors"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/resilience"
)

// maxEndingWait bounds how long an erasure waits for the end of what was cancelled.
const maxEndingWait = 5 * time.Second

// endingError is a conflict that ends by itself.
type endingError struct{ conflict *contract.Error }

func (e *endingError) Error() string { return e.conflict.Error() }

func (e *endingError) Unwrap() error { return e.conflict }

// NewEndingError returns the error about something that cannot be erased yet because it is
// ending: a call of it returns, or its end is being recorded. It is a *contract.Error with
// the code conflict, for which AwaitEnding waits.
func NewEndingError(what string) error {
	return &endingError{&contract.Error{Code: contract.CodeConflict, Message: what + " is ending; try again in a few seconds"}}
}

// AwaitEnding repeats check while its error is that of NewEndingError, for a few seconds at
// most, and returns its last error.
func AwaitEnding(ctx context.Context, check func(context.Context) error) error {
	waiting, cancel := context.WithTimeout(ctx, maxEndingWait)
	defer cancel()
	backoff := resilience.Backoff{Min: endPoll / 4, Max: maxEndPoll / 4}
	for {
		err := check(ctx)
		if _, ending := errors.AsType[*endingError](err); !ending || !backoff.Sleep(waiting) {
			return err
		}
	}
}
