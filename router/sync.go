package router

import (
	"context"
	"sync"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/inflight"
)

// Handle routes one request and waits for the response.
//
// An error means that the request was not accepted; it is a *contract.Error if the
// caller can act on it. Once a request is accepted, every end of it is a Response,
// even if no agent is eligible or all of them fail.
func (r *Router) Handle(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Response, error) {
	resp, _, err := r.HandleJSON(ctx, req, caller)
	return resp, err
}

// HandleJSON is Handle, and returns the response as JSON if it was encoded for the audit
// log already, or nil.
func (r *Router) HandleJSON(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Response, []byte, error) {
	run, resp, err := r.handleSync(ctx, req, caller, discardEvents)
	resp = r.view.filter(caller).Response(resp)
	if err != nil {
		return resp, nil, err
	}
	return resp, run.encoded.JSON(resp), nil
}

// Stream is Handle with events: the decision, and the start, the progress and the
// end of each task. emit is called by one goroutine at a time, and never after
// Stream has returned. The response is returned and not emitted.
func (r *Router) Stream(
	ctx context.Context, req *contract.Request, caller *contract.Caller, emit func(*contract.Event),
) (*contract.Response, error) {
	filter := r.view.filter(caller)
	// Titles come from the decision event, which is always first.
	visible := filter.Events(func() *contract.Decision { return nil })
	stream := &eventStream{emit: func(ev *contract.Event) { emit(visible.Event(ev)) }}
	defer stream.close()
	_, resp, err := r.handleSync(ctx, req, caller, stream.send)
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
// idempotency key of the request was used before. The run is nil if the request was not
// accepted.
func (r *Router) handleSync(
	ctx context.Context, req *contract.Request, caller *contract.Caller, emit func(*contract.Event),
) (run *requestRun, resp *contract.Response, err error) {
	if run, err = r.acceptRequest(ctx, req, caller); err != nil {
		return nil, nil, err
	}
	if stored, err := run.reserveKey(ctx, r.keys); stored != nil || err != nil {
		return run, stored, err
	}
	run.emit = func(ev *contract.Event) {
		ev.RequestID, ev.At = run.RequestID, r.cfg.Now().UTC()
		emit(ev)
	}
	recorder := &syncOutcomeRecorder{router: r, run: run}
	if resp, err = r.serveSync(ctx, run, recorder); err != nil && !recorder.isStored() {
		r.keys.Release(ctx, run.reservation, run.RequestID)
	}
	return run, resp, err
}

// serveSync runs the pipeline by the deadline of the request. A disconnect of the
// caller cancels the request, unless it has an idempotency key: then it is executed
// to its end, so that the caller can send it again and get the response. The recorder is not
// used for a dry run.
func (r *Router) serveSync(ctx context.Context, run *requestRun, recorder *syncOutcomeRecorder) (resp *contract.Response, err error) {
	if run.reservation.Held() {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, r.acceptor.RequestTimeout(run.Request.Request))
	defer cancel()
	if run.isDryRun() {
		run.recorder = noOutcomeRecorder{}
		return r.runPipeline(ctx, run)
	}
	if err := r.cfg.Storage.AuditLog.Admit(run.Caller); err != nil {
		return nil, err
	}
	ctx, cancelCause := context.WithCancelCause(ctx)
	defer cancelCause(nil)
	run.inflight = inflight.NewRequest(run.RequestID, run.TraceID, run.Caller, cancelCause)
	recorder.deadline, _ = ctx.Deadline()
	run.recorder = recorder
	run.persistence = r.executor.InMemory()
	if r.cfg.Storage.Requests.Enabled() {
		run.persistence = r.executor.Synchronous(recorder)
		emit := run.emit
		run.emit = func(ev *contract.Event) {
			recorder.publish(ev)
			emit(ev)
		}
	}
	r.inflight.Add(run.inflight)
	defer func() { r.inflight.Remove(run.inflight, resp) }()
	defer recorder.close()
	resp, err = r.runPipeline(ctx, run)
	return recorder.finish(ctx, resp, err)
}

// Classify returns the proposal of the classifier for a request, and decides
// nothing.
func (r *Router) Classify(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Classification, error) {
	ctx, cancel := context.WithTimeout(ctx, r.acceptor.RequestTimeout(req))
	defer cancel()
	run, err := r.acceptRequest(ctx, req, caller)
	if err != nil {
		return nil, err
	}
	in := run.classifierInput()
	proposed := r.classifier.Classify(ctx, in)
	classifier.ImplyDomains(run.view.Catalogue, &proposed)
	proposed.Evidence = classifier.ListEvidence(&in, &proposed)
	visible := r.view.filter(caller).Classification(&proposed)
	return &visible, nil
}
