package router

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/router/plan"
)

// end is the end of the record. One that was written before it was acknowledged is
// this one too.
func endRecord(ctx context.Context, t *execution.OwnedRequest, resp *contract.Response, now time.Time) (*requests.Record, error) {
	rec, err := t.ChangeUntilStored(ctx, func(rec *requests.Record) error { return rec.End(resp.Status, resp, now) })
	if errors.Is(err, requests.ErrEnded) && rec != nil && rec.EndedAt.Equal(now) && rec.Owner == t.Owner && rec.Epoch == t.Epoch {
		return rec, nil
	}
	return rec, err
}

// commit puts the plan on record before anything of it is given out. What cannot
// be recorded is not done.
func (r *Router) commit(ctx context.Context, j *job, p *plan.Plan) error {
	var cancel context.CancelFunc
	switch {
	case errors.Is(context.Cause(ctx), errHandedBack):
		return errHandedBack
	case j.tracked == nil:
		// Who leaves now does not leave a decision without an end behind.
		ctx, cancel = j.closing(ctx)
		defer cancel()
	case ctx.Err() != nil:
		// The time is up before anything was given out: the decision is put on
		// record all the same, and each task says that it came too late.
		ctx, cancel = afterwards(ctx)
		defer cancel()
	}
	var steps []func(context.Context) error
	if j.tracked != nil && j.plan == nil {
		steps = append(steps, planRecord(j.tracked, p))
	}
	if !j.started {
		steps = append(steps, func(ctx context.Context) error { return r.audited(ctx, decisionRecord(j, p)) })
		if j.tracked != nil {
			steps = append(steps, startRecord(j.tracked))
		}
	}
	for _, step := range steps {
		if err := j.patiently(ctx, step); err != nil {
			return err
		}
	}
	r.announce(j, &p.Decision)
	return nil
}

func planRecord(t *execution.OwnedRequest, p *plan.Plan) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := t.Change(ctx, func(rec *requests.Record) error { return rec.Plan(&p.Decision, p.StoredParts(), p.Omitted) })
		return err
	}
}

func startRecord(t *execution.OwnedRequest) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := t.Change(ctx, func(rec *requests.Record) error { return rec.Start(t.Owner, t.Epoch) })
		return err
	}
}

// patiently takes a step on the way to the agents. A request nobody waits for was
// accepted: what the store refuses now it may take later, until the deadline.
func (j *job) patiently(ctx context.Context, step func(context.Context) error) error {
	err := step(ctx)
	for pause := execution.FirstWritePause; err != nil && j.tracked != nil && isStoreTrouble(err); pause = min(2*pause, execution.MaxWritePause) {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
			err = step(ctx)
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
	return err
}

// isStoreTrouble reports whether it is the store that does not take what is
// written, and not what is written that is wrong.
func isStoreTrouble(err error) bool {
	e, ok := errors.AsType[*contract.Error](err)
	return ok && e.Code == contract.CodeAuditUnavailable || store.IsTemporary(err)
}

// conclude ends a request: its one terminal state, the record, the session, the
// log. Another end of it that was first, a cancellation, is the one that counts.
func (r *Router) conclude(ctx context.Context, j *job, resp *contract.Response, p *plan.Plan, runs []plan.Outcome) (*contract.Response, error) {
	if errors.Is(context.Cause(ctx), errHandedBack) {
		return nil, errHandedBack
	}
	j.clock.stop(resp.Decision)
	r.announce(j, resp.Decision)
	if j.tracked != nil {
		rec, err := endRecord(ctx, j.tracked, resp, r.cfg.Now().UTC())
		if err != nil {
			return nil, err
		}
		resp = rec.Response
	}
	if !j.dryRun() {
		err := r.recordOutcome(ctx, j, resp)
		for j.tracked != nil && err != nil && isStoreTrouble(err) && j.tracked.Pause(execution.MaxWritePause) {
			err = r.recordOutcome(ctx, j, resp)
		}
		if err != nil && j.tracked == nil && len(runs) == 0 {
			return nil, err // nothing was done: the caller may try again
		}
	}
	r.updateSession(ctx, j, resp, p, runs)
	r.record(ctx, j, resp)
	return resp, nil
}

// recordOutcome writes the answer. The error is for the caller; the log has it
// already.
func (r *Router) recordOutcome(ctx context.Context, j *job, resp *contract.Response) error {
	ctx, cancel := j.closing(ctx)
	defer cancel()
	if err := r.audited(ctx, outcomeRecord(j.caller, content{Prompt: j.prompt, Session: j.sessionKey()}, resp)); err != nil {
		return err
	}
	if j.tracked == nil {
		return nil
	}
	if err := r.keep.Book.RemoveOpen(ctx, resp.RequestID); err != nil {
		r.cfg.Logger.WarnContext(ctx, "an ended request stays in the index of open ones until the next start",
			"request_id", resp.RequestID, "err", err)
	}
	return nil
}

// audited appends to the trail. Where that is optional, trouble is only logged.
func (r *Router) audited(ctx context.Context, rec audit.Record) error {
	if r.keep.Trail == nil {
		return nil
	}
	rec.At = r.cfg.Now().UTC()
	err := r.keep.Trail.Append(ctx, rec)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		r.cfg.Logger.InfoContext(ctx, "the time was up before a record was on disk", "request_id", rec.RequestID, "record", string(rec.Kind))
	} else {
		r.cfg.Logger.ErrorContext(ctx, "the audit log cannot be written", "request_id", rec.RequestID, "record", string(rec.Kind), "err", err)
	}
	if r.keep.Optional {
		return nil
	}
	return &contract.Error{Code: contract.CodeAuditUnavailable, Message: "decisions cannot be recorded now, so nothing is dispatched; try again"}
}

