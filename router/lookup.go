package router

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/inflight"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/session"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/visibility"
)

func noSuchRequest() error {
	return &contract.Error{Code: contract.CodeNotFound, Message: "there is no such request; answers are kept for a time only (store.retention)"}
}

// found is what is known of a request: its record, or it is being worked on, or
// what the trail has of it.
type found struct {
	owner    *contract.Caller // the principal whose it is; of scopes nothing is known
	record   *requests.Record
	inflight *inflight.Request
	outcome  *audit.Record
	decision *audit.Record
}

// find looks for a request the caller may see.
func (r *Router) find(ctx context.Context, id string, caller *contract.Caller) (found, error) {
	var f found
	if parsed, err := uuid.Parse(id); err != nil || parsed.Version() != 7 || parsed.String() != id {
		return f, noSuchRequest()
	}
	err := r.lookUp(ctx, id, &f, r.lifeOf(id))
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && !f.visibleTo(caller, id):
		return found{}, noSuchRequest()
	case err != nil:
		return f, r.storeTrouble(ctx, "the request cannot be looked up", err)
	}
	return f, nil
}

// inTheBook is the least the book keeps of an asynchronous request: one that is
// younger and not there was one somebody waited for, or has been erased.
const inTheBook = 48 * time.Hour

// justNow is how long a request may take to get from its id to a record.
const justNow = 5 * time.Second

// wholeLife has the trail searched for as long as any request may take.
const wholeLife = 0

// lifeOf is how long after its id the records of a request that is not in the book
// may lie. What was never there is asked for as easily as what was: the less of the
// trail is read for it, the better.
func (r *Router) lifeOf(id string) time.Duration {
	if !r.keep.Book.Enabled() || time.Since(born(id)) > inTheBook {
		return wholeLife
	}
	return contract.MaxTimeoutMS * time.Millisecond
}

// born is the time in the id of a request.
func born(id string) time.Time {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(parsed.Time().UnixTime())
}

// lookUp asks who owns the fact: the record of an asynchronous request, this
// process for one it works on, the trail for what has ended within its life. One
// that may just begin, or seems interrupted, is looked for once more: it may have
// begun, or ended, between two questions.
func (r *Router) lookUp(ctx context.Context, id string, f *found, life time.Duration) error {
	for range 2 {
		if known, err := r.underWay(ctx, id, f); known || err != nil {
			return err
		}
		if err := r.recorded(ctx, id, f, life); err != nil {
			return err
		}
		if f.outcome != nil {
			f.owner = ownerOf(f.outcome)
			return nil
		}
		if f.decision == nil && time.Since(born(id)) > justNow {
			return store.ErrNotFound
		}
		if f.decision != nil {
			life = wholeLife // it was there: its end may lie further on
		}
	}
	if f.decision != nil {
		f.owner = ownerOf(f.decision)
		return nil
	}
	return store.ErrNotFound
}

// underWay looks for the record of the request, and among those being worked on.
func (r *Router) underWay(ctx context.Context, id string, f *found) (known bool, err error) {
	if r.keep.Book != nil {
		switch f.record, err = r.keep.Book.Get(ctx, id); {
		case err == nil:
			f.owner = &f.record.Caller
			return true, nil
		case !errors.Is(err, store.ErrNotFound):
			return false, err
		}
	}
	if f.inflight = r.inflight.Lookup(id); f.inflight != nil {
		f.owner = f.inflight.Caller()
		return true, nil
	}
	return false, nil
}

