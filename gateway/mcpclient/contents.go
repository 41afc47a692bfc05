package mcpclient

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

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
	// Invalid is why the entry cannot be used; "" = it can. Then ID names it in a log, and there
	// is no definition.
	Invalid string
}

// Limits of a list of one server.
const (
	maxEntries    = 2000
	maxEntryBytes = 8 << 20 // of all definitions
)

// ErrNotAnswered means that the server has not answered a request of a list, for example because
// the connection was lost.
var ErrNotAnswered = errors.New("the server did not answer")

// Prompts returns all prompts of the server. The error is ErrNotAnswered, or the list is not valid.
func (s *Session) Prompts(ctx context.Context) ([]Entry, error) {
	return collect(s, func(cursor string) (page[mcp.Prompt], error) {
		list, err := requestList(ctx, s, &mcp.ListPromptsParams{Cursor: cursor}, s.session.ListPrompts)
		if err != nil {
			return page[mcp.Prompt]{}, err
		}
		return page[mcp.Prompt]{list.Prompts, list.NextCursor}, nil
	}, func(p *mcp.Prompt) (string, string, mcp.Meta) { return p.Name, p.Name, p.Meta })
}

// Resources returns all resources that the server lists. It may have others. See Prompts.
func (s *Session) Resources(ctx context.Context) ([]Entry, error) {
	return collect(s, func(cursor string) (page[mcp.Resource], error) {
		list, err := requestList(ctx, s, &mcp.ListResourcesParams{Cursor: cursor}, s.session.ListResources)
		if err != nil {
			return page[mcp.Resource]{}, err
		}
		return page[mcp.Resource]{list.Resources, list.NextCursor}, nil
	}, func(r *mcp.Resource) (string, string, mcp.Meta) { return r.URI, r.Name, r.Meta })
}

// ResourceTemplates returns all templates of resources of the server. See Prompts.
func (s *Session) ResourceTemplates(ctx context.Context) ([]Entry, error) {
	return collect(s, func(cursor string) (page[mcp.ResourceTemplate], error) {
		list, err := requestList(ctx, s, &mcp.ListResourceTemplatesParams{Cursor: cursor}, s.session.ListResourceTemplates)
		if err != nil {
			return page[mcp.ResourceTemplate]{}, err
		}
		return page[mcp.ResourceTemplate]{list.ResourceTemplates, list.NextCursor}, nil
	}, func(t *mcp.ResourceTemplate) (string, string, mcp.Meta) { return t.URITemplate, t.Name, t.Meta })
}

// page is a part of a list.
type page[T any] struct {
	items []*T
	next  string // cursor of the next part; "" = none
}

// collect returns the entries of a list. identify returns the id of an entry, its name and its
// metadata.
func collect[T any](s *Session, fetch func(cursor string) (page[T], error), identify func(*T) (id, name string, meta mcp.Meta)) ([]Entry, error) {
	var entries []Entry
	count, size := 0, 0
	cursors := map[string]bool{} // a list that does not end repeats them
	for cursor := ""; ; {
		p, err := fetch(cursor)
		if err != nil {
			if text := describeInvalid(err); text != "" {
				return nil, fmt.Errorf("the list is not valid: %s", text)
			}
			if !isReply(err) {
				return nil, fmt.Errorf("%w: %s", ErrNotAnswered, s.hide(err.Error()))
			}
			return nil, errors.New(s.hide(err.Error()))
		}
		for _, item := range p.items {
			raw, err := strictjson.Marshal(item)
			if err != nil {
				return nil, err
			}
			count++
			size += len(raw)
			switch {
			case count > maxEntries:
				return nil, fmt.Errorf("the list has more than %d entries", maxEntries)
			case size > maxEntryBytes:
				return nil, fmt.Errorf("the list has more than %d bytes", maxEntryBytes)
			case item == nil:
				continue
			}
			id, name, meta := identify(item)
			if reason := describeID(id, meta); reason != "" {
				entries = append(entries, Entry{ID: cmp.Or(id, name), Invalid: reason})
			} else {
				entries = append(entries, Entry{ID: id, Definition: raw})
			}
		}
		cursor = p.next
		switch {
		case cursor == "":
			return entries, nil
		case cursors[cursor] || len(cursors) > maxEntries:
			return nil, errEndlessList
		}
		cursors[cursor] = true
	}
}

// describeID returns why an entry with the id and the metadata cannot be used, or "".
func describeID(id string, meta mcp.Meta) string {
	replaced, ok := meta[invalidKey].(string)
	switch {
	case ok:
		return replaced
	case id == "":
		return "its name or URI is empty"
	case strings.ContainsFunc(id, unicode.IsControl):
		return "its name or URI contains a control character"
	}
	return ""
}

// GetPrompt sends prompts/get, and returns its result as the protocol defines it. params
// are those of the method. The error is a *CallError, or that of the context, of which the
// server is notified.
func (s *Session) GetPrompt(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	return request(ctx, s, params, &mcp.GetPromptParams{}, s.session.GetPrompt, func(r *mcp.GetPromptResult) bool {
		return !r.NeedsInput() && r.Messages != nil && !slices.ContainsFunc(r.Messages, func(m *mcp.PromptMessage) bool { return m == nil || m.Content == nil })
	})
}

// ReadResource sends resources/read. See GetPrompt.
func (s *Session) ReadResource(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	return request(ctx, s, params, &mcp.ReadResourceParams{}, s.session.ReadResource, func(r *mcp.ReadResourceResult) bool {
		return !r.NeedsInput() && r.Contents != nil && !slices.Contains(r.Contents, nil)
	})
}

// Complete sends completion/complete. See GetPrompt.
func (s *Session) Complete(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	return request(ctx, s, params, &mcp.CompleteParams{}, s.session.Complete, func(*mcp.CompleteResult) bool { return true })
}

// request sends a request with the parameters, which it decodes into p. isValid reports
// whether a result is complete: the library accepts one without contents.
func request[P mcp.Params, R mcp.Result](
	ctx context.Context, s *Session, params json.RawMessage, p P, send func(context.Context, P) (R, error), isValid func(R) bool,
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
	if !isValid(result) {
		return nil, &CallError{Text: "it is not complete", Invalid: true}
	}
	raw, err := strictjson.Marshal(result)
	if err != nil {
		return nil, &CallError{Text: err.Error(), Invalid: true}
	}
	return raw, nil
}
