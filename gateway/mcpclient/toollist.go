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

// The library decodes a list of tools as a whole, so that one tool with a member of a wrong
// type hides the others. Such a list is requested again, and the tools that cannot be decoded
// are replaced before the library reads the reply: over stdio and SSE in the message, over
// streamable HTTP, whose connection cannot be wrapped, in the body.

// invalidKey is the member of a tool's _meta with the reason why it was replaced.
const invalidKey = "caprouter/invalid"

type lenientKey struct{}

// lenient returns a context for a list whose tools that cannot be decoded are replaced.
func lenient(ctx context.Context) context.Context {
	return context.WithValue(ctx, lenientKey{}, true)
}

func isLenient(ctx context.Context) bool { return ctx.Value(lenientKey{}) != nil }

// replaceInvalidTools returns the result of tools/list with a tool without members in the
// place of each one that cannot be decoded. Any other result is returned as it is.
func replaceInvalidTools(result json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if strictjson.UnmarshalAllowUnknown(result, &members) != nil {
		return result
	}
	var tools []json.RawMessage
	if strictjson.UnmarshalAllowUnknown(members["tools"], &tools) != nil {
		return result
	}
	changed := false
	for i, raw := range tools {
		err := strictjson.UnmarshalAllowUnknown(raw, &mcp.Tool{})
		if err == nil {
			continue
		}
		replacement, failed := strictjson.Marshal(&mcp.Tool{
			Name: nameOf(raw, i), InputSchema: struct{}{}, Meta: mcp.Meta{invalidKey: describeTool(err)},
		})
		if failed != nil {
			return result
		}
		tools[i], changed = replacement, true
	}
	if !changed {
		return result
	}
	var err error
	if members["tools"], err = strictjson.Marshal(tools); err != nil {
		return result
	}
	replaced, err := strictjson.Marshal(members)
	if err != nil {
		return result
	}
	return replaced
}

// nameOf returns the name of a tool that cannot be decoded, or its place in the list.
func nameOf(raw json.RawMessage, i int) string {
	var tool struct {
		Name string `json:"name"`
	}
	if strictjson.UnmarshalAllowUnknown(raw, &tool) != nil || tool.Name == "" {
		return fmt.Sprintf("tools/%d", i)
	}
	return tool.Name
}

func describeTool(err error) string {
	if e, ok := errors.AsType[*strictjson.Error](err); ok && e.Pointer != "" {
		return fmt.Sprintf("its %s %s", strings.TrimPrefix(e.Pointer, "/"), e.Detail)
	}
	return err.Error()
}

// replaceInMessage is replaceInvalidTools for the JSON-RPC response with the result.
func replaceInMessage(message []byte) []byte {
	var members map[string]json.RawMessage
	if strictjson.UnmarshalAllowUnknown(message, &members) != nil || members["result"] == nil {
		return message
	}
	result := replaceInvalidTools(members["result"])
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

// lenientTransport is a transport whose connection replaces invalid tools while its session
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
		response.Result = replaceInvalidTools(response.Result)
	}
	return msg, err
}
