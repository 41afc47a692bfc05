package router

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/session"
)

// acceptor makes accepted requests.
type acceptor struct {
	async          bool // asynchronous requests can be stored
	timeoutDefault time.Duration
	sessionTrigger string
	sessions       *session.Store
	questions      *session.Questions
	fallbacks      *fallbackStage
	redactor       *redact.Redactor
	newID          func() string
	now            func() time.Time
}

// acceptRequest validates a request, masks it and loads its session. It sets the ids that
// the request does not have.
func (a *acceptor) acceptRequest(
	ctx context.Context, view *View, req *contract.Request, caller *contract.Caller,
) (*requestRun, error) {
	if view == nil {
		return nil, &contract.Error{Code: contract.CodeOverloaded, Message: "the registry is not loaded yet"}
	}
	e := req.Validate()
	if e == nil {
		e = &contract.Error{Code: contract.CodeInvalidRequest, Message: "the request is not valid"}
	}
	if req.Options.Mode == contract.ModeAsync && !a.async {
		e.Add("/options/mode", "async needs a server with a store: leave it out, or use sync")
	}
	if f := req.Options.Fallback; f != nil {
		a.fallbacks.checkPolicy(view, *f, e)
	}
	if len(e.Details) > 0 {
		return nil, e
	}
	if req.RequestID == "" {
		req.RequestID = a.newID()
	}
	if req.TraceID == "" {
		req.TraceID = newTraceID()
	}
	return a.prepareRun(ctx, view, req, caller)
}

// newTraceID begins a trace (W3C Trace Context §3.2.2.3).
func newTraceID() string {
	var id [16]byte
	rand.Read(id[:]) // never fails: the runtime ends the process instead
	return hex.EncodeToString(id[:])
}

// prepareRun masks a valid request and pins its classification if the caller or the
// session determines it.
func (a *acceptor) prepareRun(ctx context.Context, view *View, req *contract.Request, caller *contract.Caller) (*requestRun, error) {
	timings := startTimings(a.now)
	stored := a.sessions.Load(ctx, session.Key(caller, req.SessionID))
	request := a.maskRequest(req, caller, &stored)
	if req.AgentID != nil {
		request.OnlyAgent = *req.AgentID
	}
	request.AlreadyAsked = stored.AskedCaller
	if req.Clarification != nil {
		var err error
		if request.Pinned, err = a.questions.Choose(ctx, caller, req.Clarification); err != nil {
			return nil, err
		}
	} else {
		next := session.Next{
			Trigger: a.sessionTrigger, Prompt: request.Prompt, OnlyAgent: request.OnlyAgent,
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
func (a *acceptor) maskRequest(req *contract.Request, caller *contract.Caller, stored *session.Session) *execution.Request {
	request := &execution.Request{Request: req, Caller: caller, Masking: a.redactor.StartMasking()}
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

// restoreRun rebuilds the run of a stored request. It is as it was when the request
// was accepted, except for the view, which is the current one. A request may be
// cancelled before there is any.
func (a *acceptor) restoreRun(rec *requests.Record, view *View) *requestRun {
	timings := startTimings(a.now)
	timings.start = rec.CreatedAt
	stored := session.FromHistory(rec.History)
	request := a.maskRequest(&rec.Request, &rec.Caller, &stored)
	request.OnlyAgent = rec.OnlyAgent
	request.Pinned = (*session.Pinned)(rec.Pinned)
	return &requestRun{Request: request, view: view, timings: timings}
}

// requestTimeout returns how long the request may take.
func (a *acceptor) requestTimeout(req *contract.Request) time.Duration {
	switch ms := req.Options.TimeoutMS; {
	case ms > 0:
		return time.Duration(ms) * time.Millisecond
	case req.Options.Mode == contract.ModeAsync:
		return contract.DefaultAsyncTimeoutMS * time.Millisecond
	}
	return a.timeoutDefault
}
