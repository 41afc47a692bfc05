package router

import (
	"context"
	"time"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/idempotency"
	"github.com/caprouter/caprouter/internal/inflight"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/session"
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
	session session.Session // before the request; empty without one
	pinned  *session.Pinned // nil if the request must be classified
	only    string          // the one agent that may be a candidate; "" = any
	clock   *clock

	tell        func(*contract.Event) // what happens on the way; nil = nobody listens
	inflight    *inflight.Request
	tracked     *execution.OwnedRequest // the record of a request nobody waits for; nil for any other
	permit      execution.Permit        // held while it is executed
	plan        *plan.Plan              // made in an earlier life of the request
	started     bool                    // … and on record, with whatever was given out
	before      []requests.Task         // what was given out then
	reservation idempotency.Reservation // of its idempotency key

	announced bool // the decision was told
}

// begin masks an accepted request and loads its session.
func (r *Router) begin(ctx context.Context, view *View, req *contract.Request, caller *contract.Caller) (*job, error) {
	j := r.newJob(view, req, caller)
	j.only = restriction(req)
	j.session = r.sessions.Load(ctx, j.sessionKey())
	j.mask()
	if err := r.pin(ctx, j); err != nil {
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
		turns = j.session.History()
	}
	turns = turns[max(0, len(turns)-session.MaxTurns):] // no model is shown more
	j.history = make([]contract.Turn, len(turns))
	for i, turn := range turns {
		j.history[i] = contract.Turn{Role: turn.Role, Content: j.masking.MaskText(turn.Content)}
	}
	j.prompt = j.masking.MaskText(j.req.Content.Prompt)
	j.locale = j.masking.MaskText(j.req.Metadata.Locale)
}

// pin finds a classification for the request that makes the classifier
// unnecessary: the reading that the caller chose, or one of its session.
func (r *Router) pin(ctx context.Context, j *job) (err error) {
	if j.req.Clarification != nil {
		j.pinned, err = r.questions.Choose(ctx, j.caller, j.req.Clarification)
		return err
	}
	next := session.Next{
		Trigger: r.cfg.SessionTrigger, Prompt: j.prompt, OnlyAgent: j.only,
		MayUse: func(agentID string) bool { return j.view.Catalogue.Agent(agentID) != nil && j.caller.MayUse(agentID) },
	}
	var agent string
	if j.pinned, agent = j.session.Pin(next); agent != "" {
		j.only = agent
	}
	return nil
}

// accepted is the request as it is executed.
func (j *job) accepted() *execution.Request {
	return &execution.Request{
		Request: j.req, Caller: j.caller, Masking: j.masking, Prompt: j.prompt, Locale: j.locale, Turns: j.history, Only: j.only,
	}
}

// sessionKey is the key of the request's session, "" without one.
func (j *job) sessionKey() string { return session.Key(j.caller, j.req.SessionID) }

// updateSession stores what the next request of the session needs.
func (r *Router) updateSession(ctx context.Context, j *job, resp *contract.Response, p *plan.Plan, outcomes []plan.Outcome) {
	key := j.sessionKey()
	if key == "" || j.dryRun() {
		return
	}
	ended := &session.Ended{
		RequestID: resp.RequestID, Prompt: j.prompt, Response: resp, MaskText: j.masking.MaskText, Pinned: j.pinned,
		Tasks: make([]session.Task, len(outcomes)),
	}
	if len(p.Parts) > 0 {
		ended.Classification = &p.Decision.Classification
	}
	for i := range outcomes {
		ended.Tasks[i] = session.Task{
			AgentID: outcomes[i].Report.AgentID, Intent: p.Parts[i].Intent, Domains: p.Parts[i].Domains, Result: outcomes[i].Result,
		}
	}
	ctx, cancel := j.closing(ctx)
	defer cancel()
	if err := r.sessions.Update(ctx, key, func(s session.Session) session.Session { return s.After(ended) }); err != nil {
		r.cfg.Logger.WarnContext(ctx, "cannot store session", "request_id", resp.RequestID, "err", err)
	}
}

// subject is the request as the audit log has it.
func (j *job) subject() history.Subject {
	return history.Subject{Caller: j.caller, Prompt: j.prompt, SessionKey: j.sessionKey()}
}

// dryRun reports whether nothing may be touched.
func (j *job) dryRun() bool { return j.req.Options.DryRun }

// decided shows the decision to who asks about the request meanwhile.
func (j *job) decided(d *contract.Decision) {
	j.inflight.SetDecision(d)
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
		Catalogue: j.view.Catalogue,
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
