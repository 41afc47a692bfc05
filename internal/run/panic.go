package run

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// errGoexit is the error of a goroutine that called runtime.Goexit, for example by
// t.FailNow outside of the test's goroutine.
var errGoexit = errors.New("ended by runtime.Goexit")

// PanicError is a panic as an error. Its text contains the stack, because a panic is
// a bug whose location must be in the log.
type PanicError struct {
	Value any    // the argument of panic
	Stack []byte // of the goroutine that panicked
}

// newPanicError must be called by the deferred function that recovered, because the
// stack then still contains the frames that panicked.
func newPanicError(v any) *PanicError {
	return &PanicError{Value: v, Stack: debug.Stack()}
}

// Error returns the value and the stack.
func (e *PanicError) Error() string {
	return fmt.Sprintf("panic: %v\n\n%s", e.Value, e.Stack)
}

// Unwrap returns the value if it is an error, so that errors.Is works for
// panic(err).
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// CatchPanic calls fn and returns a panic as a *PanicError. It is for a goroutine
// that must continue with other work after a panic.
func CatchPanic(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = newPanicError(v)
		}
	}()
	return fn()
}
