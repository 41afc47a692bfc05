// Package mcprelay passes the messages of an MCP client on standard input and output on to a
// running router, with the token of the command, and connects again after the router was away.
package mcprelay

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway/mcpclient"
	"github.com/caprouter/caprouter/internal/cli/restclient"
	"github.com/caprouter/caprouter/internal/mcpserver"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/rest"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Relay passes the requests of one MCP client on to a router.
type Relay struct {
	endpoint, version string
	http              *http.Client
	group             *run.Group
	follow            sync.Once // starts the goroutine of followChanges

	mu      sync.Mutex
	router  *routerSession     // nil = not connected
	session *mcp.ServerSession // of the client; nil before its first call
}

// routerSession is a connection to the router. After a failure it gets no new calls, and is
// closed when the others have ended. The mutex of the relay guards its fields.
type routerSession struct {
	*mcp.ClientSession
	calls  int
	failed bool
}

// New returns a relay to the router of c. version is that of this program.
func New(c *restclient.Client, version string) *Relay {
	return &Relay{
		version: version, endpoint: c.ResourceURL(mcpserver.Path).String(), http: c.HTTPClient(relayTransport{c}),
		group: run.New(context.Background()),
	}
}

// ServeStdio serves the client on standard input and output until it disconnects or ctx ends.
// It fails at once if the router cannot be reached.
func (r *Relay) ServeStdio(ctx context.Context) error {
	defer r.close()
	session, err := r.acquire(ctx)
	if err != nil {
		return err
	}
	r.release(session, false)
	err = r.server().Run(ctx, &mcp.StdioTransport{})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// relayTransport sends requests with the token. Its errors are *transportError, also for a
// response that is no message of the protocol: the SDK would hide the reason.
type relayTransport struct{ client *restclient.Client }

func (t relayTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.client.RoundTrip(req)
	if err != nil {
		return nil, &transportError{err}
	}
	if resp.StatusCode < http.StatusBadRequest {
		return resp, nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err != nil {
		return nil, &transportError{t.client.ConnectionError(err)}
	}
	if rejected := explainRejection(t.client, body); rejected != nil {
		return nil, &transportError{rejected}
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// maxErrorBody bounds the response to a request that failed.
const maxErrorBody = 1 << 20

// explainRejection returns the error of a response to a request that the router has rejected before
// it decoded the message, or nil.
func explainRejection(c *restclient.Client, body []byte) error {
	var resp struct {
		ID    any `json:"id"`
		Error struct {
			Message string `json:"message"`
			Data    struct {
				Code contract.Code `json:"code"`
			} `json:"data"`
		} `json:"error"`
	}
	err := strictjson.UnmarshalAllowUnknown(body, &resp)
	if err != nil || resp.ID != nil || resp.Error.Data.Code == "" {
		return nil //nolint:nilerr // any other body is no such error
	}
	p := &rest.UnsupportedProblem{}
	p.Code, p.Detail = resp.Error.Data.Code, resp.Error.Message
	return c.ProblemError(p)
}

// transportError means that no message of the protocol answers a request.
type transportError struct{ error }

func (e *transportError) Unwrap() error { return e.error }

// relayError returns the part of an error of the SDK that is for the client.
func (r *Relay) relayError(err error) error {
	if failed, ok := errors.AsType[*transportError](err); ok {
		return failed.error
	}
	if answered, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return answered
	}
	return fmt.Errorf("the router at %s: %w", r.endpoint, err)
}

// connectTimeout bounds the time to connect to the router.
const connectTimeout = 30 * time.Second

// acquire returns the connection to the router for a call, a new one if there is none.
func (r *Relay) acquire(ctx context.Context) (*routerSession, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.router == nil {
		session, err := r.connect(ctx)
		if err != nil {
			return nil, err
		}
		r.router = &routerSession{ClientSession: session}
	}
	r.router.calls++
	return r.router, nil
}

// release ends a call, which failed if the connection did.
func (r *Relay) release(session *routerSession, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	session.calls--
	if failed {
		session.failed = true
		if r.router == session {
			r.router = nil
		}
	}
	if session.failed && session.calls == 0 {
		_ = session.Close() // the connection has failed already
	}
}

func (r *Relay) connect(ctx context.Context) (*mcp.ClientSession, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "caprouter mcp serve", Version: r.version}, &mcp.ClientOptions{
		Capabilities:                &mcp.ClientCapabilities{},
		ProgressNotificationHandler: r.reportProgress,
	})
	client.AddSendingMiddleware(mcpclient.LimitCaches)
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: r.endpoint, HTTPClient: r.http, DisableStandaloneSSE: true}, nil)
	if err != nil {
		return nil, r.relayError(err)
	}
	return session, nil
}

func (r *Relay) close() {
	r.group.Stop(nil)
	_ = r.group.Wait() // it reports only a panic
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.router != nil {
		_ = r.router.Close() // the process ends
	}
}

