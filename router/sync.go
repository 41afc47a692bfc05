package router

import (
	"context"
	"sync"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/inflight"
	"github.com/caprouter/caprouter/router/plan"
)

// Stream is Handle with events: the decision, and the start, the progress and the
// end of each task. emit is called by one goroutine at a time, and never after
// Stream has returned. The response is returned and not emitted.
func (r *Router) Stream(
	ctx context.Context, req *contract.Request, caller *contract.Caller, emit func(*contract.Event),
) (*contract.Response, error) {
	filter := r.visibilityFilter(caller)
	// The decision comes first, so there is no other to learn the titles from.
	visible := filter.Events(func() *contract.Decision { return nil })
	stream := &eventStream{emit: func(ev *contract.Event) { emit(visible.Event(ev)) }}
	defer stream.close()
	resp, err := r.handleSync(ctx, req, caller, stream.send)
	return filter.Response(resp), err
}

// eventStream serializes the events of one request. It drops those that arrive
// after close, because agents may report progress at any time.
type eventStream struct {
	mu     sync.Mutex
	emit   func(*contract.Event)
	closed bool
}

func (s *eventStream) send(ev *contract.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.emit(ev)
	}
}

func (s *eventStream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

func discardEvents(*contract.Event) {}

// handleSync routes a synchronous request. It replays the stored response if the
// idempotency key of the request was used before.
func (r *Router) handleSync(
	ctx context.Context, req *contract.Request, caller *contract.Caller, emit func(*contract.Event),
) (*contract.Response, error) {
	run, err := r.acceptor.acceptRequest(ctx, r.view.Load(), req, caller)
	if err != nil {
		return nil, err
	}
	if stored, err := r.reserveKey(ctx, run); stored != nil || err != nil {
		return stored, err
	}
	run.emit = func(ev *contract.Event) {
		ev.RequestID, ev.At = run.RequestID, r.cfg.Now().UTC()
		emit(ev)
	}
	resp, err := r.serveSync(ctx, run)
	if err != nil {
		r.keys.Release(ctx, run.reservation)
	}
	return resp, err
}

// serveSync runs the pipeline by the deadline of the request. A disconnect of the
// caller cancels the request, unless it has an idempotency key: then it is executed
// to its end, so that the caller can send it again and get the response.
func (r *Router) serveSync(ctx context.Context, run *requestRun) (resp *contract.Response, err error) {
	if run.reservation.Held() {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancelCause := context.WithCancelCause(ctx)
	defer cancelCause(nil)
	ctx, cancel := context.WithTimeout(ctx, r.acceptor.requestTimeout(run.Request.Request))
	defer cancel()
	run.inflight = inflight.NewRequest(run.RequestID, run.TraceID, run.Caller, cancelCause)
	if run.isDryRun() {
		run.recorder = noRecorder{}
		return r.runPipeline(ctx, run)
	}
	run.mode = r.executor.Synchronous()
	run.recorder = &syncRecorder{journal: r.journal, run: run}
	r.inflight.Add(run.inflight)
	defer func() { r.inflight.Remove(run.inflight, resp) }()
	return r.runPipeline(ctx, run)
}

// noRecorder is the recorder of dry runs, which change nothing.
type noRecorder struct{}

func (noRecorder) RecordDecision(context.Context, *plan.Plan) error { return nil }

func (noRecorder) RecordOutcome(_ context.Context, resp *contract.Response, _ bool) (*contract.Response, error) {
	return resp, nil
}

// syncRecorder is the recorder of synchronous requests: they are recorded in the
// audit log only.
type syncRecorder struct {
	journal *history.Journal
	run     *requestRun
}

func (s *syncRecorder) RecordDecision(ctx context.Context, p *plan.Plan) error {
	ctx, cancel := s.run.detachedContext(ctx)
	defer cancel()
	return s.journal.RecordDecision(ctx, s.run.Subject(), s.run.Request.Request, &p.Decision)
}

func (s *syncRecorder) RecordOutcome(ctx context.Context, resp *contract.Response, executed bool) (*contract.Response, error) {
	ctx, cancel := s.run.detachedContext(ctx)
	defer cancel()
	if err := s.journal.RecordResponse(ctx, s.run.Subject(), resp); err != nil && !executed {
		return nil, err // nothing was done, so the caller may try again
	}
	return resp, nil
}
