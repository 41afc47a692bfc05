// Package acceptance turns what a client sent into an accepted request: valid, with
// all ids set, masked, and with the state of its session. It does not classify the
// request, and stores nothing.
package acceptance

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/session"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// Config is what an Acceptor works with. All fields but Async are required.
type Config struct {
	Async          bool          // asynchronous requests can be stored
	Timeout        time.Duration // of a synchronous request that does not set one
	SessionTrigger string        // when a request of a session is classified again
	Sessions       *session.Store
	Questions      *session.Questions
	Fallback       PolicyChecker
	Redactor       *redact.Redactor
	NewID          func() string
}

// PolicyChecker adds a detail to e if a request must not use a fallback policy.
type PolicyChecker interface {
	CheckPolicy(c *capabilities.Catalogue, requested string, e *contract.Error)
}

// Acceptor accepts requests. It is safe for concurrent use.
type Acceptor struct{ cfg Config }

// New returns an Acceptor.
func New(cfg Config) *Acceptor { return &Acceptor{cfg: cfg} }

// Accept validates a request, masks it and loads its session. It sets the ids that
// the request does not have. The model is trained on the catalogue. An error is a
// *contract.Error.
func (a *Acceptor) Accept(
	ctx context.Context, catalogue *capabilities.Catalogue, model *lexical.Model, req *contract.Request, caller *contract.Caller,
) (*execution.Request, error) {
	if e := a.validateRequest(catalogue, req); e != nil {
		return nil, e
	}
	if e := checkAgent(catalogue, req, caller); e != nil {
		return nil, e
	}
	if req.RequestID == "" {
		req.RequestID = a.cfg.NewID()
	}
	if req.TraceID == "" {
		req.TraceID = newTraceID()
	}
	stored := a.cfg.Sessions.Load(ctx, session.Key(caller, req.SessionID))
	request := a.maskRequest(req, caller, &stored)
	if req.AgentID != nil {
		request.OnlyAgent = *req.AgentID
	}
	request.AlreadyAsked = stored.AskedCaller
	return request, a.pinClassification(ctx, catalogue, model, request, &stored)
}

// validateRequest returns nil if the server may process the request.
func (a *Acceptor) validateRequest(catalogue *capabilities.Catalogue, req *contract.Request) *contract.Error {
	e := req.Validate()
	if needsCheck := req.Options.Mode == contract.ModeAsync || req.Options.Fallback != nil; !needsCheck {
		return e
	}
	if e == nil {
		e = contract.InvalidRequestDetails(nil)
	}
	if req.Options.Mode == contract.ModeAsync && !a.cfg.Async {
		e.Add("/options/mode", "async needs a server with a store: leave it out, or use sync")
	}
	if f := req.Options.Fallback; f != nil {
		a.cfg.Fallback.CheckPolicy(catalogue, *f, e)
	}
	if len(e.Details) == 0 {
		return nil
	}
	return e
}

// checkAgent rejects a request that names an agent which does not exist, or which the
// caller may not use: both are the same to the caller. Such a request is not unmet
// demand, so no fallback policy applies to it.
func checkAgent(catalogue *capabilities.Catalogue, req *contract.Request, caller *contract.Caller) *contract.Error {
	if req.AgentID == nil || catalogue.Agent(*req.AgentID) != nil && caller.MayUse(*req.AgentID) {
		return nil
	}
	var usable []string
	for _, agent := range catalogue.Agents {
		if caller.MayUse(agent.ID) {
			usable = append(usable, agent.ID)
		}
	}
	detail := "is no agent that you may use: name another, or leave it out"
	if near := strictyaml.Nearest(*req.AgentID, usable); near != "" {
		detail = fmt.Sprintf("is no agent that you may use; did you mean %q?", near)
	}
	return contract.InvalidRequest("/agent_id", detail)
}

// newTraceID begins a trace (W3C Trace Context §3.2.2.3).
func newTraceID() string {
	var id [16]byte
	rand.Read(id[:]) // never fails: the runtime ends the process instead
	return hex.EncodeToString(id[:])
}

// pinClassification sets the classification if the caller or the session
// determines it.
func (a *Acceptor) pinClassification(
	ctx context.Context, catalogue *capabilities.Catalogue, model *lexical.Model, request *execution.Request, stored *session.Session,
) (err error) {
	caller := request.Caller
	if request.Clarification != nil {
		request.Pinned, err = a.cfg.Questions.Choose(ctx, caller, request.Clarification)
		return err
	}
	var agent string
	request.Pinned, agent = stored.Pin(session.Next{
		Trigger: a.cfg.SessionTrigger, Prompt: request.Prompt, OnlyAgent: request.OnlyAgent,
		MayUse:     func(agentID string) bool { return catalogue.Agent(agentID) != nil && caller.MayUse(agentID) },
		Reclassify: request.Options.Reclassify,
		SureIntent: func() string { return sureIntent(catalogue, model, request) },
	})
	if agent != "" {
		request.OnlyAgent = agent
	}
	if !request.Options.Reclassify && len(request.History) == 0 {
		request.Previous = stored.Previous()
	}
	return nil
}

// sureIntent returns the intent that the prompt means so certainly that no other one
// could be ambiguous with it: the lexical confidence is at least 1 minus the
// ambiguity threshold. It returns "" if there is none that the caller may use.
func sureIntent(catalogue *capabilities.Catalogue, model *lexical.Model, request *execution.Request) string {
	if model == nil {
		return ""
	}
	p := model.Classify(request.Prompt)
	if p.Intent == contract.Unknown || p.DomainOnly || p.LabelOnly || p.Confidence < 1-catalogue.Routing.AmbiguityThreshold {
		return ""
	}
	for _, agent := range catalogue.Agents {
		if slices.Contains(agent.Match.Intent, p.Intent) && request.Caller.MayUse(agent.ID) {
			return p.Intent
		}
	}
	return ""
}

// maskRequest masks everything that a model or a log may receive. The turns come
// first, because they are older: placeholders are numbered in this order.
func (a *Acceptor) maskRequest(req *contract.Request, caller *contract.Caller, stored *session.Session) *execution.Request {
	request := &execution.Request{Request: req, Caller: caller, Masking: a.cfg.Redactor.StartMasking()}
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
	request.DataClasses = request.Masking.Kinds()
	return request
}

// Restore rebuilds the request of a stored record as it was when it was accepted.
func (a *Acceptor) Restore(rec *requests.Record) *execution.Request {
	stored := session.FromHistory(rec.History)
	request := a.maskRequest(&rec.Request, &rec.Caller, &stored)
	request.OnlyAgent, request.KeyName = rec.OnlyAgent, rec.KeyName
	request.Pinned, request.Previous = (*session.Pinned)(rec.Pinned), rec.Previous
	return request
}

// RequestTimeout returns how long the request may take.
func (a *Acceptor) RequestTimeout(req *contract.Request) time.Duration {
	switch ms := req.Options.TimeoutMS; {
	case ms > 0:
		return time.Duration(ms) * time.Millisecond
	case req.Options.Mode == contract.ModeAsync:
		return contract.DefaultAsyncTimeoutMS * time.Millisecond
	}
	return a.cfg.Timeout
}
