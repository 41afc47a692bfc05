package router

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// Router takes requests along the one path of the package comment. It is safe
// for concurrent use; its View may be swapped while requests run.
type Router struct {
	cfg        Config
	view       atomic.Pointer[View]
	classifier Classifier
	dispatcher Dispatcher
}

// Handle routes one request and waits for its answer (003 §3).
//
// An error means the request was not accepted; it is a *contract.Error when the
// caller can mend it. Everything that happens to an accepted request, that
// nobody may serve it and that every agent failed included, is a Response.
func (r *Router) Handle(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Response, error) {
	if err := r.accept(req); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout(req))
	defer cancel()
	view, clock := r.view.Load(), r.startClock()

	clf := r.classifier.Classify(ctx, view.classifierInput(req)) // the model proposes
	clock.lap("classify")

	plan := makePlan(view, req, caller, clf, clock.now()) // the arithmetic decides
	clock.lap("match")

	resp := plan.response(req, r.cfg.NewID())
	switch {
	case plan.reason != "":
		r.fallBack(resp, view, req, caller, plan) // nobody may serve it
	case req.Options.DryRun:
		resp.Status = contract.StatusAccepted
	default:
		runs := r.deliver(ctx, req, caller, plan) // one task a part, failover to standbys
		clock.lap("dispatch")
		aggregate(resp, plan, runs)
	}

	clock.stop(resp.Decision)
	r.record(ctx, req, resp, clock)
	return resp, nil
}

// Classify proposes what the request is and decides nothing.
func (r *Router) Classify(ctx context.Context, req *contract.Request, _ *contract.Caller) (*contract.Classification, error) {
	if err := r.accept(req); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout(req))
	defer cancel()
	clf := r.classifier.Classify(ctx, r.view.Load().classifierInput(req))
	return &clf, nil
}

// timeout is how long the request may take: its own wish, else the default.
func (r *Router) timeout(req *contract.Request) time.Duration {
	if ms := req.Options.TimeoutMS; ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	return r.cfg.Timeout
}
