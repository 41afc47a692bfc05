package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/events"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// scopeAdmin sees the requests of every tenant.
const scopeAdmin = "admin"

func maySee(caller *contract.Caller, tenant string) bool {
	return caller.Tenant == tenant || caller.HasScope(scopeAdmin)
}

func noSuchRequest() error {
	return &contract.Error{Code: contract.CodeNotFound, Message: "there is no such request; answers are kept for a time only (store.retention)"}
}

// found is what is known of a request: its record, or it is being worked on, or
// what the trail has of it. Tenant is whose it is.
type found struct {
	record   *requests.Record
	activity *activity
	outcome  *audit.Record
	decision *audit.Record
}

// find looks for a request the caller may see.
func (r *Router) find(ctx context.Context, id string, caller *contract.Caller) (found, error) {
	var f found
	if parsed, err := uuid.Parse(id); err != nil || parsed.Version() != 7 || parsed.String() != id {
		return f, noSuchRequest()
	}
	tenant, err := r.lookUp(ctx, id, &f)
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && !maySee(caller, tenant):
		return f, noSuchRequest()
	case err != nil:
		return f, r.storeTrouble(ctx, "the request cannot be looked up", err)
	}
	return f, nil
}

// lookUp asks who owns the fact: the record of an asynchronous request, this
// process for one it works on, the trail for what has ended. One that is nowhere
// yet, or seems interrupted, is looked for once more: it may have begun, or ended,
// between two questions.
func (r *Router) lookUp(ctx context.Context, id string, f *found) (tenant string, err error) {
	for range 2 {
		tenant, known, err := r.underWay(ctx, id, f)
		if known || err != nil {
			return tenant, err
		}
		if err := r.recorded(ctx, id, f); err != nil {
			return "", err
		}
		if f.outcome != nil {
			return f.outcome.Tenant, nil
		}
	}
	if f.decision != nil {
		return f.decision.Tenant, nil
	}
	return "", store.ErrNotFound
}

// underWay looks for the record of the request, and among those being worked on.
func (r *Router) underWay(ctx context.Context, id string, f *found) (tenant string, known bool, err error) {
	if r.keep.Book != nil {
		switch f.record, err = r.keep.Book.Get(ctx, id); {
		case err == nil:
			return f.record.Caller.Tenant, true, nil
		case !errors.Is(err, store.ErrNotFound):
			return "", false, err
		}
	}
	if f.activity = r.active.find(id); f.activity != nil {
		return f.activity.tenant, true, nil
	}
	return "", false, nil
}

