package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/mcphost"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Methods of the protocol that this package handles. The SDK handles the others.
const (
	methodListTools = "tools/list"
	methodCallTool  = "tools/call"
)

// maxPage is the number of tools in a part of the list.
const maxPage = 250

// Instructions describe the server to a model.
const Instructions = "caprouter routes requests to the agents that may serve them, and calls tools of MCP servers. " +
	"Use route_request for a task in plain language; list_capabilities lists what the agents can do. " +
	"The other tools are those of the MCP servers, named SERVER__TOOL; find_tools finds those that fit a task."

// call is an HTTP request with one message. The SDK handles the message in a goroutine of its
// own, for which the HTTP response waits, and which must not write to it.
type call struct {
	server  *Server
	http    *httpserver.Context
	outcome atomic.Pointer[string] // of a routing request; nil = none
}

// newMCPServer returns the server for the message.
func (c *call) newMCPServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "caprouter", Title: "caprouter", Version: c.server.cfg.Version}, &mcp.ServerOptions{
		Instructions: Instructions,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			switch method {
			case methodListTools:
				params, _ := req.GetParams().(*mcp.ListToolsParams)
				return handle(c, func() (*mcp.ListToolsResult, error) { return c.listTools(params), nil })
			case methodCallTool:
				params, _ := req.GetParams().(*mcp.CallToolParamsRaw)
				return handle(c, func() (*mcp.CallToolResult, error) { return c.callTool(ctx, req, params) })
			}
			return next(ctx, method, req)
		}
	})
	return server
}

// handle calls fn in the goroutine of the SDK, where a panic would end the process. The log
// gets a panic and any other error that is not for clients.
func handle[R mcp.Result](c *call, fn func() (R, error)) (mcp.Result, error) {
	var result R
	err := run.CatchPanic(func() (err error) {
		result, err = fn()
		return err
	})
	if err == nil {
		return result, nil
	}
	if public, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return nil, public
	}
	ctx := c.http.Request.Context()
	if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
		return nil, c.newError(codeServerError, contract.CodeOverloaded, "the request was cancelled before it was answered")
	}
	c.server.cfg.Logger.ErrorContext(ctx, "internal error", "request_id", c.http.ID, "error", err)
	return nil, c.newError(jsonrpc.CodeInternalError, contract.CodeInternal, "internal error; the server log has the cause under this request_id")
}

// newError returns an error of the protocol.
func (c *call) newError(rpcCode int64, code contract.Code, message string) error {
	data, err := strictjson.Marshal(rpcErrorData{Code: code, RequestID: c.http.ID})
	if err != nil {
		return fmt.Errorf("encode an error: %w", err)
	}
	return &jsonrpc.Error{Code: rpcCode, Message: message, Data: data}
}

// maxConnect bounds how long a list waits for servers that are not connected yet.
const maxConnect = 2 * time.Second

// listTools returns the tools that the caller may call, ordered by name. The cursor is the
// last name of the part before. Clients ask for the list once, when they start, so that it
// waits for servers that are not connected yet, and starts those that start lazily.
func (c *call) listTools(params *mcp.ListToolsParams) *mcp.ListToolsResult {
	c.waitForServers()
	tools := map[string]*mcp.Tool{}
	for name, tool := range c.tools() {
		tools[name] = newTool(name, tool)
	}
	found := len(tools) > 0
	for name, tool := range c.builtins() {
		if name != toolFind || found {
			tools[name] = tool.definition
		}
	}
	result := &mcp.ListToolsResult{Tools: []*mcp.Tool{}, Cacheable: mcp.Cacheable{CacheScope: "private"}}
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		switch {
		case params != nil && name <= params.Cursor:
		case len(result.Tools) == maxPage:
			result.NextCursor = result.Tools[maxPage-1].Name
			return result
		default:
			result.Tools = append(result.Tools, tools[name])
		}
	}
	return result
}

// waitForServers waits for the servers whose tools are not known.
func (c *call) waitForServers() {
	servers := slices.DeleteFunc(c.server.cfg.Tools.Servers(), func(s gateway.ServerInfo) bool {
		return len(s.Tools) > 0 || s.Status == gateway.StatusConnected || s.Status == gateway.StatusError || s.State != ""
	})
	ctx, cancel := context.WithTimeout(c.http.Request.Context(), maxConnect)
	defer cancel()
	run.ForEach(ctx, len(servers), len(servers), func(ctx context.Context, i int) {
		_, _ = c.server.cfg.Tools.WaitServer(ctx, servers[i].Name)
	})
}

// tools returns the tools of MCP servers that the caller may call, by name.
func (c *call) tools() map[string]*gateway.Tool {
	taken := map[string]bool{toolRoute: true, toolCapabilities: true, toolFind: true}
	servers := c.server.cfg.Tools.Servers()
	names := toolNames(servers, taken)
	usable := map[*gateway.Tool]bool{}
	for i := range servers {
		if !c.server.cfg.Tools.MayUseServer(c.http.Caller, &servers[i]) {
			continue
		}
		for k := range servers[i].Tools {
			usable[&servers[i].Tools[k]] = true
		}
	}
	maps.DeleteFunc(names, func(_ string, t *gateway.Tool) bool {
		return t.Error != "" || t.State == gateway.ToolQuarantined || !usable[t] || !c.http.Caller.MayInvoke(t.Action)
	})
	return names
}

// callTool calls the tool with the name. The context is that of the HTTP request, because
// the result can be delivered only on its connection.
func (c *call) callTool(ctx context.Context, req mcp.Request, params *mcp.CallToolParamsRaw) (*mcp.CallToolResult, error) {
	if tool, ok := c.builtins()[params.Name]; ok {
		return tool.call(c.http.Request.Context(), params.Arguments)
	}
	tool, ok := c.tools()[params.Name]
	if !ok { // the router may have been restarted since the client asked for the list
		c.waitForServers()
		if tool, ok = c.tools()[params.Name]; !ok {
			return nil, errUnknownTool(params.Name)
		}
	}
	call := &mcphost.Call{
		Action: contract.Action{Action: tool.Action, Input: params.Arguments}, Caller: c.http.Caller,
		RequestID: c.http.ID, TraceID: c.http.TraceID(), OnProgress: progressTo(ctx, req, params.GetProgressToken()),
	}
	result, err := c.server.cfg.Tools.Call(c.http.Request.Context(), call)
	if failed, ok := errors.AsType[*contract.ActionError](err); ok {
		return newToolFailure(failed), nil
	}
	if err != nil {
		return nil, err
	}
	return newToolResult(result), nil
}

// errUnknownTool is the error for a tool that does not exist, or that the caller may not
// call.
func errUnknownTool(name string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown tool " + quoteName(name) + ": tools/list returns those that may be called"}
}

// progressTo returns a function that reports progress to the client, nil if the client does
// not want it.
func progressTo(ctx context.Context, req mcp.Request, token any) func(contract.ActionProgress) {
	session, ok := req.GetSession().(*mcp.ServerSession)
	if token == nil || !ok {
		return nil
	}
	return func(p contract.ActionProgress) {
		// An error means that the client has disconnected.
		_ = session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: p.Progress, Total: p.Total, Message: p.Message})
	}
}
