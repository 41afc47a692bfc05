package router

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/inflight"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/session"
	"github.com/caprouter/caprouter/router/plan"
)

// Router takes requests along the one path of the package comment. It is safe
// for concurrent use; its View may be swapped while requests run.
type Router struct {
	cfg        Config
	keep       Keeping
	view       atomic.Pointer[View]
	classifier Classifier
	dispatcher execution.Dispatcher
	redactor   *redact.Redactor
	sessions   *session.Store
	questions  *session.Questions
	keys       keyReserver
	inflight   *inflight.Table
	journal    *history.Journal
	history    *history.Service
	callbacks  *execution.Callbacks
	executor   *execution.Executor
	limiter    *execution.ConcurrencyLimiter // of asynchronous requests
	group      *run.Group                    // work nobody waits for
	open       openCount
	stopping   atomic.Bool // nothing more of what nobody waits for is given out
	closing    sync.Once
	unfinished []audit.Record // decisions of the last process without an outcome; Recover's
}

// Handle routes one request and waits for its answer (003 §3).
//
// An error means the request was not accepted; it is a *contract.Error when the
// caller can mend it. Everything that happens to an accepted request, that
// nobody may serve it and that every agent failed included, is a Response.
func (r *Router) Handle(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Response, error) {
	resp, err := r.handle(ctx, req, caller, nil)
	return r.visibilityFilter(caller).Response(resp), err
}

func (r *Router) handle(ctx context.Context, req *contract.Request, caller *contract.Caller, tell func(*contract.Event)) (*contract.Response, error) {
	j, err := r.accept(ctx, req, caller) // masked, with what its session remembers
	if err != nil {
		return nil, err
	}
	j.tell = tell
	if stored, err := r.reserveKey(ctx, j); stored != nil || err != nil {
		return stored, err // it was sent before
	}
	resp, err := r.work(ctx, j)
	if err != nil {
		r.keys.Release(ctx, j.reservation)
	}
	return resp, err
}

// serve is the way of every accepted request, of one somebody waits for and of
// one that is worked on later. A job that was taken over brings its plan.
func (r *Router) serve(ctx context.Context, j *job) (*contract.Response, error) {
	p := j.plan
	if p == nil {
		clf := r.understand(ctx, j) // the model proposes
		j.clock.lap("classify")

		p = r.makePlan(j, clf) // the arithmetic decides
		j.clock.lap("match")
	}
	j.decided(&p.Decision)

	resp := p.Response(j.req)
	var runs []plan.Outcome
	switch {
	case len(p.Options) > 0:
		r.clarify(ctx, resp, j, p) // the caller decides
	case p.Reason != "":
		if err := r.fallBack(ctx, resp, j, p); err != nil { // nobody may serve it
			return nil, err
		}
		j.clock.lap("fallback")
	case j.dryRun():
		resp.Status = contract.StatusAccepted
	default:
		err := r.commit(ctx, j, p) // on record before anything is given out
		j.clock.lap("record")
		switch {
		case err == nil:
			runs = r.execute(ctx, j, p) // one task a part, failover to standbys
		case j.tracked == nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
			runs = r.tooLate(p)
		default:
			return nil, err
		}
		j.clock.lap("dispatch")
		p.Aggregate(resp, runs)
	}
	return r.conclude(ctx, j, resp, p, runs)
}

// execute runs the plan.
func (r *Router) execute(ctx context.Context, j *job, p *plan.Plan) []plan.Outcome {
	mode := r.executor.Synchronous()
	if j.tracked != nil {
		mode = r.executor.Asynchronous(j.tracked, r.stopping.Load)
	}
	return r.executor.Execute(ctx, &execution.Run{
		Mode: mode, Request: j.accepted(), Fleet: j.view.Fleet, Plan: p, Previous: j.before,
		Emit: func(ev *contract.Event) { r.tellEvent(j, ev) },
	})
}

// tooLate reports the parts of a plan that was not on record in time: nothing of it
// was given out.
func (r *Router) tooLate(p *plan.Plan) []plan.Outcome {
	outcomes := make([]plan.Outcome, len(p.Parts))
	for i := range p.Parts {
		outcomes[i] = r.executor.NotSent(&p.Parts[i], contract.TaskDeadlineExceeded, "the deadline passed before the decision was on record")
	}
	return outcomes
}

// Result accepts a result that an agent posts to its callback URL.
func (r *Router) Result(ctx context.Context, grant contract.TaskGrant, res *contract.Result) error {
	return r.callbacks.AcceptResult(ctx, grant, res)
}

// Progress emits the progress that an agent reports to the readers of the events.
func (r *Router) Progress(ctx context.Context, grant contract.TaskGrant, p *contract.Progress) error {
	return r.callbacks.AcceptProgress(ctx, grant, p)
}

// makePlan decides which agents execute the request.
func (r *Router) makePlan(j *job, c contract.Classification) *plan.Plan {
	return plan.New(&plan.Input{
		Catalogue: j.view.Catalogue, Index: j.view.Index, Fleet: j.view.Fleet, Live: j.live(),
		Caller: j.caller, Prompt: j.prompt, PromptBytes: len(j.req.Content.Prompt), Only: j.only,
		DataClasses: j.masking.Kinds(), AlreadyAsked: j.session.AskedCaller,
		Classification: c, DecisionID: r.cfg.NewID(), Now: j.clock.now(),
	})
}

// understand returns the pinned classification, or else what the classifier
// proposes.
func (r *Router) understand(ctx context.Context, j *job) contract.Classification {
	if j.pinned != nil {
		return j.pinned.Current()
	}
	return r.classifier.Classify(ctx, j.classifierInput())
}

// Classify proposes what the request is and decides nothing.
func (r *Router) Classify(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Classification, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout(req))
	defer cancel()
	job, err := r.accept(ctx, req, caller)
	if err != nil {
		return nil, err
	}
	clf := r.classifier.Classify(ctx, job.classifierInput())
	visible := r.visibilityFilter(caller).Classification(&clf)
	return &visible, nil
}