// recorded looks for the request in the trail.
func (r *Router) recorded(ctx context.Context, id string, f *found) error {
	if r.keep.Trail == nil {
		return nil
	}
	known, err := r.keep.Trail.Find(ctx, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	f.outcome, f.decision = known.Outcome, known.Decision
	return nil
}

// response is the request as it is now.
func (f *found) response(id string) (*contract.Response, error) {
	switch {
	case f.record != nil:
		return f.record.Snapshot(), nil
	case f.activity != nil:
		return f.activity.state(id), nil
	}
	rec := f.outcome
	if rec == nil {
		rec = f.decision
	}
	var c content
	if rec.Content != nil {
		if err := strictjson.Unmarshal(rec.Content, &c); err != nil {
			return nil, fmt.Errorf("read the answer of request %s: %w", id, err)
		}
	}
	switch {
	case c.Response != nil:
		return c.Response, nil
	case f.outcome == nil:
		return interrupted(id, rec.TraceID, c.Decision), nil
	}
	// The content was erased or has expired; that there was a request has not.
	return &contract.Response{
		RequestID: id, TraceID: rec.TraceID, Status: rec.Status,
		Tasks: []contract.TaskReport{}, Omitted: []contract.Omitted{}, Data: contract.ResponseData{},
	}, nil
}

// Request is the answer to a request, or how far it has come. What the caller may
// not see is not there.
func (r *Router) Request(ctx context.Context, id string, caller *contract.Caller) (*contract.Response, error) {
	f, err := r.find(ctx, id, caller)
	if err != nil {
		return nil, err
	}
	return f.response(id)
}

// Events tells what happens to a request until its end: those of an asynchronous
// one after the given sequence, where they are still known, else its state first.
// emit gets sequence 0 for what is no event of the stream.
func (r *Router) Events(ctx context.Context, id string, caller *contract.Caller, after uint64, emit func(uint64, *contract.Event) error) error {
	f, err := r.find(ctx, id, caller)
	if err != nil {
		return err
	}
	if f.record == nil || r.keep.Events == nil {
		if f.activity != nil { // somebody else waits for it
			select {
			case <-f.activity.done:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		_, err := r.emitState(ctx, id, caller, emit)
		return err
	}
	// An answer too long for the stream is on record.
	whole := func(seq uint64, ev *contract.Event) error {
		if ev.Type == contract.EventFinal && ev.Response == nil {
			resp, err := r.Request(ctx, id, caller)
			if err != nil {
				return err
			}
			filled := *ev // events are shared
			filled.Response = resp
			ev = &filled
		}
		return emit(seq, ev)
	}
	err = r.keep.Events.Read(ctx, id, after, whole)
	for errors.Is(err, events.ErrGone) {
		var from uint64
		if from, err = r.keep.Events.Position(ctx); err != nil { // before the state: nothing falls between
			return r.storeTrouble(ctx, "the events cannot be read", err)
		}
		if ended, err := r.emitState(ctx, id, caller, emit); ended || err != nil {
			return err
		}
		err = r.keep.Events.Follow(ctx, id, from, whole)
	}
	return err
}

// emitState stands for events that are gone, and says whether the request has
// ended.
func (r *Router) emitState(ctx context.Context, id string, caller *contract.Caller, emit func(uint64, *contract.Event) error) (ended bool, err error) {
	resp, err := r.Request(ctx, id, caller)
	if err != nil {
		return false, err
	}
	at := r.cfg.Now().UTC()
	if err := emit(0, &contract.Event{Type: contract.EventState, RequestID: id, At: at, Response: resp}); err != nil || !resp.Status.Terminal() {
		return false, err
	}
	return true, emit(0, &contract.Event{Type: contract.EventFinal, RequestID: id, At: at, Response: resp})
}

// Decisions is a page of the decision log, as far as it is the caller's.
func (r *Router) Decisions(ctx context.Context, q contract.DecisionQuery, caller *contract.Caller) (*contract.DecisionPage, error) {
	if r.keep.Trail == nil {
		return nil, &contract.Error{Code: contract.CodeNotFound, Message: "no decisions are recorded here"}
	}
	page, err := r.keep.Trail.Read(ctx, audit.Query{
		Since: q.Since, Cursor: q.Cursor, Limit: q.Limit,
		Keep: func(rec *audit.Record) bool {
			return maySee(caller, rec.Tenant) && (q.Outcome == "" || q.Outcome == rec.Status) &&
				(q.Agent == "" || slices.Contains(rec.Agents, q.Agent))
		},
	})
	if err != nil {
		if e, ok := errors.AsType[*contract.Error](err); ok {
			return nil, e
		}
		return nil, r.storeTrouble(ctx, "the decision log cannot be read", err)
	}
	out := &contract.DecisionPage{Decisions: make([]contract.DecisionEntry, len(page.Records)), NextCursor: page.Next}
	for i := range page.Records {
		if out.Decisions[i], err = entryOf(&page.Records[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func entryOf(rec *audit.Record) (contract.DecisionEntry, error) {
	e := contract.DecisionEntry{
		At: rec.At, RequestID: rec.RequestID, TraceID: rec.TraceID, Tenant: rec.Tenant, Subject: rec.Subject, Status: rec.Status,
		Tasks: []contract.TaskReport{}, Omitted: []contract.Omitted{}, Erased: rec.Content == nil,
	}
	if rec.Content == nil {
		return e, nil
	}
	var c content
	if err := strictjson.Unmarshal(rec.Content, &c); err != nil {
		return e, fmt.Errorf("read the decision of request %s: %w", rec.RequestID, err)
	}
	e.Prompt = c.Prompt
	if c.Response != nil {
		e.Decision, e.Tasks, e.Omitted = c.Response.Decision, c.Response.Tasks, c.Response.Omitted
	}
	return e, nil
}

// Erase removes the content of a request everywhere: what was asked, answered and
// told. That there was one, when, whose and with what end stays in the trail.
func (r *Router) Erase(ctx context.Context, id string, caller *contract.Caller) error {
	f, err := r.find(ctx, id, caller)
	if err != nil {
		return err
	}
	if f.activity != nil || f.record != nil && !f.record.State.Terminal() {
		return &contract.Error{Code: contract.CodeConflict, Message: "the request is not over: cancel it first"}
	}
	if f.record != nil {
		ending, err := r.keep.Book.Marked(ctx, id)
		if err != nil {
			return r.storeTrouble(ctx, "the request cannot be erased", err)
		}
		if ending || r.active.find(id) != nil { // its end is still being written
			return &contract.Error{Code: contract.CodeConflict, Message: "the request is just ending; try again"}
		}
	}
	var troubles []string
	note := func(what string, err error) {
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			troubles = append(troubles, what)
			r.cfg.Logger.ErrorContext(ctx, "erase", "request_id", id, "what", what, "err", err)
		}
	}
	if r.keep.Sessions != nil { // first: the audit log knows which session it was
		note("clarification", r.keep.Sessions.Delete(ctx, questionKey(id)))
		note("session", r.forgetTurns(ctx, f.sessionKey(), id))
	}
	if r.keep.Trail != nil && len(troubles) == 0 {
		_, err := r.keep.Trail.Erase(ctx, id, caller.Subject)
		note("audit log", err)
	}
	if r.keep.Tickets != nil {
		note("tickets", r.keep.Tickets.Forget(ctx, id))
	}
	if r.keep.Events != nil {
		note("events", r.keep.Events.Forget(ctx, id))
	}
	if f.record != nil && len(troubles) == 0 { // the last: while it is there, erasing can be asked for again
		note("request", r.keep.Book.Delete(ctx, id))
	}
	if len(troubles) > 0 {
		return &contract.Error{Code: contract.CodeOverloaded, Message: "not all could be erased (" + strings.Join(troubles, ", ") + "); try again"}
	}
	return nil
}

// sessionKey is the key of the request's session, "" when it had none or nobody
// knows it any more.
func (f *found) sessionKey() string {
	if f.record != nil {
		j := job{req: &f.record.Request, caller: &f.record.Caller}
		return j.sessionKey()
	}
	var c content
	if f.outcome == nil || f.outcome.Content == nil || strictjson.Unmarshal(f.outcome.Content, &c) != nil {
		return ""
	}
	return c.Session
}

// forgetTurns drops what was said in a request from its session.
func (r *Router) forgetTurns(ctx context.Context, key, requestID string) error {
	if key == "" {
		return nil
	}
	if _, err := r.keep.Sessions.Get(ctx, key); errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return r.change(ctx, key, func(s session) session { return s.without(requestID) })
}
