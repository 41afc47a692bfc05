package router

import (
	"context"
	"sync/atomic"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/redact"
)

// Router takes requests along the one path of the package comment. It is safe
// for concurrent use; its View may be swapped while requests run.
type Router struct {
	cfg        Config
	view       atomic.Pointer[View]
	classifier Classifier
	dispatcher Dispatcher
	redactor   *redact.Redactor
	sessions   *remembered[sessionID, session]
	asked      *remembered[string, question] // by request id
}

// Handle routes one request and waits for its answer (003 §3).
//
// An error means the request was not accepted; it is a *contract.Error when the
// caller can mend it. Everything that happens to an accepted request, that
// nobody may serve it and that every agent failed included, is a Response.
func (r *Router) Handle(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout(req))
	defer cancel()
	clock := r.startClock()

	job, err := r.accept(req, caller) // masked, with what its session remembers
	if err != nil {
		return nil, err
	}
	clock.lap("mask")

	clf := r.understand(ctx, job) // the model proposes
	clock.lap("classify")

	plan := makePlan(job, clf, clock.now()) // the arithmetic decides
	clock.lap("match")

	resp := plan.response(job, r.cfg.NewID())
	var runs []taskRun
	switch {
	case len(plan.options) > 0:
		r.clarify(resp, job, plan) // the caller decides
	case plan.reason != "":
		r.fallBack(ctx, resp, job, plan) // nobody may serve it
		clock.lap("fallback")
	case job.dryRun():
		resp.Status = contract.StatusAccepted
	default:
		runs = r.deliver(ctx, job, plan) // one task a part, failover to standbys
		clock.lap("dispatch")
		aggregate(resp, plan, runs)
	}

	clock.stop(resp.Decision)
	r.remember(job, resp, plan, runs)
	r.record(ctx, job, resp, clock)
	return resp, nil
}

// understand says what the request is: what is settled already, else what the
// classifier proposes.
func (r *Router) understand(ctx context.Context, j *job) contract.Classification {
	if j.settled != nil {
		return j.settled.now()
	}
	return r.classifier.Classify(ctx, j.classifierInput())
}

// Classify proposes what the request is and decides nothing.
func (r *Router) Classify(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Classification, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout(req))
	defer cancel()
	job, err := r.accept(req, caller)
	if err != nil {
		return nil, err
	}
	clf := r.classifier.Classify(ctx, job.classifierInput())
	return &clf, nil
}
