package mcpserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/strictjson"
)

const (
	methodListen             = "subscriptions/listen"
	notificationTools        = "notifications/tools/list_changed"
	notificationAcknowledged = "notifications/subscriptions/acknowledged"

	// eventMessage is the name of an event that contains a message.
	eventMessage = "message"
	// listenVersion is the first version of the protocol with methodListen. Clients of earlier
	// ones receive notifications on the stream of a GET.
	listenVersion = "2026-07-28"
	// changeDelay joins changes that follow each other, for example of several servers.
	changeDelay = 300 * time.Millisecond
)

// notification is a JSON-RPC message without an id.
type notification struct {
	Version string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  any    `json:"params,omitempty"`
}

// listens reports whether the message asks for changes of the list of tools. The SDK handles and
// rejects other messages.
func (m *envelope) listens(header http.Header) bool {
	var wanted mcp.NotificationSubscriptions
	return m.Method == methodListen && m.validID() != nil &&
		header.Get("Mcp-Protocol-Version") >= listenVersion && header.Get("Mcp-Method") == methodListen &&
		strictjson.UnmarshalAllowUnknown(m.Params.Notifications, &wanted) == nil && wanted.ToolsListChanged
}

// listen answers methodListen (MCP 2026-07-28): the response is a stream of notifications with the
// id of the request.
func (c *call) listen(id json.RawMessage) error {
	if err := c.http.ChangeClass(httpserver.ClassStream); err != nil {
		return err
	}
	meta := mcp.Meta{mcp.MetaKeySubscriptionID: json.RawMessage(bytes.Clone(id))}
	c.http.ReleaseBody()
	agreed := map[string]any{"_meta": meta, "notifications": map[string]bool{"toolsListChanged": true}}
	return c.streamChanges(changeStream{
		first:   notification{Version: "2.0", Method: notificationAcknowledged, Params: agreed},
		changed: notification{Version: "2.0", Method: notificationTools, Params: &mcp.ToolListChangedParams{Meta: meta}},
	})
}

// handleStream answers a GET with a stream of notifications (MCP 2025-11-25, basic/transports,
// listening for messages from the server). It begins with one, because the list may have changed
// since an earlier stream of the client.
func (s *Server) handleStream(c *httpserver.Context) error {
	if !strings.Contains(strings.Join(c.Request.Header.Values("Accept"), ","), httpserver.MediaTypeEvents) {
		return &contract.Error{Code: contract.CodeInvalidRequest, Message: "Accept must contain " + httpserver.MediaTypeEvents}
	}
	changed := notification{Version: "2.0", Method: notificationTools}
	return (&call{server: s, http: c}).streamChanges(changeStream{first: changed, changed: changed, numbered: true})
}

// changeStream describes a stream of notifications.
type changeStream struct {
	first, changed notification
	// numbered events have ids. Some clients end their session after a few streams without a new
	// id. A stream cannot be resumed at one.
	numbered bool
}

// streamChanges sends the first notification, and one for each change of the tools that the caller
// sees, until the client disconnects.
func (c *call) streamChanges(stream changeStream) error {
	return c.http.StreamEvents(httpserver.EventStream{EndOnShutdown: true, EndWithToken: true, Source: func(ctx context.Context, emit httpserver.EmitFunc) error {
		send := func(n notification) error {
			e := &httpserver.Event{Name: eventMessage, Data: n}
			if stream.numbered {
				e.ID = uint64(time.Now().UnixMicro())
			}
			return emit(e)
		}
		known := c.digestTools()
		if err := send(stream.first); err != nil {
			return err
		}
		for {
			next := c.server.cfg.ToolsChanged() // before the comparison, so that no change is missed
			if now := c.digestTools(); now != known {
				known = now
				if err := send(stream.changed); err != nil {
					return err
				}
			}
			select {
			case <-next:
			case <-ctx.Done():
				return nil
			}
			if !resilience.Sleep(ctx, changeDelay) {
				return nil
			}
		}
	}})
}

// digestTools returns a hash of the list of tools that the caller sees.
func (c *call) digestTools() [sha256.Size]byte {
	h := sha256.New()
	tools := c.tools()
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		t := tools[name]
		for _, part := range [][]byte{[]byte(name), []byte(t.Title), []byte(t.Description), t.Parameters, t.OutputSchema, t.Annotations} {
			_, _ = h.Write(binary.AppendUvarint(nil, uint64(len(part))))
			_, _ = h.Write(part)
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}
