package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// The notifications of a server are passed to its session before the message that follows
// them is read, because the library handles them in a goroutine of its own, so that a
// result could overtake them. Over stdio the connection of the library is wrapped; over
// HTTP, where its connection has more methods than the interface, the event stream.

// observingTransport is a transport whose connection passes notifications on.
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
		c.session.passNotification(notification.Method, notification.Params)
	}
	return msg, err
}

// Write implements mcp.Connection.
func (c observingConnection) Write(ctx context.Context, msg jsonrpc.Message) error {
	deliveryOf(ctx)
	return c.Connection.Write(ctx, msg)
}

// passNotification acts on a notification of the server.
func (s *Session) passNotification(method string, raw json.RawMessage) {
	switch method {
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed":
		s.reportChange()
	case "notifications/progress":
		var params mcp.ProgressNotificationParams
		if strictjson.UnmarshalAllowUnknown(raw, &params) == nil {
			s.progress.pass(&params)
		}
	}
}

// reportChange signals that a list of the server has changed.
func (s *Session) reportChange() {
	s.changes.Add(1)
	select {
	case s.changed <- struct{}{}:
	default: // the signal is pending
	}
}

// maxNotification bounds a notification in an event stream, in bytes. A larger event is
// taken for a result.
const maxNotification = 1 << 20

// observedStream is an event stream (HTML §9.2) that passes the notifications in it on. The
// goroutine that reads it owns it.
type observedStream struct {
	io.ReadCloser
	session *Session
	line    []byte // the beginning of the current line
	data    []byte // of the current event
	tooLong bool   // the current event is no notification
}

// Read implements io.Reader.
func (o *observedStream) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	for rest := p[:n]; len(rest) > 0; {
		part, after, complete := bytes.Cut(rest, []byte{'\n'})
		if len(o.line)+len(o.data)+len(part) > maxNotification {
			o.tooLong = true
		}
		switch {
		case !o.tooLong:
			o.line = append(o.line, part...)
		case len(bytes.TrimRight(part, "\r")) > 0:
			o.line = append(o.line[:0], part[0]) // only whether the line is empty matters
		}
		if complete {
			o.endLine()
		}
		rest = after
	}
	return n, err
}

// endLine handles a complete line. An empty one ends the event.
func (o *observedStream) endLine() {
	line := bytes.TrimRight(o.line, "\r")
	o.line = o.line[:0]
	if len(line) > 0 {
		if value, ok := bytes.CutPrefix(line, []byte("data:")); ok && !o.tooLong {
			o.data = append(append(o.data, value...), '\n')
		}
		return
	}
	data, tooLong := o.data, o.tooLong
	o.data, o.tooLong = o.data[:0], false
	if tooLong || !bytes.Contains(data, []byte("notifications")) { // a result is not decoded twice
		return
	}
	msg, err := jsonrpc.DecodeMessage(data)
	if notification, ok := msg.(*jsonrpc.Request); ok && err == nil && !notification.IsCall() {
		o.session.passNotification(notification.Method, notification.Params)
	}
}
