package router

import (
	"context"
	"sync"

	"github.com/caprouter/caprouter/contract"
)

// Stream is Handle that tells what happens on the way: the decision, each task
// that is given out, its progress and its end. emit is called by one goroutine at
// a time and never after Stream has returned; the answer is the return value.
func (r *Router) Stream(ctx context.Context, req *contract.Request, caller *contract.Caller, emit func(*contract.Event)) (*contract.Response, error) {
	filter := r.visibilityFilter(caller)
	visible := filter.Events(func() *contract.Decision { return nil })
	l := &listener{emit: func(ev *contract.Event) { emit(visible.Event(ev)) }}
	defer l.close()
	resp, err := r.handle(ctx, req, caller, l.tell)
	return filter.Response(resp), err
}

// listener lets one goroutine at a time speak, and nobody after the end: progress
// comes when agents please.
type listener struct {
	mu   sync.Mutex
	emit func(*contract.Event) // nil after the end
}

func (l *listener) tell(ev *contract.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.emit != nil {
		l.emit(ev)
	}
}

func (l *listener) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.emit = nil
}

// announce tells the decision, once.
func (r *Router) announce(j *job, d *contract.Decision) {
	if j.tell == nil || j.announced {
		return
	}
	j.announced = true
	r.tellEvent(j, &contract.Event{Type: contract.EventDecision, Decision: d})
}

func (r *Router) tellEvent(j *job, ev *contract.Event) {
	if j.tell == nil {
		return
	}
	ev.RequestID, ev.At = j.req.RequestID, r.cfg.Now().UTC()
	j.tell(ev)
}

// publisher tells the events of a request nobody waits for to the event stream.
// Events may be lost, the record is not: trouble is logged at debug level.
func (r *Router) publisher(ctx context.Context) func(*contract.Event) {
	if r.keep.Events == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	return func(ev *contract.Event) {
		ctx, cancel := context.WithTimeout(ctx, keepTimeout)
		defer cancel()
		if err := r.keep.Events.Publish(ctx, ev); err != nil {
			r.cfg.Logger.DebugContext(ctx, "an event is lost", "request_id", ev.RequestID, "type", string(ev.Type), "err", err)
		}
	}
}
