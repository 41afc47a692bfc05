package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Group owns goroutines: it starts them, tells them all to stop as soon as one
// fails, and waits for them. Make one with New. Its methods may be called from
// any goroutine, those of the group included (but for Wait).
type Group struct {
	// call runs fn with the group's context and drops an error that only
	// repeats why that context ended. A closure, because a context is passed
	// and not kept.
	call   func(fn func(context.Context) error) error
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	idle  sync.Cond // live has become 0; its lock is mu
	live  int       // goroutines that have not returned
	err   error     // the first failure
	ended bool      // Wait has returned
}

// New returns a running Group without goroutines. When ctx ends, the group
// stops.
func New(ctx context.Context) *Group {
	ctx, cancel := context.WithCancelCause(ctx)
	g := &Group{cancel: cancel}
	g.idle.L = &g.mu
	g.call = func(fn func(context.Context) error) error {
		err := fn(ctx)
		if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
			return nil
		}
		return err
	}
	return g
}

// Go starts fn in a goroutine of its own. The name says what it does ("watch
// registry") and stands before its error. fn must return soon after its
// context is done. An error or a panic stops the whole group; nil ends this
// goroutine only. In a group that is stopping fn still runs, with a context
// that is done already; after Wait has returned Go does nothing.
func (g *Group) Go(name string, fn func(ctx context.Context) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return
	}
	g.live++
	go g.supervise(name, fn)
}

// Stop cancels the context of the group's goroutines, with the cause they get
// from context.Cause. It does not wait, and only the first call counts.
func (g *Group) Stop(cause error) { g.cancel(cause) }

// Wait blocks until every goroutine of the group has returned and gives the
// first failure, which names its goroutine. Errors that only say that the
// group was stopped, or that its parent context ended, are no failure. A
// goroutine of the group must not call it.
func (g *Group) Wait() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.live > 0 {
		g.idle.Wait()
	}
	g.ended = true
	g.cancel(nil) // frees the context when nothing else has stopped the group
	return g.err
}

// supervise runs fn and makes whatever ends it an error. The work is in a
// deferred call, because runtime.Goexit runs nothing else.
func (g *Group) supervise(name string, fn func(context.Context) error) {
	err := errGoexit
	defer func() {
		if v := recover(); v != nil {
			err = newPanicError(v)
		}
		g.recordExit(name, err)
	}()
	err = g.call(fn)
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
