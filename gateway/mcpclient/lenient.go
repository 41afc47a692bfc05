package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// The library decodes a list as a whole, so that one entry with a member of a wrong type hides
// the others. Such a list is requested again, and the entries that cannot be decoded are
// replaced before the library reads the reply: over stdio and SSE in the message, over
// streamable HTTP, whose connection cannot be wrapped, in the body.

// invalidKey is the member of an entry's _meta with the reason why it was replaced.
const invalidKey = "caprouter/invalid"

type lenientKey struct{}

// lenient returns a context for a list whose entries that cannot be decoded are replaced.
func lenient(ctx context.Context) context.Context {
	return context.WithValue(ctx, lenientKey{}, true)
}

func isLenient(ctx context.Context) bool { return ctx.Value(lenientKey{}) != nil }

// newListEntry returns a new entry of the list that is the member of a result, nil if that is
// no list.
func newListEntry(member string) any {
	switch member {
	case "tools":
		return new(mcp.Tool)
	case "prompts":
		return new(mcp.Prompt)
	case "resources":
		return new(mcp.Resource)
	case "resourceTemplates":
		return new(mcp.ResourceTemplate)
	}
	return nil
}

// isList reports whether the result is that of a list.
func isList(result json.RawMessage) bool {
	var members map[string]json.RawMessage
	if strictjson.UnmarshalAllowUnknown(result, &members) != nil {
		return false
	}
	for member, raw := range members {
		if newListEntry(member) != nil && bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) {
			return true
		}
	}
	return false
}

// replaceInvalid returns the result of a list with an entry that has only a name in the place
// of each one that cannot be decoded. Any other result is returned as it is.
func replaceInvalid(result json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if strictjson.UnmarshalAllowUnknown(result, &members) != nil {
		return result
	}
	changed := false
	for member, raw := range members {
		var entries []json.RawMessage
		if newListEntry(member) == nil || strictjson.UnmarshalAllowUnknown(raw, &entries) != nil {
			continue
		}
		for i, entry := range entries {
			err := strictjson.UnmarshalAllowUnknown(entry, newListEntry(member))
			if err == nil {
				continue
			}
			replacement, failed := strictjson.Marshal(map[string]any{
				"name": nameOf(entry, member, i), "inputSchema": struct{}{}, "_meta": map[string]string{invalidKey: describeEntry(err)},
			})
			if failed != nil {
				return result
			}
			entries[i], changed = replacement, true
		}
		var err error
		if members[member], err = strictjson.Marshal(entries); err != nil {
			return result
		}
	}
	if !changed {
		return result
	}
	replaced, err := strictjson.Marshal(members)
	if err != nil {
		return result
	}
	return replaced
}

// nameOf returns the URI or the name of an entry that cannot be decoded, or its place in the
// list.
func nameOf(raw json.RawMessage, member string, i int) string {
	var members map[string]json.RawMessage
	if strictjson.UnmarshalAllowUnknown(raw, &members) == nil {
		for _, key := range []string{"uri", "uriTemplate", "name"} {
			var name string
			if strictjson.UnmarshalAllowUnknown(members[key], &name) == nil && name != "" {
				return name
			}
		}
	}
	return fmt.Sprintf("%s/%d", member, i)
}

func describeEntry(err error) string {
	if e, ok := errors.AsType[*strictjson.Error](err); ok && e.Pointer != "" {
		return fmt.Sprintf("its %s %s", strings.TrimPrefix(e.Pointer, "/"), e.Detail)
	}
	return err.Error()
}

// replaceInMessage is replaceInvalid for the JSON-RPC response with the result.
func replaceInMessage(message []byte) []byte {
	var members map[string]json.RawMessage
	if strictjson.UnmarshalAllowUnknown(message, &members) != nil || members["result"] == nil {
		return message
	}
	result := replaceInvalid(members["result"])
	if bytes.Equal(result, members["result"]) {
		return message
	}
	members["result"] = result
	replaced, err := strictjson.Marshal(members)
	if err != nil {
		return message
	}
	return replaced
}

// requestList requests a page of a list.
func requestList[P, R any](ctx context.Context, s *Session, params P, list func(context.Context, P) (R, error)) (R, error) {
	page, err := list(ctx, params)
	if describeInvalid(err) == "" {
		return page, err
	}
	s.lenient.Add(1)
	defer s.lenient.Add(-1)
	return list(lenient(ctx), params)
}

// lenientTransport is a transport whose connection replaces invalid entries while its session
// requests a list for the second time.
type lenientTransport struct {
	mcp.Transport
	session *Session
}

// Connect implements mcp.Transport.
func (t lenientTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return lenientConnection{c, t.session}, nil
}

type lenientConnection struct {
	mcp.Connection
	session *Session
}

// Read implements mcp.Connection.
func (c lenientConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.Connection.Read(ctx)
	if response, ok := msg.(*jsonrpc.Response); ok && err == nil && c.session.lenient.Load() > 0 {
		response.Result = replaceInvalid(response.Result)
	}
	return msg, err
}
