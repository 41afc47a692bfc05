package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/mcpserver"
)

func newMCPServeCommand() *cobra.Command {
	var flags serverFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the tools of a running router on standard input and output",
		Long: "Serve the tools of a running router to an MCP client that starts this command: those of its MCP servers,\n" +
			"and route_request. A client that speaks MCP over HTTP needs no command: its address is that of the router\n" +
			"with /mcp at the end.",
		Example: `  caprouter mcp serve --url http://127.0.0.1:8080`,
		Args:    argsBetween("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := flags.newClient(cmd)
			if err != nil {
				return err
			}
			relay := newMCPRelay(c)
			defer relay.close()
			if _, err := relay.connect(cmd.Context()); err != nil {
				return err
			}
			err = relay.server().Run(cmd.Context(), &mcp.StdioTransport{})
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		},
	}
	flags.register(cmd)
	return cmd
}

// mcpRelay passes the requests of one MCP client on to a router.
type mcpRelay struct {
	endpoint string
	http     *http.Client

	mu      sync.Mutex
	router  *mcp.ClientSession // nil = not connected
	session *mcp.ServerSession // of the client; nil before its first call
}

func newMCPRelay(c *client) *mcpRelay {
	authorized := *c.http
	authorized.Transport = relayTransport{c}
	return &mcpRelay{endpoint: c.base.JoinPath(mcpserver.Path).String(), http: &authorized}
}

// relayTransport adds the token to each request. Its errors are *noResponseError.
type relayTransport struct{ client *client }

func (t relayTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.client.token != "" {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+t.client.token)
	}
	resp, err := t.client.http.Transport.RoundTrip(req)
	if err != nil {
		return nil, &noResponseError{t.client.connectionError(err)}
	}
	return resp, nil
}

// noResponseError means that there is no response to a request.
type noResponseError struct{ error }

func (e *noResponseError) Unwrap() error { return e.error }

// relayError returns the part of an error of the SDK that is for the client.
func (r *mcpRelay) relayError(err error) error {
	if failed, ok := errors.AsType[*noResponseError](err); ok {
		return failed.error
	}
	if answered, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return answered
	}
	return fmt.Errorf("the router at %s: %w", r.endpoint, err)
}

// mcpConnectTimeout bounds the time to connect to the router.
const mcpConnectTimeout = 30 * time.Second

// connect returns the connection to the router, a new one if there is none.
func (r *mcpRelay) connect(ctx context.Context) (*mcp.ClientSession, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.router != nil {
		return r.router, nil
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "caprouter mcp serve", Version: buildVersion()}, &mcp.ClientOptions{
		Capabilities:                &mcp.ClientCapabilities{},
		ProgressNotificationHandler: r.reportProgress,
	})
	ctx, cancel := context.WithTimeout(ctx, mcpConnectTimeout)
	defer cancel()
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: r.endpoint, HTTPClient: r.http, DisableStandaloneSSE: true}, nil)
	if err != nil {
		return nil, r.relayError(err)
	}
	r.router = session
	return session, nil
}

// disconnect closes a connection that has failed.
func (r *mcpRelay) disconnect(failed *mcp.ClientSession) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.router == failed {
		r.router = nil
	}
	_ = failed.Close() // the connection has failed already
}

func (r *mcpRelay) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.router != nil {
		_ = r.router.Close() // the process ends
	}
}

// reportProgress passes on the progress of a call, which has the token of the client.
func (r *mcpRelay) reportProgress(ctx context.Context, req *mcp.ProgressNotificationClientRequest) {
	r.mu.Lock()
	session := r.session
	r.mu.Unlock()
	if session != nil {
		_ = session.NotifyProgress(ctx, req.Params) // an error ends the session, which Run reports
	}
}

// server returns the server for the client.
func (r *mcpRelay) server() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "caprouter", Title: "caprouter", Version: buildVersion()}, &mcp.ServerOptions{
		Instructions: mcpserver.Instructions, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			switch params := req.GetParams().(type) {
			case *mcp.ListToolsParams:
				return relayCall(ctx, r, params, (*mcp.ClientSession).ListTools)
			case *mcp.CallToolParamsRaw:
				if session, ok := req.GetSession().(*mcp.ServerSession); ok {
					r.mu.Lock()
					r.session = session
					r.mu.Unlock()
				}
				call := &mcp.CallToolParams{Meta: params.Meta, Name: params.Name, Arguments: params.Arguments}
				return relayCall(ctx, r, call, (*mcp.ClientSession).CallTool)
			}
			return next(ctx, method, req)
		}
	})
	return server
}

// relayCall sends a request to the router. If that fails, the next request connects again:
// a call is not repeated, because it may have been executed.
func relayCall[P any, R mcp.Result](ctx context.Context, r *mcpRelay, params P, send func(*mcp.ClientSession, context.Context, P) (R, error)) (mcp.Result, error) {
	session, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	result, err := send(session, ctx, params)
	if err == nil {
		return result, nil
	}
	err = r.relayError(err)
	if _, answered := errors.AsType[*jsonrpc.Error](err); !answered && ctx.Err() == nil {
		r.disconnect(session)
	}
	return nil, err
}
