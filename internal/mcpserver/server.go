package mcpserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/mcphost"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Path is the path of the endpoint.
const Path = "/mcp"

// metadataPath is the path of the metadata of all resources (RFC 9728 §3); that of the
// endpoint has Path at its end.
const metadataPath = "/.well-known/oauth-protected-resource"

// Config configures a Server. AuthorizationServers and RouteLimit may be nil.
type Config struct {
	Version string // of caprouter
	// PublicURL returns the URL of the router without a trailing slash.
	PublicURL func() string
	// AuthorizationServers are the issuers of tokens that the router accepts. MCP clients
	// find them in the metadata of the endpoint, and ask their user to log in there.
	AuthorizationServers []string
	// RouteLimit limits how often a caller may send a routing request.
	RouteLimit httpserver.RateLimiter

	Tools    Tools
	Contents Contents
	// Changed returns a channel that is closed at the next change of the servers, of their tools,
	// prompts and resources, or of the agents that may use them.
	Changed func() <-chan struct{}

	Router   Router
	Registry func() *capabilities.Snapshot // returns the current snapshot
	Meter    Meter
	Logger   *slog.Logger
}

// Tools calls tools of MCP servers. *mcphost.Host implements it.
type Tools interface {
	Servers() []gateway.ServerInfo
	// WaitServer waits until the server is connected or has failed.
	WaitServer(ctx context.Context, name string) (info gateway.ServerInfo, ok bool)
	// MayUseServer reports whether the caller may call tools of the server, if it has the
	// scopes of their actions.
	MayUseServer(caller *contract.Caller, s *gateway.ServerInfo) bool
	// Call returns a *contract.ActionError if there is no result.
	Call(ctx context.Context, call *mcphost.Call) (*contract.ActionResult, error)
}

// Contents passes on prompts and resources of MCP servers. *mcphost.Host implements it.
type Contents interface {
	// Request returns a *contract.ActionError if there is no result.
	Request(ctx context.Context, call *mcphost.Call, server, method string, params json.RawMessage) (json.RawMessage, error)
}

// Router routes requests. *router.Router implements it.
type Router interface {
	// HandleJSON returns the response, and its JSON, or nil if it is not encoded yet. Clients
	// receive only errors that are a *contract.Error.
	HandleJSON(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Response, []byte, error)
}

// Meter counts routing requests that end with an error instead of a response; the
// router counts the others.
type Meter interface {
	RecordRequest(outcome string, took time.Duration)
}

// Server is the MCP server. It is immutable.
type Server struct {
	cfg    Config
	whole  http.Handler // answers with one JSON document
	stream http.Handler // answers with a stream of progress and the result
}

// New returns the API of an MCP server, to be mounted on an HTTP server.
func New(cfg Config) httpserver.API {
	s := &Server{cfg: cfg}
	s.whole = mcp.NewStreamableHTTPHandler(serverOf, handlerOptions(true))
	s.stream = mcp.NewStreamableHTTPHandler(serverOf, handlerOptions(false))
	api := httpserver.API{
		Prefix: Path,
		Routes: []httpserver.Route{{
			Method: http.MethodPost, Path: Path, Scope: contract.ScopeRouteSubmit, HasScope: mayUseAny, MissingScope: errNoScope,
			Body:   httpserver.BodySpec{MaxBytes: contract.MaxBodyBytes, MediaTypes: []string{httpserver.MediaTypeJSON}},
			Handle: s.handleMessage,
		}, {
			Method: http.MethodGet, Path: Path, Scope: contract.ScopeRouteSubmit, HasScope: mayUseAny, MissingScope: errNoScope,
			Class: httpserver.ClassStream, Handle: s.handleStream,
		}},
		EncodeError: encodeError,
		NotFound:    "the MCP endpoint is POST " + Path,
	}
	if len(cfg.AuthorizationServers) > 0 {
		api.ResourceMetadata = func() string { return cfg.PublicURL() + metadataPath + Path }
	}
	return api
}

