package history

import (
	"context"
	"errors"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/events"
)

// emitFunc receives an event with its sequence number, which is 0 if the event was
// made from the state of the request.
type emitFunc = func(seq uint64, ev *contract.Event) error

// Events emits the events of an asynchronous request after a sequence number until
// the request ends. If events are not stored any more, the state of the request
// comes first. For a synchronous request, the state is emitted when it has ended.
func (s *Service) Events(ctx context.Context, id string, caller *contract.Caller, after uint64, emit func(uint64, *contract.Event) error) error {
	found, err := s.findVisible(ctx, id, caller)
	if err != nil {
		return err
	}
	filter := s.filter(caller, found.owner).Events(func() *contract.Decision { return s.storedDecision(ctx, id) })
	emitVisible := func(seq uint64, ev *contract.Event) error { return emit(seq, filter.Event(ev)) }
	if found.elsewhere {
		if found, err = s.awaitEnd(ctx, id); err != nil {
			return err
		}
	}
	if found.record == nil {
		if found.inFlight != nil {
			select {
			case <-found.inFlight.Done():
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		_, err := s.emitState(ctx, id, caller, emitVisible)
		return err
	}
	return s.followEvents(ctx, id, caller, after, emitVisible)
}

// followEvents emits the events of an asynchronous request until it ends.
func (s *Service) followEvents(ctx context.Context, id string, caller *contract.Caller, after uint64, emit emitFunc) error {
	complete := func(seq uint64, ev *contract.Event) error {
		if ev.Type == contract.EventFinal && ev.Response == nil {
			// The response was too long for the event log.
			resp, err := s.currentResponse(ctx, id, caller)
			if err != nil {
				return err
			}
			final := *ev // other readers share the event
			final.Response = resp
			ev = &final
		}
		return emit(seq, ev)
	}
	err := s.cfg.Events.Read(ctx, id, after, complete)
	for errors.Is(err, events.ErrGone) {
		// The position is read before the state, so that no event is missed.
		var from uint64
		if from, err = s.cfg.Events.Position(ctx); err != nil {
			return s.storeError(ctx, "the events cannot be read", err)
		}
		if ended, err := s.emitState(ctx, id, caller, emit); ended || err != nil {
			return err
		}
		err = s.cfg.Events.Follow(ctx, id, from, complete)
	}
	return err
}

// emitState emits the state of the request instead of its events, and reports
// whether the request has ended.
func (s *Service) emitState(ctx context.Context, id string, caller *contract.Caller, emit emitFunc) (ended bool, err error) {
	resp, err := s.currentResponse(ctx, id, caller)
	if err != nil {
		return false, err
	}
	at := s.cfg.Now().UTC()
	if err := emit(0, &contract.Event{Type: contract.EventState, RequestID: id, At: at, Response: resp}); err != nil || !resp.Status.Terminal() {
		return false, err
	}
	return true, emit(0, &contract.Event{Type: contract.EventFinal, RequestID: id, At: at, Response: resp})
}

// currentResponse returns the unfiltered response to a request that the caller may
// see.
func (s *Service) currentResponse(ctx context.Context, id string, caller *contract.Caller) (*contract.Response, error) {
	found, err := s.findVisible(ctx, id, caller)
	if err != nil {
		return nil, err
	}
	return found.response()
}

// storedDecision is the decision on an asynchronous request, or nil if there is none
// yet.
func (s *Service) storedDecision(ctx context.Context, id string) *contract.Decision {
	rec, err := s.cfg.Requests.Get(ctx, id)
	if err != nil {
		return nil
	}
	return rec.Decision
}