// storeTrouble is the error of a request that needs the store to be accepted.
func (r *Router) storeTrouble(ctx context.Context, what string, err error) error {
	return store.CallerError(ctx, r.cfg.Logger, what, err)
}

// content is what of a record may be erased.
type content struct {
	Prompt   string             `json:"prompt,omitempty"`  // masked
	Session  string             `json:"session,omitempty"` // its key in the store
	Decision *contract.Decision `json:"decision,omitempty"`
	Response *contract.Response `json:"response,omitempty"`
}

// decisionRecord is written before anything is dispatched.
func decisionRecord(j *job, p *plan.Plan) audit.Record {
	rec := facts(audit.KindDecision, j.caller, &p.Decision)
	rec.RequestID, rec.TraceID, rec.Status = j.req.RequestID, j.req.TraceID, contract.StatusRunning
	rec.Content = encoded(content{Prompt: j.prompt, Decision: &p.Decision})
	return rec
}

// outcomeRecord is written when a request has ended.
func outcomeRecord(caller *contract.Caller, c content, resp *contract.Response) audit.Record {
	rec := audit.Record{Kind: audit.KindOutcome, Tenant: caller.Tenant, Subject: caller.Subject, Issuer: caller.Issuer}
	if resp.Decision != nil {
		rec = facts(audit.KindOutcome, caller, resp.Decision)
	}
	rec.Agents = working(rec.Agents, resp.Tasks)
	rec.RequestID, rec.TraceID, rec.Status = resp.RequestID, resp.TraceID, resp.Status
	c.Response = resp
	rec.Content = encoded(c)
	if len(rec.Content) > audit.MaxContentSize {
		short := *resp
		short.Data.Results, short.Data.Answer = nil, ""
		c.Response = &short
		rec.Content = encoded(c)
		rec.Note = "the answer was too long to be kept"
	}
	return rec
}

// facts are what of a decision stays when its content is erased: no text of
// anybody.
func facts(kind audit.Kind, caller *contract.Caller, d *contract.Decision) audit.Record {
	rec := audit.Record{
		Kind: kind, Tenant: caller.Tenant, Subject: caller.Subject, Issuer: caller.Issuer,
		DecisionID: d.DecisionID, RegistryVersion: d.RegistryVersion,
		Intent: d.Classification.Intent, Domains: d.Classification.Domains, Agents: d.Chosen,
	}
	if d.FallbackUsed != nil {
		rec.FallbackUsed = *d.FallbackUsed
	}
	return rec
}

// working are the agents that were chosen and those that got a task in their place.
func working(chosen []string, tasks []contract.TaskReport) []string {
	agents := slices.Clip(chosen)
	for i := range tasks {
		for k := range tasks[i].FailedOver {
			agents = appendNew(agents, tasks[i].FailedOver[k].AgentID)
		}
		if id := tasks[i].AgentID; id != "" {
			agents = appendNew(agents, id)
		}
	}
	return agents
}

// encoded is the JSON of what this package made, which cannot fail.
func encoded(v any) []byte {
	data, err := strictjson.Marshal(v)
	if err != nil {
		return nil
	}
	return data
}

// appendNew appends an id that is not in the list yet.
func appendNew(ids []string, id string) []string {
	if slices.Contains(ids, id) {
		return ids
	}
	return append(ids, id)
}

// interrupted is the answer of a request whose process ended before it did.
func interrupted(requestID, traceID string, d *contract.Decision) *contract.Response {
	resp := &contract.Response{
		RequestID: requestID, TraceID: traceID, Status: contract.StatusFailed, Decision: d,
		Tasks: []contract.TaskReport{}, Omitted: []contract.Omitted{}, Data: contract.ResponseData{Mode: contract.DataDispatch},
	}
	if d == nil {
		return resp
	}
	for _, id := range d.Chosen {
		resp.Tasks = append(resp.Tasks, contract.TaskReport{
			TaskID: requestID, AgentID: id, Status: contract.TaskFailed, Error: &contract.TaskError{
				Code: contract.TaskOutcomeUnknown, Detail: "the router ended while the request was being done: the agent may have done it",
			},
		})
	}
	return resp
}
