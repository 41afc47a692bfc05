package mcpclient

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// observingTransport passes the notifications of a server to its session before the
// message that follows them is read. The library handles notifications in a goroutine of
// its own, so that a result can overtake them.
//
// The transport of streamable HTTP cannot be wrapped: its connection has more methods than
// the interface. There, the handlers of the library are used.
type observingTransport struct {
	mcp.Transport
	session *Session
}

// Connect implements mcp.Transport.
func (t observingTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return observingConnection{c, t.session}, nil
}

type observingConnection struct {
	mcp.Connection
	session *Session
}

// Read implements mcp.Connection.
func (c observingConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.Connection.Read(ctx)
	if notification, ok := msg.(*jsonrpc.Request); ok && err == nil && !notification.IsCall() {
		switch notification.Method {
		case "notifications/tools/list_changed":
			c.session.reportChange()
		case "notifications/progress":
			var params mcp.ProgressNotificationParams
			if strictjson.UnmarshalAllowUnknown(notification.Params, &params) == nil {
				c.session.progress.pass(&params)
			}
		}
	}
	return msg, err
}

// reportChange signals that the tools of the server have changed.
func (s *Session) reportChange() {
	s.changes.Add(1)
	select {
	case s.changed <- struct{}{}:
	default: // the signal is pending
	}
}
