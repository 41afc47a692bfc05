package run

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// errGoexit is the failure of a goroutine that left through runtime.Goexit,
// as a test does that calls t.FailNow away from its own goroutine.
var errGoexit = errors.New("ended by runtime.Goexit")

// PanicError is a panic as an error. Its text holds the stack: a panic is a
// mistake in the program, and whoever reads the log needs the line it is in.
type PanicError struct {
	Value any    // what panic was called with
	Stack []byte // of the goroutine that panicked
}

// newPanicError must be called by the deferred function that recovered, while
// the frames that panicked are still on the stack.
func newPanicError(v any) *PanicError {
	return &PanicError{Value: v, Stack: debug.Stack()}
}

// Error renders the value and the stack.
func (e *PanicError) Error() string {
	return fmt.Sprintf("panic: %v\n\n%s", e.Value, e.Stack)
}

// Unwrap returns the value where it is an error, so that errors.Is sees
// through a panic(err).
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// CatchPanic calls fn and makes a panic of it a *PanicError: for one piece of work
// among many in a goroutine that must outlive it.
func CatchPanic(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = newPanicError(v)
		}
	}()
	return fn()
}