// NewMetadata returns the API with the metadata of the endpoint (RFC 9728), or false if the
// configuration names no authorization server.
func NewMetadata(cfg Config) (api httpserver.API, ok bool) {
	if len(cfg.AuthorizationServers) == 0 {
		return api, false
	}
	handle := func(c *httpserver.Context) error {
		c.SetHeader("Access-Control-Allow-Origin", "*") // clients in browsers read it before they have a token
		return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, resourceMetadata{
			Resource: cfg.PublicURL() + Path, AuthorizationServers: cfg.AuthorizationServers,
			Scopes:        []string{contract.ScopeRouteSubmit, contract.ScopeAgentsRead},
			BearerMethods: []string{"header"},
		})
	}
	api = httpserver.API{Prefix: metadataPath, EncodeError: encodeError, NotFound: "there is no such resource"}
	for _, path := range []string{metadataPath, metadataPath + Path} {
		api.Routes = append(api.Routes, httpserver.Route{
			Method: http.MethodGet, Path: path, Scope: httpserver.Public, Class: httpserver.ClassUnlimited, Handle: handle,
		})
	}
	return api, true
}

// resourceMetadata is the metadata of a protected resource (RFC 9728 §2).
type resourceMetadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	Scopes               []string `json:"scopes_supported"`
	BearerMethods        []string `json:"bearer_methods_supported"`
}

func handlerOptions(whole bool) *mcp.StreamableHTTPOptions {
	return &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: whole,
		// The HTTP server has checked the host and the size of the body.
		DisableLocalhostProtection: true, MaxRequestBodyBytes: -1,
	}
}

// mayUseAny reports whether the caller may use any tool.
func mayUseAny(caller *contract.Caller) bool {
	return caller.HasScope(contract.ScopeRouteSubmit) || caller.HasScope(contract.ScopeAgentsRead) || caller.MayInvoke("")
}

var errNoScope = &contract.Error{
	Code: contract.CodeForbidden,
	Message: fmt.Sprintf("the token permits no tool: it needs %s, %s, or a scope that begins with %s",
		contract.ScopeRouteSubmit, contract.ScopeAgentsRead, contract.ScopeInvokePrefix),
}

// serverKey is the key of the *mcp.Server in the context of a request.
type serverKey struct{}

func serverOf(r *http.Request) *mcp.Server {
	server, _ := r.Context().Value(serverKey{}).(*mcp.Server)
	return server
}

// envelope is what the server needs to know of a message before the SDK decodes it.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Meta struct {
			ProgressToken any `json:"progressToken"`
		} `json:"_meta"`
		Notifications json.RawMessage `json:"notifications"` // of methodListen
	} `json:"params"`
}

// handleMessage handles a message of a client, which is one request or notification.
func (s *Server) handleMessage(c *httpserver.Context) error {
	defer c.ReleaseBody()
	var m envelope
	if err := strictjson.UnmarshalAllowUnknown(c.Body(), &m); err != nil {
		return &contract.Error{Code: contract.CodeInvalidRequest, Message: "the body " + describe(err) + ": it must be one JSON-RPC message"}
	}
	message := &call{server: s, http: c}
	if wanted := m.listens(c.Request.Header); len(wanted) > 0 {
		return message.listen(m.ID, wanted)
	}
	handler, w := s.whole, &writer{Context: c}
	if m.Params.Meta.ProgressToken != nil {
		handler = s.stream
	}
	// The handlers end with the request. The SDK must not: it would end the response without
	// the error if the shutdown cancels the request.
	r := c.Request.WithContext(context.WithValue(context.WithoutCancel(c.Request.Context()), serverKey{}, message.newMCPServer()))
	r.Body = io.NopCloser(bytes.NewReader(c.Body()))
	handler.ServeHTTP(w, r)
	w.finish()
	if w.rejection != "" {
		return c.WriteJSON(http.StatusBadRequest, httpserver.MediaTypeJSON, newRPCError(m.validID(), c.ID, contract.CodeInvalidRequest, w.rejection))
	}
	if outcome := message.outcome.Load(); outcome != nil {
		c.SetOutcome(*outcome)
	}
	return nil
}

