package router

import (
	"context"
	"errors"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/events"
)

// Events tells what happens to a request until its end: those of an asynchronous
// one after the given sequence, where they are still known, else its state first.
// emit gets sequence 0 for what is no event of the stream.
func (r *Router) Events(ctx context.Context, id string, caller *contract.Caller, after uint64, emit func(uint64, *contract.Event) error) error {
	f, err := r.find(ctx, id, caller)
	if err != nil {
		return err
	}
	visible := r.visibilityFilter(caller, f.owner).Events(func() *contract.Decision { return r.decisionOf(ctx, id) })
	show := func(seq uint64, ev *contract.Event) error { return emit(seq, visible.Event(ev)) }
	if f.record == nil || r.keep.Events == nil {
		if f.inflight != nil { // somebody else waits for it
			select {
			case <-f.inflight.Done():
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		_, err := r.emitState(ctx, id, caller, show)
		return err
	}
	// An answer too long for the stream is on record.
	whole := func(seq uint64, ev *contract.Event) error {
		if ev.Type == contract.EventFinal && ev.Response == nil {
			resp, err := r.whole(ctx, id, caller)
			if err != nil {
				return err
			}
			filled := *ev // events are shared
			filled.Response = resp
			ev = &filled
		}
		return show(seq, ev)
	}
	err = r.keep.Events.Read(ctx, id, after, whole)
	for errors.Is(err, events.ErrGone) {
		var from uint64
		if from, err = r.keep.Events.Position(ctx); err != nil { // before the state: nothing falls between
			return r.storeTrouble(ctx, "the events cannot be read", err)
		}
		if ended, err := r.emitState(ctx, id, caller, show); ended || err != nil {
			return err
		}
		err = r.keep.Events.Follow(ctx, id, from, whole)
	}
	return err
}

// emitState stands for events that are gone, and says whether the request has
// ended.
func (r *Router) emitState(ctx context.Context, id string, caller *contract.Caller, emit func(uint64, *contract.Event) error) (ended bool, err error) {
	resp, err := r.whole(ctx, id, caller)
	if err != nil {
		return false, err
	}
	at := r.cfg.Now().UTC()
	if err := emit(0, &contract.Event{Type: contract.EventState, RequestID: id, At: at, Response: resp}); err != nil || !resp.Status.Terminal() {
		return false, err
	}
	return true, emit(0, &contract.Event{Type: contract.EventFinal, RequestID: id, At: at, Response: resp})
}

// whole is a request the caller may see, and all that is on record of it.
func (r *Router) whole(ctx context.Context, id string, caller *contract.Caller) (*contract.Response, error) {
	f, err := r.find(ctx, id, caller)
	if err != nil {
		return nil, err
	}
	return f.response(id)
}

// decisionOf is the decision on an asynchronous request; nil before there is one.
func (r *Router) decisionOf(ctx context.Context, id string) *contract.Decision {
	rec, err := r.keep.Book.Get(ctx, id)
	if err != nil {
		return nil
	}
	return rec.Decision
}
