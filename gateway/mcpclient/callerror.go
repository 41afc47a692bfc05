package mcpclient

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Codes that the library uses for its own failures.
const (
	codeClosing  = -32004
	codeRejected = -32005
)

// isReply reports whether the error is a JSON-RPC error of the server.
func isReply(err error) bool {
	reply, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && reply.Code != codeClosing && reply.Code != codeRejected
}

// CallError is the error of a call.
type CallError struct {
	Text string
	// Reply means that the server answered with an error: it is alive, and the same
	// call will probably fail again.
	Reply bool
	// Code is that of the reply (JSON-RPC 2.0 §5.1).
	Code int64
	// Invalid means that the server answered with a result that is none of the method. Text
	// names what is wrong with it.
	Invalid bool
	// NotSent means that the server has not received the call, or has rejected its request: it
	// does not know the session any more, rejects the credential or limits its callers.
	NotSent bool
}

// Error implements error.
func (e *CallError) Error() string { return e.Text }

func (s *Session) newCallError(err error, d *delivery) *CallError {
	if text := describeInvalid(err); text != "" {
		return &CallError{Text: s.hide(text), Invalid: true}
	}
	e := &CallError{Text: s.hide(err.Error()), Reply: isReply(err)}
	if e.Reply {
		reply, _ := errors.AsType[*jsonrpc.Error](err)
		e.Text, e.Code = s.hide(reply.Message), reply.Code
		return e
	}
	dial, ok := errors.AsType[*net.OpError](err)
	switch status := d.status.Load(); {
	case status == 0:
		e.NotSent = !d.sent.Load() || ok && dial.Op == "dial"
	case status == http.StatusNotFound:
		e.NotSent = errors.Is(err, mcp.ErrSessionMissing)
	case status == http.StatusRequestTimeout: // of a proxy, which may have sent the call
	case status >= 400 && status < 500:
		e.NotSent = true
	}
	if errors.Is(err, io.EOF) && s.process != nil {
		e.Text = "the connection was lost during the call"
	}
	return e
}

// hide removes credentials from a text, also the id of the session, with which another
// client could use it.
func (s *Session) hide(text string) string {
	if id := s.session.ID(); id != "" {
		text = strings.ReplaceAll(text, id, "<redacted>")
	}
	return s.server.Hide(text)
}

// delivery records whether the message of a call was sent, and how the server responded. The
// error of the call does not show this: if a session fails, all of its calls get the same
// error.
type delivery struct {
	sent   atomic.Bool  // it may have been written
	status atomic.Int32 // of the HTTP response to it; 0 = none yet, or another transport
}

type deliveryKey struct{}

func withDelivery(ctx context.Context) (context.Context, *delivery) {
	d := &delivery{}
	return context.WithValue(ctx, deliveryKey{}, d), d
}

// deliveryOf returns nil for a message that is no call, or one about a call that was sent
// already, for example its cancellation.
func deliveryOf(ctx context.Context) *delivery {
	if d, ok := ctx.Value(deliveryKey{}).(*delivery); ok && d.sent.CompareAndSwap(false, true) {
		return d
	}
	return nil
}

// callPrefix begins the errors of the library.
var callPrefix = regexp.MustCompile(`^calling "[a-z/]+": `)

// describeInvalid returns what is wrong with a result that cannot be decoded, or "" for any
// other error. The error of the library contains the rest of the result.
func describeInvalid(err error) string {
	if err == nil {
		return ""
	}
	if wrongType, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if wrongType.Field == "" {
			return "it is not an object"
		}
		return fmt.Sprintf("the type of /%s is wrong", strings.ReplaceAll(wrongType.Field, ".", "/"))
	}
	if corrupt, ok := errors.AsType[base64.CorruptInputError](err); ok {
		return fmt.Sprintf("the data of a content is not base64: %v", corrupt)
	}
	if text := describeReplaced(err); text != "" {
		return text
	}
	text := callPrefix.ReplaceAllString(err.Error(), "")
	for _, prefix := range []string{"unrecognized content type", "invalid content type", "nil content", "tool_result nested content"} {
		if strings.HasPrefix(text, prefix) {
			return text
		}
	}
	return ""
}
