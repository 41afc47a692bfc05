package run

import (
	"context"
	"sync"
	"sync/atomic"
)

// ForEach calls fn once for every i in 0 … n-1, at most limit calls at a time (at
// least 1), and returns when all have returned. The caller's goroutine takes part,
// so that one call, or a limit of 1, starts no other goroutine.
//
// ForEach calls fn for every i even if ctx is done, so that fn can set every
// element of the caller's results. A panic in fn cancels the context of the other
// calls and starts no more; when all have returned, ForEach panics with a
// *PanicError.
func ForEach(ctx context.Context, limit, n int, fn func(ctx context.Context, i int)) {
	if n <= 0 {
		return
	}
	cancel := func() {} // one call has no others to stop
	if n > 1 {
		ctx, cancel = context.WithCancel(ctx)
	}
	defer cancel()
	e := forEachState{n: int64(n), cancel: cancel, call: func(i int) { fn(ctx, i) }}

	var others sync.WaitGroup
	for range min(max(limit, 1), n) - 1 {
		others.Go(e.runWorker)
	}
	func() {
		defer others.Wait() // deferred for the case that fn calls runtime.Goexit
		e.runWorker()
	}()
	if failed := e.failed.Load(); failed != nil {
		panic(failed)
	}
}

// forEachState is shared by the workers of one ForEach.
type forEachState struct {
	n      int64
	next   atomic.Int64
	failed atomic.Pointer[PanicError] // the first panic
	cancel context.CancelFunc
	call   func(i int)
}

// runWorker calls fn for the next index until none is left or a call has panicked.
func (e *forEachState) runWorker() {
	returned := false
	defer func() {
		if returned {
			return
		}
		var failure *PanicError
		if v := recover(); v != nil {
			failure = newPanicError(v)
		} else {
			failure = newPanicError(errGoexit)
		}
		e.failed.CompareAndSwap(nil, failure)
		e.cancel()
	}()
	for e.failed.Load() == nil {
		i := e.next.Add(1) - 1
		if i >= e.n {
			break
		}
		e.call(int(i))
	}
	returned = true
}