// reportProgress passes on the progress of a call, which has the token of the client.
func (r *Relay) reportProgress(ctx context.Context, req *mcp.ProgressNotificationClientRequest) {
	r.mu.Lock()
	session := r.session
	r.mu.Unlock()
	if session != nil {
		_ = session.NotifyProgress(ctx, req.Params) // an error ends the session, which Run reports
	}
}

// server returns the server for the client.
func (r *Relay) server() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "caprouter", Title: "caprouter", Version: r.version}, &mcp.ServerOptions{
		Instructions: mcpserver.Instructions, Capabilities: mcpserver.Capabilities(),
	})
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			switch params := req.GetParams().(type) {
			case *mcp.InitializedParams, *mcp.SubscriptionsListenParams: // the client may be notified from now on
				r.follow.Do(func() {
					r.group.Go("follow changes", func(ctx context.Context) error { return r.followChanges(ctx, server) })
				})
			case *mcp.ListToolsParams:
				return relayCall(ctx, r, params, (*mcp.ClientSession).ListTools)
			case *mcp.CallToolParamsRaw:
				if session, ok := req.GetSession().(*mcp.ServerSession); ok {
					r.mu.Lock()
					r.session = session
					r.mu.Unlock()
				}
				call := &mcp.CallToolParams{Meta: params.Meta, Name: params.Name}
				if params.Arguments != nil { // a json.RawMessage that is nil would become null
					call.Arguments = params.Arguments
				}
				return relayCall(ctx, r, call, (*mcp.ClientSession).CallTool)
			case *mcp.ListPromptsParams:
				return relayCall(ctx, r, params, (*mcp.ClientSession).ListPrompts)
			case *mcp.GetPromptParams:
				return relayCall(ctx, r, params, (*mcp.ClientSession).GetPrompt)
			case *mcp.ListResourcesParams:
				return relayCall(ctx, r, params, (*mcp.ClientSession).ListResources)
			case *mcp.ListResourceTemplatesParams:
				return relayCall(ctx, r, params, (*mcp.ClientSession).ListResourceTemplates)
			case *mcp.ReadResourceParams:
				return relayCall(ctx, r, params, (*mcp.ClientSession).ReadResource)
			case *mcp.CompleteParams:
				return relayCall(ctx, r, params, (*mcp.ClientSession).Complete)
			}
			return next(ctx, method, req)
		}
	})
	return server
}

// relayCall sends a request to the router. If that fails, the next request connects again:
// a call is not repeated, because it may have been executed.
func relayCall[P any, R mcp.Result](ctx context.Context, r *Relay, params P, send func(*mcp.ClientSession, context.Context, P) (R, error)) (mcp.Result, error) {
	session, err := r.acquire(ctx)
	if err != nil {
		return nil, err
	}
	result, err := send(session.ClientSession, ctx, params)
	if err == nil {
		r.release(session, false)
		return result, nil
	}
	err = r.relayError(err)
	_, answered := errors.AsType[*jsonrpc.Error](err)
	_, rejected := errors.AsType[*contract.Error](err)
	r.release(session, !answered && !rejected && ctx.Err() == nil)
	return nil, err
}

// maxFollowDelay bounds the delay before the stream of notifications is opened again.
const maxFollowDelay = time.Minute

// followChanges passes on notifications of the router until the context ends. The router begins each
// stream with one for each list, because there may have been changes between two streams.
func (r *Relay) followChanges(ctx context.Context, server *mcp.Server) error {
	backoff := resilience.Backoff{Min: time.Second, Max: maxFollowDelay}
	for {
		start := time.Now()
		if err := r.passChanges(ctx, server); err != nil {
			return err
		}
		if time.Since(start) > maxFollowDelay {
			backoff.Reset()
		}
		if !resilience.Sleep(ctx, resilience.AddJitter(backoff.Next())) {
			return nil
		}
	}
}

// passChanges passes on the notifications of one stream. A failure of the router is not reported: the
// next call of the client has the reason.
func (r *Relay) passChanges(ctx context.Context, server *mcp.Server) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.endpoint, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	unlimited := *r.http
	unlimited.Timeout = 0
	resp, err := unlimited.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		var message struct {
			Method string `json:"method"`
		}
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if ok && strictjson.UnmarshalAllowUnknown(data, &message) == nil {
			notifyOfChange(server, message.Method)
		}
	}
	return nil
}

// notifyOfChange sends a notification to the client. The library sends it, to clients of all versions,
// if an entry of the list is added or removed. No request sees this entry, because all are passed on
// to the router.
func notifyOfChange(server *mcp.Server, method string) {
	const name = "changed"
	switch method {
	case "notifications/tools/list_changed":
		server.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, nil)
		server.RemoveTools(name)
	case "notifications/prompts/list_changed":
		server.AddPrompt(&mcp.Prompt{Name: name}, nil)
		server.RemovePrompts(name)
	case "notifications/resources/list_changed":
		const uri = "caprouter:" + name
		server.AddResource(&mcp.Resource{Name: name, URI: uri}, nil)
		server.RemoveResources(uri)
	}
}
