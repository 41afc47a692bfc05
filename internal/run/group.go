package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Group owns goroutines: it starts them, stops all of them as soon as one fails,
// and waits for them. Create it with New. It is safe for concurrent use, also by
// the group's own goroutines, except for Wait.
type Group struct {
	// callWithContext calls fn with the group's context, and drops an error that
	// only repeats why that context ended. It is a closure so that the context is
	// not stored in a field.
	callWithContext func(fn func(context.Context) error) error
	cancel          context.CancelCauseFunc

	mu    sync.Mutex
	idle  sync.Cond // signals that live is 0; its lock is mu
	live  int       // goroutines that have not returned
	err   error     // the first failure
	ended bool      // Wait has returned
}

// New returns a Group without goroutines. It stops when ctx ends.
func New(ctx context.Context) *Group {
	ctx, cancel := context.WithCancelCause(ctx)
	g := &Group{cancel: cancel}
	g.idle.L = &g.mu
	g.callWithContext = func(fn func(context.Context) error) error {
		err := fn(ctx)
		if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
			return nil
		}
		return err
	}
	return g
}

// Go starts fn in a goroutine. Its errors are prefixed with the name, for example
// "watch registry". fn must return soon after its context is done. An error or a
// panic stops the group; nil ends only this goroutine. If the group is stopping, fn
// is still called, with a context that is done. After Wait has returned, Go has no
// effect.
func (g *Group) Go(name string, fn func(ctx context.Context) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return
	}
	g.live++
	go g.supervise(name, fn)
}

// Stop cancels the context of the group's goroutines with the cause. It does not
// wait, and only the first call has an effect.
func (g *Group) Stop(cause error) { g.cancel(cause) }

// Wait blocks until every goroutine of the group has returned, and returns the
// first error, prefixed with the name of its goroutine. Errors that only report that
// the group was stopped, or that its parent context ended, do not count. A goroutine
// of the group must not call Wait.
func (g *Group) Wait() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.live > 0 {
		g.idle.Wait()
	}
	g.ended = true
	g.cancel(nil) // releases the context if nothing else has stopped the group
	return g.err
}

// supervise calls fn and records its error or panic. It does so in a deferred
// function, because runtime.Goexit runs nothing else.
func (g *Group) supervise(name string, fn func(context.Context) error) {
	err := errGoexit
	defer func() {
		if v := recover(); v != nil {
			err = newPanicError(v)
		}
		g.recordExit(name, err)
	}()
	err = g.callWithContext(fn)
}

func (g *Group) recordExit(name string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
		if g.err == nil {
			g.err = err
		}
		g.cancel(err)
	}
	if g.live--; g.live == 0 {
		g.idle.Broadcast()
	}
}
