package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/telemetry"
)

// Offers is what a server offers besides tools.
type Offers struct{ Prompts, Resources, Completions bool }

// Offers returns what the server has declared on this connection.
func (s *Session) Offers() Offers {
	caps := s.session.InitializeResult().Capabilities
	if caps == nil {
		return Offers{}
	}
	return Offers{Prompts: caps.Prompts != nil, Resources: caps.Resources != nil, Completions: caps.Completions != nil}
}

// Entry is a prompt, a resource or a template of resources.
type Entry struct {
	ID         string          // name of a prompt, URI of a resource, or URI template (RFC 6570)
	Definition json.RawMessage // as the protocol defines it
}

// Limits of a list of one server.
const (
	maxEntries    = 2000
	maxEntryBytes = 8 << 20 // of all definitions
)

// Prompts returns all prompts of the server.
func (s *Session) Prompts(ctx context.Context) ([]Entry, error) {
	return collect(s, s.session.Prompts(ctx, nil), func(p *mcp.Prompt) string { return p.Name })
}

// Resources returns all resources that the server lists. It may have others.
func (s *Session) Resources(ctx context.Context) ([]Entry, error) {
	return collect(s, s.session.Resources(ctx, nil), func(r *mcp.Resource) string { return r.URI })
}

// ResourceTemplates returns all templates of resources of the server.
func (s *Session) ResourceTemplates(ctx context.Context) ([]Entry, error) {
	return collect(s, s.session.ResourceTemplates(ctx, nil), func(t *mcp.ResourceTemplate) string { return t.URITemplate })
}

// collect returns the entries of a list that have an id. A list of empty pages that does
// not end is ended by the context.
func collect[T any](s *Session, list iter.Seq2[*T, error], id func(*T) string) ([]Entry, error) {
	var entries []Entry
	size := 0
	for item, err := range list {
		if err != nil {
			if text := describeInvalid(err); text != "" {
				return nil, fmt.Errorf("the list is not valid: %s", text)
			}
			return nil, errors.New(s.hide(err.Error()))
		}
		if item == nil || id(item) == "" {
			continue
		}
		raw, err := strictjson.Marshal(item)
		if err != nil {
			return nil, err
		}
		size += len(raw)
		switch {
		case len(entries) == maxEntries:
			return nil, fmt.Errorf("the list has more than %d entries", maxEntries)
		case size > maxEntryBytes:
			return nil, fmt.Errorf("the list has more than %d bytes", maxEntryBytes)
		}
		entries = append(entries, Entry{ID: id(item), Definition: raw})
	}
	return entries, nil
}

// GetPrompt sends prompts/get, and returns its result as the protocol defines it. params
// are those of the method. The error is a *CallError, or that of the context, of which the
// server is notified.
func (s *Session) GetPrompt(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	return request(ctx, s, params, &mcp.GetPromptParams{}, s.session.GetPrompt)
}

// ReadResource sends resources/read. See GetPrompt.
func (s *Session) ReadResource(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	return request(ctx, s, params, &mcp.ReadResourceParams{}, s.session.ReadResource)
}

// Complete sends completion/complete. See GetPrompt.
func (s *Session) Complete(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	return request(ctx, s, params, &mcp.CompleteParams{}, s.session.Complete)
}

// request sends a request with the parameters, which it decodes into p.
func request[P mcp.Params, R mcp.Result](
	ctx context.Context, s *Session, params json.RawMessage, p P, send func(context.Context, P) (R, error),
) (json.RawMessage, error) {
	if err := strictjson.UnmarshalAllowUnknown(params, p); err != nil {
		return nil, &CallError{Text: err.Error(), NotSent: true}
	}
	if traceparent := telemetry.Traceparent(ctx); traceparent != "" {
		p.SetMeta(map[string]any{"traceparent": traceparent})
	}
	callCtx, delivered := withDelivery(ctx)
	result, err := send(callCtx, p)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, s.newCallError(err, delivered)
	}
	raw, err := strictjson.Marshal(result)
	if err != nil {
		return nil, &CallError{Text: err.Error(), Invalid: true}
	}
	return raw, nil
}
