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
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/strictjson"
)

const (
	methodListen             = "subscriptions/listen"
	notificationAcknowledged = "notifications/subscriptions/acknowledged"

	// eventMessage is the name of an event that contains a message.
	eventMessage = "message"
	// listenVersion is the first version of the protocol with methodListen. Clients of earlier
	// ones receive notifications on the stream of a GET.
	listenVersion = "2026-07-28"
	// changeDelay joins changes that follow each other, for example of several servers. It is
	// shorter than the time between two lists of a server, so that a client is notified even if a
	// list that it got is replaced by the one before.
	changeDelay = 100 * time.Millisecond
)

// notification is a JSON-RPC message without an id.
type notification struct {
	Version string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  any    `json:"params,omitempty"`
}

// notifiedList is a list of whose changes clients are notified.
type notifiedList struct {
	notification string
	member       string // of the notifications that a client asks for
	isWanted     func(*mcp.NotificationSubscriptions) bool
	// parts returns what the caller sees of each entry, by a key that is unique in the list.
	parts func(*call, []gateway.ServerInfo) map[string][][]byte
}

// notifiedLists is read-only.
var notifiedLists = []notifiedList{
	{"notifications/tools/list_changed", "toolsListChanged", func(n *mcp.NotificationSubscriptions) bool { return n.ToolsListChanged }, (*call).toolParts},
	{"notifications/prompts/list_changed", "promptsListChanged", func(n *mcp.NotificationSubscriptions) bool { return n.PromptsListChanged }, (*call).promptParts},
	{"notifications/resources/list_changed", "resourcesListChanged", func(n *mcp.NotificationSubscriptions) bool { return n.ResourcesListChanged }, (*call).resourceParts},
}

func (c *call) toolParts(servers []gateway.ServerInfo) map[string][][]byte {
	parts := map[string][][]byte{}
	for name, t := range c.tools(servers) {
		parts[name] = [][]byte{[]byte(t.Title), []byte(t.Description), t.Parameters, t.OutputSchema, t.Annotations}
	}
	return parts
}

func (c *call) promptParts(servers []gateway.ServerInfo) map[string][][]byte {
	parts := map[string][][]byte{}
	for name, e := range c.prompts(servers) {
		parts[name] = [][]byte{e.Definition}
	}
	return parts
}

// resourceParts returns resources and templates, whose changes have the same notification.
func (c *call) resourceParts(servers []gateway.ServerInfo) map[string][][]byte {
	parts := map[string][][]byte{}
	for uri, e := range c.resources(servers, resourcesOf) {
		parts["resource "+uri] = [][]byte{e.Definition}
	}
	for uri, e := range c.resources(servers, templatesOf) {
		parts["template "+uri] = [][]byte{e.Definition}
	}
	return parts
}

// digest returns a hash of the list as the caller sees it.
func (l *notifiedList) digest(c *call, servers []gateway.ServerInfo) [sha256.Size]byte {
	h := sha256.New()
	entries := l.parts(c, servers)
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		for _, part := range append([][]byte{[]byte(key)}, entries[key]...) {
			_, _ = h.Write(binary.AppendUvarint(nil, uint64(len(part))))
			_, _ = h.Write(part)
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// wantedLists returns the lists of whose changes a client wants to be notified.
func wantedLists(n *mcp.NotificationSubscriptions) []notifiedList {
	return slices.DeleteFunc(slices.Clone(notifiedLists), func(l notifiedList) bool { return !l.isWanted(n) })
}

// listens returns the lists of whose changes the message asks to be notified. If there are none, it
// is one that the SDK handles or rejects.
func (m *envelope) listens(header http.Header) []notifiedList {
	var wanted mcp.NotificationSubscriptions
	if m.Method != methodListen || m.validID() == nil ||
		header.Get("Mcp-Protocol-Version") < listenVersion || header.Get("Mcp-Method") != methodListen ||
		strictjson.UnmarshalAllowUnknown(m.Params.Notifications, &wanted) != nil {
		return nil
	}
	return wantedLists(&wanted)
}

// listen answers methodListen (MCP 2026-07-28): the response is a stream of notifications with the
// id of the request.
func (c *call) listen(id json.RawMessage, wanted []notifiedList) error {
	if err := c.http.ChangeClass(httpserver.ClassStream); err != nil {
		return err
	}
	meta := mcp.Meta{mcp.MetaKeySubscriptionID: json.RawMessage(bytes.Clone(id))}
	c.http.ReleaseBody()
	agreed := map[string]bool{}
	for _, l := range wanted {
		agreed[l.member] = true
	}
	acknowledged := map[string]any{"_meta": meta, "notifications": agreed}
	return c.streamChanges(changeStream{
		lists: wanted, params: map[string]any{"_meta": meta},
		first: []notification{{Version: "2.0", Method: notificationAcknowledged, Params: acknowledged}},
	})
}

// handleStream answers a GET with a stream of notifications (MCP 2025-11-25, basic/transports,
// listening for messages from the server). It begins with one for each list, because the lists may
// have changed since an earlier stream of the client.
func (s *Server) handleStream(c *httpserver.Context) error {
	if !strings.Contains(strings.Join(c.Request.Header.Values("Accept"), ","), httpserver.MediaTypeEvents) {
		return &contract.Error{Code: contract.CodeInvalidRequest, Message: "Accept must contain " + httpserver.MediaTypeEvents}
	}
	stream := changeStream{lists: notifiedLists, numbered: true}
	for _, l := range notifiedLists {
		stream.first = append(stream.first, notification{Version: "2.0", Method: l.notification})
	}
	return (&call{server: s, http: c}).streamChanges(stream)
}

// changeStream describes a stream of notifications.
type changeStream struct {
	lists  []notifiedList
	params any // of the notifications about them; nil = none
	first  []notification
	// numbered events have ids. Some clients end their session after a few streams without a new
	// id. A stream cannot be resumed at one.
	numbered bool
}

// streamChanges sends the first notifications, and one for each change of a list that the caller
// sees, until the client disconnects.
func (c *call) streamChanges(stream changeStream) error {
	return c.http.StreamEvents(httpserver.EventStream{EndOnShutdown: true, EndWithToken: true, Source: func(ctx context.Context, emit httpserver.EmitFunc) error {
		var last uint64 // id of an event
		send := func(n notification) error {
			e := &httpserver.Event{Name: eventMessage, Data: n}
			if stream.numbered {
				last = max(last+1, uint64(time.Now().UnixMicro()))
				e.ID = last
			}
			return emit(e)
		}
		known := make([][sha256.Size]byte, len(stream.lists))
		servers := c.servers()
		for i := range stream.lists {
			known[i] = stream.lists[i].digest(c, servers)
		}
		for _, n := range stream.first {
			if err := send(n); err != nil {
				return err
			}
		}
		for {
			next := c.server.cfg.Changed() // before the comparison, so that no change is missed
			servers := c.servers()
			for i := range stream.lists {
				now := stream.lists[i].digest(c, servers)
				if now == known[i] {
					continue
				}
				known[i] = now
				if err := send(notification{Version: "2.0", Method: stream.lists[i].notification, Params: stream.params}); err != nil {
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
