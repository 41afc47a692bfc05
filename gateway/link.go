package gateway

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway/mcpclient"
)

// link is what a connected server is called through.
type link interface {
	// call calls the tool once. Errors are *mcpclient.CallError or of the context.
	call(ctx context.Context, t *tool, c *toolCall) (*reply, error)
}

// sessionLink calls tools of an MCP server.
type sessionLink struct{ *mcpclient.Session }

func (l *sessionLink) call(ctx context.Context, t *tool, c *toolCall) (*reply, error) {
	if t.method != methodCall {
		return l.request(ctx, t.method, c.input)
	}
	result, err := l.Call(ctx, t.Name, c.input, c.onProgress)
	if err != nil {
		return nil, err
	}
	return newReply(result), nil
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
