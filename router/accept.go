package router

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/session"
)

// accept validates a request, masks it and loads its session. It sets the ids that
// the request does not have.
func (r *Router) accept(ctx context.Context, req *contract.Request, caller *contract.Caller) (*requestRun, error) {
	view := r.view.Load()
	if view == nil {
		return nil, &contract.Error{Code: contract.CodeOverloaded, Message: "the registry is not loaded yet"}
	}
	e := req.Validate()
	if e == nil {
		e = &contract.Error{Code: contract.CodeInvalidRequest, Message: "the request is not valid"}
	}
	if req.Options.Mode == contract.ModeAsync && !r.keep.Book.Enabled() {
		e.Add("/options/mode", "async needs a server with a store: leave it out, or use sync")
	}
	if f := req.Options.Fallback; f != nil {
		r.checkPolicy(view, *f, e)
	}
	if len(e.Details) > 0 {
		return nil, e
	}
	if req.RequestID == "" {
		req.RequestID = r.cfg.NewID()
	}
	if req.TraceID == "" {
		req.TraceID = newTraceID()
	}
	return r.prepare(ctx, view, req, caller)
}

// newTraceID begins a trace (W3C Trace Context §3.2.2.3).
func newTraceID() string {
	var id [16]byte
	rand.Read(id[:]) // never fails: the runtime ends the process instead
	return hex.EncodeToString(id[:])
}

// prepare masks a valid request and pins its classification if the caller or the
// session determines it.
func (r *Router) prepare(ctx context.Context, view *View, req *contract.Request, caller *contract.Caller) (*requestRun, error) {
	timings := r.startTimings()
	stored := r.sessions.Load(ctx, session.Key(caller, req.SessionID))
	request := r.maskRequest(req, caller, &stored)
	if req.AgentID != nil {
		request.OnlyAgent = *req.AgentID
	}
	request.AlreadyAsked = stored.AskedCaller
	if req.Clarification != nil {
		var err error
		if request.Pinned, err = r.questions.Choose(ctx, caller, req.Clarification); err != nil {
			return nil, err
		}
	} else {
		next := session.Next{
			Trigger: r.cfg.SessionTrigger, Prompt: request.Prompt, OnlyAgent: request.OnlyAgent,
			MayUse: func(agentID string) bool { return view.Catalogue.Agent(agentID) != nil && caller.MayUse(agentID) },
		}
		var agent string
		if request.Pinned, agent = stored.Pin(next); agent != "" {
			request.OnlyAgent = agent
		}
	}
	timings.endStage("mask")
	return &requestRun{Request: request, view: view, timings: timings}, nil
}

// maskRequest masks everything that a model or a log may receive. The turns come
// first, because they are older: placeholders are numbered in this order.
func (r *Router) maskRequest(req *contract.Request, caller *contract.Caller, stored *session.Session) *execution.Request {
	request := &execution.Request{Request: req, Caller: caller, Masking: r.cfg.Redactor.StartMasking()}
	turns := req.History
	if len(turns) == 0 {
		turns = stored.History()
	}
	turns = turns[max(0, len(turns)-session.MaxTurns):]
	request.Turns = make([]contract.Turn, len(turns))
	for i, turn := range turns {
		request.Turns[i] = contract.Turn{Role: turn.Role, Content: request.Masking.MaskText(turn.Content)}
	}
	request.Prompt = request.Masking.MaskText(req.Content.Prompt)
	request.Locale = request.Masking.MaskText(req.Metadata.Locale)
	return request
}

// restore rebuilds the run of a stored request. It is as it was when the request
// was accepted, except for the view, which is the current one. A request may be
// cancelled before there is any.
func (r *Router) restore(rec *requests.Record) *requestRun {
	timings := r.startTimings()
	timings.start = rec.CreatedAt
	stored := session.FromHistory(rec.History)
	request := r.maskRequest(&rec.Request, &rec.Caller, &stored)
	request.OnlyAgent = rec.OnlyAgent
	request.Pinned = (*session.Pinned)(rec.Pinned)
	return &requestRun{Request: request, view: r.currentView(), timings: timings}
}

// timeout returns how long the request may take.
func (r *Router) timeout(req *contract.Request) time.Duration {
	switch ms := req.Options.TimeoutMS; {
	case ms > 0:
		return time.Duration(ms) * time.Millisecond
	case req.Options.Mode == contract.ModeAsync:
		return contract.DefaultAsyncTimeoutMS * time.Millisecond
	}
	return r.cfg.Timeout
}
