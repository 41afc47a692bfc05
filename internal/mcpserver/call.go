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

// maxPage is the number of entries in a part of a list.
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
		Capabilities: Capabilities(),
	})
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			switch params := req.GetParams().(type) {
			case *mcp.ListToolsParams:
				return handle(c, func() (*mcp.ListToolsResult, error) { return c.listTools(orZero(params).Cursor), nil })
			case *mcp.CallToolParamsRaw:
				return handle(c, func() (*mcp.CallToolResult, error) { return c.callTool(ctx, req, params) })
			case *mcp.ListPromptsParams:
				return handle(c, func() (*mcp.ListPromptsResult, error) { return c.listPrompts(orZero(params).Cursor), nil })
			case *mcp.GetPromptParams:
				return handle(c, func() (*mcp.GetPromptResult, error) { return c.getPrompt(params) })
			case *mcp.ListResourcesParams:
				return handle(c, func() (*mcp.ListResourcesResult, error) { return c.listResources(orZero(params).Cursor), nil })
			case *mcp.ListResourceTemplatesParams:
				return handle(c, func() (*mcp.ListResourceTemplatesResult, error) {
					return c.listResourceTemplates(orZero(params).Cursor), nil
				})
			case *mcp.ReadResourceParams:
				return handle(c, func() (*mcp.ReadResourceResult, error) { return c.readResource(params) })
			case *mcp.CompleteParams:
				return handle(c, func() (*mcp.CompleteResult, error) { return c.complete(params) })
			case *mcp.SubscriptionsListenParams:
				// The SDK would wait without end for what listen handles.
				if params != nil && params.Notifications != nil && len(wantedLists(params.Notifications)) > 0 {
					return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the message has no id that is a string or a number"}
				}
			}
			return next(ctx, method, req)
		}
	})
	return server
}

// orZero returns the parameters of a list, which a client may leave out.
func orZero[P any](params *P) P {
	if params == nil {
		params = new(P)
	}
	return *params
}

// Capabilities returns what the server declares to clients.
func Capabilities() *mcp.ServerCapabilities {
	return &mcp.ServerCapabilities{
		Tools: &mcp.ToolCapabilities{ListChanged: true}, Prompts: &mcp.PromptCapabilities{ListChanged: true},
		Resources:   &mcp.ResourceCapabilities{ListChanged: true},
		Completions: &mcp.CompletionCapabilities{},
	}
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

// listTools returns the tools that the caller may call, ordered by name. Clients request the
// list once, when they start, so that it waits for servers that are not connected yet, and
// starts those that start lazily.
func (c *call) listTools(cursor string) *mcp.ListToolsResult {
	c.waitForServers()
	tools := map[string]*mcp.Tool{}
	for name, tool := range c.tools(c.servers()) {
		tools[name] = newTool(name, tool.Tool)
	}
	found := len(tools) > 0
	for name, tool := range c.builtins() {
		if name != toolFind || found {
			tools[name] = tool.definition
		}
	}
	result := &mcp.ListToolsResult{Cacheable: private}
	result.Tools, result.NextCursor = paginate(tools, cursor)
	return result
}

// private is the scope in which clients may cache a list: it is that of the caller.
var private = mcp.Cacheable{CacheScope: "private"}

// paginate returns the part of a list, ordered by key, that is after the cursor: the last key
// of the part before. next is the cursor of the next part, "" if there is none.
func paginate[T any](list map[string]T, cursor string) (part []T, next string) {
	part = []T{}
	last := ""
	for _, key := range slices.Sorted(maps.Keys(list)) {
		switch {
		case key <= cursor:
		case len(part) == maxPage:
			return part, last
		default:
			part, last = append(part, list[key]), key
		}
	}
	return part, ""
}

// waitForServers waits for the servers whose tools are not known.
func (c *call) waitForServers() {
	servers := slices.DeleteFunc(c.servers(), func(s gateway.ServerInfo) bool {
		return len(s.Tools) > 0 || s.Status == gateway.StatusConnected || s.Status == gateway.StatusError || s.State != ""
	})
	ctx, cancel := context.WithTimeout(c.http.Request.Context(), maxConnect)
	defer cancel()
	run.ForEach(ctx, len(servers), len(servers), func(ctx context.Context, i int) {
		_, _ = c.server.cfg.Tools.WaitServer(ctx, servers[i].Name)
	})
}

// servers returns all MCP servers, ordered by name.
func (c *call) servers() []gateway.ServerInfo { return c.server.cfg.Tools.Servers() }

// tools returns the tools of the servers that the caller may call, by name.
func (c *call) tools(servers []gateway.ServerInfo) map[string]serverTool {
	taken := map[string]bool{toolRoute: true, toolCapabilities: true, toolFind: true}
	names := toolNames(servers, taken)
	usable := map[*gateway.ServerInfo]bool{}
	for i := range servers {
		usable[&servers[i]] = c.server.cfg.Tools.MayUseServer(c.http.Caller, &servers[i])
	}
	maps.DeleteFunc(names, func(_ string, t serverTool) bool {
		return t.Error != "" || t.State == gateway.ToolQuarantined || !usable[t.server] || !c.http.Caller.MayInvoke(t.Action)
	})
	return names
}

// callTool calls the tool with the name. The context is that of the HTTP request, because
// the result can be delivered only on its connection.
func (c *call) callTool(ctx context.Context, req mcp.Request, params *mcp.CallToolParamsRaw) (*mcp.CallToolResult, error) {
	if tool, ok := c.builtins()[params.Name]; ok {
		return tool.call(c.http.Request.Context(), params.Arguments)
	}
	tool, ok := c.tools(c.servers())[params.Name]
	if !ok { // the router may have been restarted since the client asked for the list
		c.waitForServers()
		if tool, ok = c.tools(c.servers())[params.Name]; !ok {
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
	shown := newToolResult(result)
	c.rewriteLinks(tool.server, shown.Content)
	return shown, nil
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
