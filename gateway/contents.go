package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway/mcpclient"
	"github.com/caprouter/caprouter/gateway/redaction"
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

// Entry is a prompt, a resource or a template of resources.
type Entry = mcpclient.Entry

// contents is what a server offers besides tools, as far as its declaration permits to pass
// it on. Definitions are redacted like results. It is immutable.
type contents struct {
	prompts, resources, templates entryList
	offers                        mcpclient.Offers
}

// entryList is a list of a server.
type entryList struct {
	entries []Entry // that are passed on
	invalid []Entry
}

// maxContentsTime bounds how long a server that hangs delays its tools.
const maxContentsTime = 10 * time.Second

// listContents replaces the contents by those that the server lists, and reports whether they
// differ. A list that is not valid is empty, and logged: the tools of the server can be called
// without it. A list that the server does not answer with is the one before.
func (s *server) listContents(ctx context.Context, session *mcpclient.Session) (changed bool) {
	ctx, cancel := context.WithTimeout(ctx, maxContentsTime)
	defer cancel()
	offers := session.Offers()
	offers.Prompts, offers.Resources = offers.Prompts && s.declared.PassesPrompts(), offers.Resources && s.declared.PassesResources()
	s.mu.Lock()
	before := s.contents
	s.mu.Unlock()
	c := contents{offers: offers}
	if offers.Prompts {
		c.prompts = s.redactEntries(ctx, "prompts", session.Prompts, "name", before.prompts)
	}
	if offers.Resources {
		c.resources = s.redactEntries(ctx, "resources", session.Resources, "uri", before.resources)
		c.templates = s.redactEntries(ctx, "resource templates", session.ResourceTemplates, "uriTemplate", before.templates)
	}
	s.mu.Lock()
	s.contents = c
	s.mu.Unlock()
	return !reflect.DeepEqual(before, c)
}

// redactEntries returns the entries of a list as callers may see them, or those before if the
// server does not answer. An entry is left out if its id, the member with the name, is
// redacted, because it could not be requested.
func (s *server) redactEntries(
	ctx context.Context, what string, list func(context.Context) ([]Entry, error), idMember string, before entryList,
) entryList {
	all, err := list(ctx)
	if errors.Is(err, mcpclient.ErrNotAnswered) {
		s.log.WarnContext(ctx, "a list of the server is kept as it was", "list", what, "error", err)
		return before
	}
	if err != nil {
		s.log.WarnContext(ctx, "a list of the server is not passed on", "list", what, "error", err)
		return entryList{}
	}
	var l entryList
	for _, e := range all {
		switch {
		case e.Invalid != "":
			l.invalid = append(l.invalid, e)
		case !s.policy.rules.Has(redaction.Response):
			l.entries = append(l.entries, e)
		default:
			var members map[string]json.RawMessage
			var id string
			e.Definition = s.policy.rules.JSON(redaction.Response, e.Definition)
			if strictjson.UnmarshalAllowUnknown(e.Definition, &members) == nil && strictjson.Unmarshal(members[idMember], &id) == nil && id == e.ID {
				l.entries = append(l.entries, e)
			}
		}
	}
	s.reportInvalid(ctx, what, l.invalid, before.invalid)
	return l
}

// reportInvalid logs the invalid entries of a list, unless that was logged before.
func (s *server) reportInvalid(ctx context.Context, what string, invalid, before []Entry) {
	known := map[string]string{}
	for _, e := range before {
		known[e.ID] = e.Invalid
	}
	unknown := slices.DeleteFunc(slices.Clone(invalid), func(e Entry) bool { return known[e.ID] == e.Invalid })
	n := min(len(unknown), maxLogged)
	for _, e := range unknown[:n] {
		s.log.WarnContext(ctx, "an entry of a list is not passed on", "list", what, "entry", strings.ToValidUTF8(e.ID[:min(len(e.ID), maxShownName)], ""), "error", e.Invalid)
	}
	if further := len(unknown) - n; further > 0 {
		s.log.WarnContext(ctx, "further entries of a list are not passed on", "list", what, "entries", further)
	}
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

// redactParams returns the parameters of a request as the server may see them: the values of
// arguments are redacted, and not what the request names.
func (s *server) redactParams(params json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if !s.policy.rules.Has(redaction.Request) || strictjson.UnmarshalAllowUnknown(params, &members) != nil {
		return params
	}
	for _, name := range []string{"arguments", "context"} {
		if members[name] != nil {
			members[name] = s.policy.redactInput(redaction.Request, members[name])
		}
	}
	var argument struct {
		Name  string          `json:"name"`
		Value json.RawMessage `json:"value"`
	}
	if strictjson.UnmarshalAllowUnknown(members["argument"], &argument) == nil && argument.Value != nil {
		named := map[string]json.RawMessage{argument.Name: argument.Value} // rules refer to names of arguments
		raw, err := strictjson.Marshal(named)
		if err == nil {
			err = strictjson.UnmarshalAllowUnknown(s.policy.redactInput(redaction.Request, raw), &named)
		}
		if argument.Value = named[argument.Name]; err != nil {
			argument.Value = strictjson.QuoteString("") // never the value itself
		}
		if members["argument"], err = strictjson.Marshal(argument); err != nil {
			delete(members, "argument")
		}
	}
	redacted, err := strictjson.Marshal(members)
	if err != nil {
		return json.RawMessage("{}")
	}
	return redacted
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
	ok = completed == MethodGetPrompt && offers.Prompts && s.declared.PassesPrompts() ||
		completed == MethodReadResource && offers.Resources && s.declared.PassesResources()
	if !ok || method == MethodComplete && !offers.Completions {
		return noRequest(s.declared.ID, method)
	}
	return nil
}