// recorded looks for the request in the trail.
func (r *Router) recorded(ctx context.Context, id string, f *found, life time.Duration) (err error) {
	if r.keep.Trail == nil {
		return nil
	}
	var known audit.RequestRecords
	if life == wholeLife {
		known, err = r.keep.Trail.Find(ctx, id)
	} else {
		known, err = r.keep.Trail.FindWithin(ctx, id, life)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	f.outcome, f.decision = known.Outcome, known.Decision
	return nil
}

// ownerOf is the principal whose request the audit record is about.
func ownerOf(rec *audit.Record) *contract.Caller {
	return &contract.Caller{Tenant: rec.Tenant, Subject: rec.Subject, Issuer: rec.Issuer}
}

// visibleTo reports whether the request exists for the caller.
func (f *found) visibleTo(caller *contract.Caller, id string) bool {
	request := visibility.StoredRequest{Owner: f.owner, Response: func() (*contract.Response, error) { return f.response(id) }}
	for _, rec := range []*audit.Record{f.outcome, f.decision} {
		if rec != nil {
			request.Agents = append(request.Agents, rec.Agents...)
		}
	}
	return visibility.MaySeeRequest(caller, request)
}

// visibilityFilter is the filter for what the caller may see of a request of
// the owner.
func (r *Router) visibilityFilter(caller, owner *contract.Caller) *visibility.Filter {
	catalogue := &capabilities.Catalogue{}
	if view := r.view.Load(); view != nil {
		catalogue = view.Catalogue
	}
	return visibility.NewFilter(catalogue, caller, owner)
}

func errNotOwner(operation string) error {
	return &contract.Error{Code: contract.CodeForbidden, Message: "only the sender of the request, or an administrator, may " + operation + " it"}
}

// response is the request as it is now.
func (f *found) response(id string) (*contract.Response, error) {
	switch {
	case f.record != nil:
		return f.record.Snapshot(), nil
	case f.inflight != nil:
		return f.inflight.State(), nil
	}
	rec := f.outcome
	if rec == nil {
		rec = f.decision
	}
	var c history.Content
	if rec.Content != nil {
		if err := strictjson.Unmarshal(rec.Content, &c); err != nil {
			return nil, fmt.Errorf("read the answer of request %s: %w", id, err)
		}
	}
	switch {
	case c.Response != nil:
		return c.Response, nil
	case f.outcome == nil:
		return history.InterruptedResponse(id, rec.TraceID, c.Decision), nil
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
	resp, err := f.response(id)
	return r.visibilityFilter(caller, f.owner).Response(resp), err
}

// Erase removes the content of a request of the caller's own everywhere: what was asked, answered and
// told. That there was one, when, whose and with what end stays in the trail.
func (r *Router) Erase(ctx context.Context, id string, caller *contract.Caller) error {
	f, err := r.find(ctx, id, caller)
	if err != nil {
		return err
	}
	if !visibility.MayEndRequest(caller, f.owner) {
		return errNotOwner("erase")
	}
	if f.inflight != nil || f.record != nil && !f.record.State.Terminal() {
		return &contract.Error{Code: contract.CodeConflict, Message: "the request is not over: cancel it first"}
	}
	if f.record != nil {
		ending, err := r.keep.Book.IsOpen(ctx, id)
		if err != nil {
			return r.storeTrouble(ctx, "the request cannot be erased", err)
		}
		if ending || r.inflight.Lookup(id) != nil { // its end is still being written
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
	// First, because the audit log contains the key of the session.
	note("clarification", r.questions.Erase(ctx, id))
	note("session", r.sessions.EraseTurns(ctx, f.sessionKey(), id))
	if r.keep.Trail != nil && len(troubles) == 0 {
		_, err := r.keep.Trail.Erase(ctx, id, nameOf(caller))
		note("audit log", err)
	}
	if r.keep.Tickets != nil {
		note("tickets", r.keep.Tickets.EraseRequest(ctx, id))
	}
	if r.keep.Events != nil {
		note("events", r.keep.Events.Delete(ctx, id))
	}
	if f.record != nil && len(troubles) == 0 { // the last: while it is there, erasing can be asked for again
		note("request", r.keep.Book.Delete(ctx, id))
	}
	if len(troubles) > 0 {
		return &contract.Error{Code: contract.CodeOverloaded, Message: "not all could be erased (" + strings.Join(troubles, ", ") + "); try again"}
	}
	return nil
}

// nameOf is the principal in the words of the audit log.
func nameOf(caller *contract.Caller) string {
	if caller.Issuer == "" {
		return caller.Subject
	}
	return caller.Subject + " (" + caller.Issuer + ")"
}

// sessionKey is the key of the request's session, "" when it had none or nobody
// knows it any more.
func (f *found) sessionKey() string {
	if f.record != nil {
		return session.Key(&f.record.Caller, f.record.Request.SessionID)
	}
	var c history.Content
	if f.outcome == nil || f.outcome.Content == nil || strictjson.Unmarshal(f.outcome.Content, &c) != nil {
		return ""
	}
	return c.Session
}