// validID returns the id if it is a string or a number, and nil otherwise.
func (m *envelope) validID() json.RawMessage {
	if len(m.ID) > 0 && strings.IndexByte(`"-0123456789`, m.ID[0]) >= 0 {
		return m.ID
	}
	return nil
}

func describe(err error) string {
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		return e.Detail
	}
	return "cannot be decoded"
}

// writer writes the response of the SDK, which is one document or a stream of events. While
// the SDK handles the message, only its goroutine uses the writer.
//
// Each event has the time of a whole response. Between two events there is no deadline,
// because HTTP/2 ends a stream whose write deadline passes even if nothing is being written.
//
// The SDK rejects some messages in plain text, which clients of the protocol do not
// understand. This is no response yet.
type writer struct {
	*httpserver.Context
	status    int // 0 = 200
	written   bool
	rejection string // why the SDK rejected the message; "" = it did not
}

func (w *writer) WriteHeader(status int) { w.status = status }

func (w *writer) Write(p []byte) (int, error) {
	w.written = true
	if w.isStream() {
		w.ExtendWriteDeadline()
		return w.Context.Write(p)
	}
	if w.status >= http.StatusBadRequest && strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		w.rejection += strings.TrimSpace(string(p))
		return len(p), nil
	}
	w.WriteEncoded(cmp.Or(w.status, http.StatusOK), w.Header().Get("Content-Type"), p)
	return len(p), nil
}

// FlushError sends an event.
func (w *writer) FlushError() error {
	if !w.isStream() {
		return nil
	}
	w.ExtendWriteDeadline()
	defer w.ClearWriteDeadline()
	return http.NewResponseController(w.Context).Flush()
}

func (w *writer) isStream() bool { return w.Header().Get("Content-Type") == httpserver.MediaTypeEvents }

// finish ends the response.
func (w *writer) finish() {
	if w.status != 0 && !w.written {
		w.Context.WriteHeader(w.status)
	}
	w.ExtendWriteDeadline() // for the rest of a stream
}

// encodeError returns an error that precedes the protocol as a JSON-RPC error without an id.
func encodeError(requestID string, e *contract.Error) (httpserver.EncodedError, bool) {
	status, ok := statuses[e.Code]
	return httpserver.EncodedError{Status: status, ContentType: httpserver.MediaTypeJSON, Body: newRPCError(nil, requestID, e.Code, e.Message)}, ok
}

func newRPCError(id json.RawMessage, requestID string, code contract.Code, message string) rpcError {
	data := rpcErrorData{Code: code, RequestID: requestID}
	return rpcError{Version: "2.0", ID: id, Error: rpcErrorDetail{Code: codeServerError, Message: message, Data: data}}
}

// codeServerError is the code of errors of servers (JSON-RPC 2.0 §5.1).
const codeServerError = -32000

// rpcError is the response to a message that the SDK did not handle. If its id is not known,
// it is left out (MCP 2025-11-25, schema: JSONRPCErrorResponse): clients do not accept null,
// which JSON-RPC prescribes.
type rpcError struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Error   rpcErrorDetail  `json:"error"`
}

type rpcErrorDetail struct {
	Code    int          `json:"code"`
	Message string       `json:"message"`
	Data    rpcErrorData `json:"data"`
}

type rpcErrorData struct {
	Code      contract.Code `json:"code"`
	RequestID string        `json:"request_id"`
}

// statuses are the HTTP statuses of errors that precede the protocol. It is read-only.
var statuses = map[contract.Code]int{
	contract.CodeInvalidRequest:       http.StatusBadRequest,
	contract.CodeUnauthenticated:      http.StatusUnauthorized,
	contract.CodeForbidden:            http.StatusForbidden,
	contract.CodeNotFound:             http.StatusNotFound,
	contract.CodeMethodNotAllowed:     http.StatusMethodNotAllowed,
	contract.CodePayloadTooLarge:      http.StatusRequestEntityTooLarge,
	contract.CodeUnsupportedMediaType: http.StatusUnsupportedMediaType,
	contract.CodeRateLimited:          http.StatusTooManyRequests,
	contract.CodeOverloaded:           http.StatusServiceUnavailable,
	contract.CodeInternal:             http.StatusInternalServerError,
}
