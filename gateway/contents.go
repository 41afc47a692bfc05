package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway/mcpclient"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Methods of MCP, besides tools/call, with which a server can be sent a request. The caller
// needs the scope of the action SERVER.prompts/get or SERVER.resources/read, also to complete
// an argument of a prompt or of a template of resources.
const (
	MethodGetPrompt    = "prompts/get"
	MethodReadResource = "resources/read"
	MethodComplete     = "completion/complete"
)

// Methods of MCP with which the server lists what it offers besides tools.
const (
	MethodListPrompts           = "prompts/list"
	MethodListResources         = "resources/list"
	MethodListResourceTemplates = "resources/templates/list"
)

// Entry is a prompt, a resource or a template of resources.
type Entry = mcpclient.Entry

// List returns a list of a server: that of one of the methods for lists. It is empty if the
// server has none, or if its declaration does not permit to pass it on. List does not wait
// for a server that is not connected: one that hangs would delay the lists of all others.
func (g *Gateway) List(ctx context.Context, serverID, method string) ([]Entry, error) {
	s := g.find(serverID)
	if s == nil || !s.calls.acquire() {
		return nil, fmt.Errorf("there is no server %q", serverID)
	}
	defer s.calls.release()
	s.mu.Lock()
	l := s.link
	s.mu.Unlock()
	if l == nil {
		return nil, errors.New("the server is not connected")
	}
	session, ok := l.(*sessionLink)
	if !ok {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, milliseconds(s.declared.Timeouts.Call, s.cfg.CallTimeout))
	defer cancel()
	prompts, resources := s.passedOn(session.Offers())
	switch {
	case method == MethodListPrompts && prompts:
		return session.Prompts(ctx)
	case method == MethodListResources && resources:
		return session.Resources(ctx)
	case method == MethodListResourceTemplates && resources:
		return session.ResourceTemplates(ctx)
	}
	return nil, nil
}

// passedOn reports which of its offers the declaration of the server permits to pass on.
func (s *server) passedOn(offers mcpclient.Offers) (prompts, resources bool) {
	return offers.Prompts && s.declared.PassesPrompts(), offers.Resources && s.declared.PassesResources()
}

// Request sends a request other than the call of a tool to a server, with the checks, limits,
// retries and records of a call. It returns the result of the method as the protocol defines
// it. Errors are those of [Gateway.Invoke].
func (g *Gateway) Request(ctx context.Context, serverID, method string, params json.RawMessage, by Invocation) (json.RawMessage, error) {
	completed := completedMethod(method, params)
	action := contract.Action{Action: serverID + "." + completed, Input: params}
	result, err := g.invoke(ctx, method, &action, &by, func(ctx context.Context) (*server, *tool, error) {
		s := g.find(serverID)
		if s == nil || !s.calls.acquire() {
			return nil, nil, noRequest(serverID, method)
		}
		if err := s.checkRequest(ctx, method, completed); err != nil {
			s.calls.release()
			return nil, nil, err
		}
		return s, &tool{
			Tool: Tool{Action: action.Action}, Name: method, method: method,
			idempotent: true, timeoutMS: s.declared.Timeouts.Call, // the methods only read
		}, nil
	})
	if err != nil {
		return nil, err
	}
	return result.Content, nil
}

// noRequest returns the error for a request that a server cannot be sent.
func noRequest(serverID, method string) error {
	return warningError(contract.ActionNotFound, fmt.Sprintf("there is no server %q that serves %s", serverID, method), "")
}

// completedMethod returns the method that a request is for: if it completes an argument, the
// method that the argument is for.
func completedMethod(method string, params json.RawMessage) string {
	if method != MethodComplete {
		return method
	}
	var p struct {
		Ref struct {
			Type string `json:"type"`
		} `json:"ref"`
	}
	if strictjson.UnmarshalAllowUnknown(params, &p) == nil {
		switch p.Ref.Type {
		case "ref/prompt":
			return MethodGetPrompt
		case "ref/resource":
			return MethodReadResource
		}
	}
	return method
}

// checkRequest checks that the server offers what a request is for, and that its declaration
// permits to pass it on. completed is what completedMethod returns.
func (s *server) checkRequest(ctx context.Context, method, completed string) error {
	waitCtx, cancel := context.WithTimeout(ctx, milliseconds(s.declared.Timeouts.Call, s.cfg.CallTimeout))
	defer cancel()
	l, err := s.waitLink(waitCtx)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return severeError(contract.ActionUnavailable, fmt.Sprintf("server %q is not connected", s.declared.ID), err.Error())
	}
	session, ok := l.(*sessionLink)
	if !ok {
		return noRequest(s.declared.ID, method)
	}
	offers := session.Offers()
	prompts, resources := s.passedOn(offers)
	ok = prompts && completed == MethodGetPrompt || resources && completed == MethodReadResource
	if !ok || method == MethodComplete && !offers.Completions {
		return noRequest(s.declared.ID, method)
	}
	return nil
}

// request sends a request other than the call of a tool once.
func (l *sessionLink) request(ctx context.Context, method string, params json.RawMessage) (*reply, error) {
	var raw json.RawMessage
	var err error
	switch method {
	case MethodGetPrompt:
		raw, err = l.GetPrompt(ctx, params)
	case MethodReadResource:
		raw, err = l.ReadResource(ctx, params)
	case MethodComplete:
		raw, err = l.Complete(ctx, params)
	default:
		return nil, fmt.Errorf("there is no method %q", method)
	}
	if err != nil {
		return nil, err
	}
	return &reply{result: contract.ActionResult{Type: contract.ActionToolResult, Content: raw}}, nil
}
