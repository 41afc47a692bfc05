package run

import (
	"context"
	"sync"
	"sync/atomic"
)

// ForEach calls fn once for every i in 0 … n-1, at most limit calls at a time
// (fewer than 1 counts as 1), and returns when all have returned. The caller's
// goroutine does its share, so that one call, or a limit of 1, costs no other.
//
// Each does not look at ctx: fn is called for every i even when ctx is done,
// so that every slot of the caller's results gets filled. A panic in fn
// cancels the context of the other calls, starts no further ones, and is
// raised again in the caller as a *PanicError, once no call is running.
func ForEach(ctx context.Context, limit, n int, fn func(ctx context.Context, i int)) {
	if n <= 0 {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e := forEachState{n: int64(n), cancel: cancel, call: func(i int) { fn(ctx, i) }}

	var others sync.WaitGroup
	for range min(max(limit, 1), n) - 1 {
		others.Go(e.runWorker)
	}
	func() {
		defer others.Wait() // deferred: also when fn leaves through runtime.Goexit
		e.runWorker()
	}()
	if failed := e.failed.Load(); failed != nil {
		panic(failed)
	}
}

// forEachState is the state the workers of one Each share.
type forEachState struct {
	n      int64
	next   atomic.Int64
	failed atomic.Pointer[PanicError] // the first panic
	cancel context.CancelFunc
	call   func(i int)
}

// runWorker takes the next index until none is left or a call has panicked.
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
