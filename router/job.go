package router

import (
	"context"
	"time"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/matcher"
	"github.com/caprouter/caprouter/router/plan"
)

// job is one accepted request: what the caller sent, what of it a model and a
// log may see, and what is known of it before anybody looks at its words.
type job struct {
	req     *contract.Request
	caller  *contract.Caller
	view    *View
	masking *redact.Masking
	prompt  string          // masked
	history []contract.Turn // masked: the request's, else the session's
	locale  string          // masked: nobody has looked at what it holds
	session session         // as it was when the request came; zero without one
	settled *settled        // what the request is, where that needs no classifier
	only    string          // the one agent that may be a candidate; "" = any
	clock   *clock

	tell     func(*contract.Event)   // what happens on the way; nil = nobody listens
	activity *activity               // nil for a dry run, which nobody can ask about
	tracked  *execution.OwnedRequest // the record of a request nobody waits for; nil for any other
	permit   execution.Permit        // held while it is executed
	plan     *plan.Plan              // made in an earlier life of the request
	started  bool                    // … and on record, with whatever was given out
	before   []requests.Task         // what was given out then
	claimed  string                  // the key under which it is known (Idempotency-Key)

	announced bool // the decision was told
}

// settled is a classification that was made before, or by the caller's choice.
type settled struct {
	clf    contract.Classification
	reason string
}

// begin masks an accepted request and recalls what is remembered of it.
func (r *Router) begin(ctx context.Context, view *View, req *contract.Request, caller *contract.Caller) (*job, error) {
	j := r.newJob(view, req, caller)
	j.only = restriction(req)
	if req.SessionID != "" {
		j.session = r.recall(ctx, sessionKey(req, caller))
	}
	j.mask()
	if err := r.settle(ctx, j); err != nil {
		return nil, err
	}
	j.clock.lap("mask")
	return j, nil
}

func (r *Router) newJob(view *View, req *contract.Request, caller *contract.Caller) *job {
	return &job{permit: execution.NoPermit{}, req: req, caller: caller, view: view, masking: r.redactor.StartMasking(), clock: r.startClock()}
}

// mask hides what nobody but the caller and entitled agents may see. The history
// comes first: it is the older text, so that its placeholders are.
func (j *job) mask() {
	turns := j.req.History
	if len(turns) == 0 {
		turns = j.session.said()
	}
	turns = turns[max(0, len(turns)-maxTurns):] // no model is shown more
	j.history = make([]contract.Turn, len(turns))
	for i, turn := range turns {
		j.history[i] = contract.Turn{Role: turn.Role, Content: j.masking.MaskText(turn.Content)}
	}
	j.prompt = j.masking.MaskText(j.req.Content.Prompt)
	j.locale = j.masking.MaskText(j.req.Metadata.Locale)
}

// settle finds out whether the request needs a classifier at all: not when the
// caller chose a reading, nor when the session says what comes next.
func (r *Router) settle(ctx context.Context, j *job) error {
	if j.req.Clarification != nil {
		return r.settleByChoice(ctx, j)
	}
	if j.req.SessionID != "" {
		r.settleBySession(j)
	}
	return nil
}

// accepted is the request as it is executed.
func (j *job) accepted() *execution.Request {
	return &execution.Request{
		Request: j.req, Caller: j.caller, Masking: j.masking, Prompt: j.prompt, Locale: j.locale, Turns: j.history, Only: j.only,
	}
}

// dryRun reports whether nothing may be touched.
func (j *job) dryRun() bool { return j.req.Options.DryRun }

// decided shows the decision to who asks about the request meanwhile.
func (j *job) decided(d *contract.Decision) {
	if j.activity != nil {
		j.activity.decided(d)
	}
}

// live is the state of the agents now. A request nobody waits for is not decided by
// it: who is busy or down at this moment will have time later.
func (j *job) live() matcher.Live {
	if j.tracked != nil {
		return nil
	}
	return j.view.Live
}

func (j *job) classifierInput() classifier.Input {
	return classifier.Input{
		Prompt:    j.prompt,
		History:   j.history,
		Locale:    j.locale,
		Registry:  j.view.Registry,
		Lexical:   j.view.Lexical,
		Partition: partitionOf(j.caller),
	}
}

// partitionOf names those whom the caller shares a model's answers with: its
// tenant, or those without one that the same issuer vouches for.
func partitionOf(caller *contract.Caller) string {
	if caller.Tenant != "" {
		return "tenant " + caller.Tenant
	}
	return "issuer " + caller.Issuer
}

// now is the classification as it goes into the decision. No model and no
// words were asked for it now: it is as old as what it repeats.
func (s *settled) now() contract.Classification {
	clf := s.clf
	clf.Source, clf.Reason = contract.SourcePinned, s.reason
	clf.LatencyMS, clf.ModelUse, clf.Alternatives = 0, nil, nil
	return clf
}

// restriction is the one agent the caller wants, "" for any.
func restriction(req *contract.Request) string {
	if req.AgentID == nil {
		return ""
	}
	return *req.AgentID
}

// timeout is how long the request may take: its own wish, else the default.
func (r *Router) timeout(req *contract.Request) time.Duration {
	switch ms := req.Options.TimeoutMS; {
	case ms > 0:
		return time.Duration(ms) * time.Millisecond
	case req.Options.Mode == contract.ModeAsync:
		return contract.DefaultAsyncTimeoutMS * time.Millisecond
	}
	return r.cfg.Timeout
}
