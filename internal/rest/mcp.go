package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/mcphost"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// Tools calls tools of MCP servers. *mcphost.Host implements it.
type Tools interface {
	// Call returns a *contract.ActionError if there is no result.
	Call(ctx context.Context, call *mcphost.Call) (*contract.ActionResult, error)
}

// MCPServers holds the MCP servers. *mcphost.Host implements it.
type MCPServers interface {
	Servers() []gateway.ServerInfo
	// WaitServer waits until the server is connected or has failed.
	WaitServer(ctx context.Context, name string) (info gateway.ServerInfo, ok bool)
}

// MCPRegistrations stores the servers that are registered over HTTP. *mcphost.Host implements
// it.
type MCPRegistrations interface {
	Register(ctx context.Context, r mcphost.Registration, caller *contract.Caller) (gateway.ServerInfo, error)
	// Replace is Register, also if a server of the name is registered.
	Replace(ctx context.Context, r mcphost.Registration, caller *contract.Caller) (info gateway.ServerInfo, created bool, err error)
	Remove(ctx context.Context, name string, caller *contract.Caller) error
}

// MCPRegistry is the response of GET /api/v1/mcp/registry.
type MCPRegistry struct {
	Tools []MCPTool `json:"tools"`
}

// MCPTool is a tool of an MCP server.
type MCPTool struct {
	Action      string          `json:"tool_name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Returns     json.RawMessage `json:"returns,omitempty"`
	ReadOnly    bool            `json:"read_only"`
	Error       string          `json:"error,omitempty"` // why it cannot be called
	State       string          `json:"state,omitempty"` // "quarantined" until its definition is approved
}

func newMCPTools(tools []gateway.Tool) []MCPTool {
	out := make([]MCPTool, len(tools))
	for i := range tools {
		t := &tools[i]
		out[i] = MCPTool{
			Action: t.Action, Description: t.Description, Parameters: t.Parameters, Returns: t.Returns, ReadOnly: t.ReadOnly,
			Error: t.Error, State: t.State,
		}
	}
	return out
}

// MCPServerList is the response of GET /api/v1/mcp/servers.
type MCPServerList struct {
	Servers []MCPServer `json:"servers"`
}

// MCPServer is an MCP server and its state.
type MCPServer struct {
	Name         string   `json:"name"`
	Origin       string   `json:"origin"` // "file" or "registration"
	Transport    string   `json:"transport"`
	Status       string   `json:"status"`
	State        string   `json:"state,omitempty"`
	Error        string   `json:"error,omitempty"`
	Protocol     string   `json:"protocol,omitempty"`
	ToolCount    int      `json:"toolCount"`
	Capabilities []string `json:"capabilities,omitempty"`

	OverridesRegistration bool `json:"overrides_registration,omitzero"` // a stored registration of the name is not used
}

func newMCPServer(s *gateway.ServerInfo) MCPServer {
	return MCPServer{
		Name: s.Name, Origin: s.Origin, Transport: s.Transport, Status: s.Status, State: s.State, Error: s.Error, Protocol: s.Protocol,
		ToolCount: s.ToolCount, Capabilities: s.Capabilities, OverridesRegistration: s.OverridesRegistration,
	}
}

// MCPCheck is the response of POST /api/v1/mcp/validate.
type MCPCheck struct {
	Valid    bool     `json:"valid"`
	Format   string   `json:"format"`
	Servers  []string `json:"servers"`
	Warnings []string `json:"warnings"`
}

// MCPTest is the body of POST /api/v1/mcp/test.
type MCPTest struct {
	Server string          `json:"server" validate:"required,max=128"`
	Action string          `json:"action,omitempty" validate:"max=400"` // called if it is set
	Input  json.RawMessage `json:"input,omitempty"`
}

// MCPTestResult is the response of POST /api/v1/mcp/test.
type MCPTestResult struct {
	OK     bool                   `json:"ok"`
	Server MCPServer              `json:"server"`
	Result *contract.ActionResult `json:"result,omitempty"`
	Error  *contract.ActionError  `json:"error,omitempty"`
}

// mcpAPI holds the handlers of MCP servers and their tools. It is immutable.
type mcpAPI struct {
	tools         Tools
	servers       MCPServers
	registrations MCPRegistrations
	approvals     MCPApprovals
	bindings      MCPBindings
}

func (m *mcpAPI) routes(cfg *Config) []httpserver.Route {
	const get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	fileBody := httpserver.BodySpec{MaxBytes: contract.MaxBodyBytes, MediaTypes: []string{httpserver.MediaTypeJSON, "text/plain"}}
	return []httpserver.Route{
		{Method: get, Path: "/api/v1/mcp/registry", Scope: contract.ScopeMCPRead, RateLimit: cfg.ReadLimit, Handle: m.handleMCPRegistry},
		{Method: post, Path: "/api/v1/mcp/validate", Scope: contract.ScopeMCPRead, Body: fileBody, Class: httpserver.ClassHeavy, RateLimit: cfg.CheckLimit, Handle: m.handleMCPValidate},
		{Method: post, Path: "/api/v1/mcp/test", Scope: contract.ScopeMCPRead, Body: jsonBody(contract.MaxBodyBytes), RateLimit: cfg.CheckLimit, Handle: m.handleMCPTest},
		{Method: post, Path: "/api/v1/mcp/invoke", Scope: scopeInvoke, HasScope: mayInvoke, MissingScope: missingInvokeScope(), Body: jsonBody(contract.MaxBodyBytes), Handle: m.handleInvoke},
		{Method: get, Path: "/api/v1/mcp/servers", Scope: contract.ScopeMCPRead, Handle: m.handleMCPServers},
		{Method: post, Path: "/api/v1/mcp/servers", Scope: contract.ScopeAdmin, Body: jsonBody(maxRegistrationBytes), Class: httpserver.ClassCompletion, Handle: m.handleRegisterMCPServer},
		{Method: get, Path: "/api/v1/mcp/servers/:name", Scope: contract.ScopeMCPRead, Handle: m.handleMCPServer},
		{Method: post, Path: "/api/v1/mcp/bind", Scope: contract.ScopeMCPRead, Body: jsonBody(maxRegistrationBytes), Handle: m.handleBind},
		{Method: get, Path: "/api/v1/mcp/events", Scope: contract.ScopeMCPRead, Class: httpserver.ClassStream, Handle: m.handleMCPEvents},
		{Method: get, Path: "/api/v1/mcp/tools/pending", Scope: contract.ScopeAdmin, Handle: m.handlePendingTools},
		{Method: post, Path: "/api/v1/mcp/tools/:name/approve", Scope: contract.ScopeAdmin, Body: jsonBody(maxRegistrationBytes), Class: httpserver.ClassCompletion, Handle: m.handleApproveTool},
		{Method: put, Path: "/api/v1/mcp/servers/:name", Scope: contract.ScopeAdmin, Body: jsonBody(maxRegistrationBytes), Class: httpserver.ClassCompletion, Handle: m.handleReplaceMCPServer},
		{Method: del, Path: "/api/v1/mcp/servers/:name", Scope: contract.ScopeAdmin, Class: httpserver.ClassCompletion, Handle: m.handleRemoveMCPServer},
	}
}

func (m *mcpAPI) handleMCPRegistry(c *httpserver.Context) error {
	registry := MCPRegistry{Tools: []MCPTool{}}
	for _, s := range m.servers.Servers() {
		registry.Tools = append(registry.Tools, newMCPTools(s.Tools)...)
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, registry)
}

func (m *mcpAPI) handleMCPServers(c *httpserver.Context) error {
	list := MCPServerList{Servers: []MCPServer{}}
	servers := m.servers.Servers()
	for i := range servers {
		list.Servers = append(list.Servers, newMCPServer(&servers[i]))
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, list)
}

func (m *mcpAPI) handleMCPServer(c *httpserver.Context) error {
	servers := m.servers.Servers()
	for i := range servers {
		if servers[i].Name == c.PathParam("name") {
			return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, newMCPServer(&servers[i]))
		}
	}
	return errNoMCPServer
}

var errNoMCPServer = &contract.Error{Code: contract.CodeNotFound, Message: "there is no such MCP server"}

func (m *mcpAPI) handleRegisterMCPServer(c *httpserver.Context) error {
	var r mcphost.Registration
	if err := decodeBody(c, &r); err != nil {
		return err
	}
	info, err := m.registrations.Register(c.Request.Context(), r, c.Caller)
	if err != nil {
		return err
	}
	return c.WriteJSON(http.StatusCreated, httpserver.MediaTypeJSON, newMCPServer(&info))
}

func (m *mcpAPI) handleReplaceMCPServer(c *httpserver.Context) error {
	var r mcphost.Registration
	if err := decodeBody(c, &r); err != nil {
		return err
	}
	if r.Name != c.PathParam("name") {
		return contract.InvalidRequest("/name", "must be the name in the path")
	}
	info, created, err := m.registrations.Replace(c.Request.Context(), r, c.Caller)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return c.WriteJSON(status, httpserver.MediaTypeJSON, newMCPServer(&info))
}

func (m *mcpAPI) handleRemoveMCPServer(c *httpserver.Context) error {
	if err := m.registrations.Remove(c.Request.Context(), c.PathParam("name"), c.Caller); err != nil {
		return err
	}
	c.WriteHeader(http.StatusNoContent)
	return nil
}

// mcpFileName is the file name for the parser of a checked registry file.
const mcpFileName = "mcp.json"

// handleMCPValidate checks a registry file. It connects to no server, starts none, and
// reads no variable.
func (m *mcpAPI) handleMCPValidate(c *httpserver.Context) error {
	defer c.ReleaseBody()
	file, err := mcpfile.Parse(mcpFileName, c.Body())
	if err != nil {
		mistakes, ok := errors.AsType[strictyaml.Errors](err)
		if !ok {
			return fmt.Errorf("parse a registry of MCP servers: %w", err)
		}
		return mistakesIn("the registry of MCP servers is not valid", mistakes)
	}
	check := MCPCheck{Valid: true, Format: file.Format, Servers: []string{}, Warnings: append([]string{}, file.Warnings...)}
	for i := range file.Servers {
		check.Servers = append(check.Servers, file.Servers[i].ID)
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, check)
}

// maxMCPTest bounds how long a test waits for the connection.
const maxMCPTest = 30 * time.Second

func (m *mcpAPI) handleMCPTest(c *httpserver.Context) error {
	var test MCPTest
	if err := decodeBody(c, &test); err != nil {
		return err
	}
	if err := checkActionInput(test.Input); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), maxMCPTest)
	defer cancel()
	info, ok := m.servers.WaitServer(ctx, test.Server)
	if !ok {
		return errNoMCPServer
	}
	result := MCPTestResult{OK: info.Status == gateway.StatusConnected, Server: newMCPServer(&info)}
	var err error
	if test.Action != "" {
		result.Result, err = m.tools.Call(c.Request.Context(), &mcphost.Call{
			Action: contract.Action{Action: test.fullAction(info.Tools), Input: test.Input},
			Caller: c.Caller, RequestID: c.ID, TraceID: c.TraceID(),
		})
		if failed, ok := errors.AsType[*contract.ActionError](err); ok {
			result.OK, result.Error, err = false, failed, nil
		}
	}
	if err != nil {
		return err
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, result)
}

// fullAction returns the action with the name of its server, which it may have already.
func (t *MCPTest) fullAction(tools []gateway.Tool) string {
	full := t.Server + "." + t.Action
	isListed := func(tool gateway.Tool) bool { return tool.Action == full }
	if strings.HasPrefix(t.Action, t.Server+".") && !slices.ContainsFunc(tools, isListed) {
		return t.Action
	}
	return full
}

// scopeInvoke is the scope of POST /api/v1/mcp/invoke as it is documented.
const scopeInvoke = contract.ScopeInvokePrefix + "{action}"

// Names of the events of a streamed call.
const (
	eventProgress = "progress"
	eventResult   = "result" // the last one
)

// mayInvoke reports whether the caller may call any tool. The scope of the action is
// checked by Tools.
func mayInvoke(caller *contract.Caller) bool { return caller.MayInvoke("") }

// missingInvokeScope is the error for a caller that may call no tool.
func missingInvokeScope() *contract.Error {
	failed := &contract.ActionError{
		Code: contract.ActionForbidden, Message: "the caller may not call any tool", Severity: contract.SeverityWarning,
		Suggestion: fmt.Sprintf("the token needs a scope that begins with %q, such as %q", contract.ScopeInvokePrefix, contract.ScopeInvokePrefix+"weather.query"),
	}
	return &contract.Error{Code: contract.CodeForbidden, Message: failed.Message, Action: failed}
}

func (m *mcpAPI) handleInvoke(c *httpserver.Context) error {
	if _, present := c.Request.Header["Idempotency-Key"]; present {
		return contract.InvalidRequest("", "the header Idempotency-Key has no effect on a call of a tool, which is executed each time: "+
			"leave it out, or send the call as the plan of a goal to /api/v1/orchestrations")
	}
	var action contract.Action
	if err := decodeBody(c, &action); err != nil {
		return err
	}
	if err := checkActionInput(action.Input); err != nil {
		return err
	}
	call := &mcphost.Call{Action: action, Caller: c.Caller, RequestID: c.ID, TraceID: c.TraceID()}
	if action.Response.Stream {
		return c.StreamEvents(httpserver.EventStream{Source: func(ctx context.Context, emit httpserver.EmitFunc) error {
			call.OnProgress = func(p contract.ActionProgress) {
				_ = emit(&httpserver.Event{Name: eventProgress, Data: p, Droppable: true}) // ctx ends with the reader
			}
			result, err := m.tools.Call(ctx, call)
			if err != nil {
				return newToolError(err)
			}
			result.Stream = true
			return emit(&httpserver.Event{Name: eventResult, Data: result})
		}})
	}
	result, err := m.tools.Call(c.Request.Context(), call)
	if err != nil {
		return newToolError(err)
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, result)
}

// checkActionInput rejects an input that is no object.
func checkActionInput(input json.RawMessage) error {
	if len(input) == 0 || bytes.HasPrefix(input, []byte("{")) {
		return nil
	}
	return contract.InvalidRequest("/input", "must be an object")
}

// newToolError returns the error of the REST interface for an error of a call. The codes of
// calls are not those of this interface.
func newToolError(err error) error {
	failed, ok := errors.AsType[*contract.ActionError](err)
	if !ok {
		return err
	}
	e := &contract.Error{Code: contract.CodeToolFailed, Message: failed.Message, Action: failed}
	switch failed.Code {
	case contract.ActionNotFound:
		e.Code = contract.CodeNotFound
	case contract.ActionAmbiguous:
		e.Code = contract.CodeConflict
	case contract.ActionInvalidInput:
		e.Code = contract.CodeInvalidRequest
		for _, d := range failed.Details {
			d.Pointer = "/input" + d.Pointer
			e.Details = append(e.Details, d)
		}
	case contract.ActionForbidden:
		e.Code = contract.CodeForbidden
	case contract.ActionRateLimited:
		e.Code = contract.CodeRateLimited
		e.Limit = &contract.Limit{Policy: "tool", Reset: time.Duration(failed.RetryAfterMS) * time.Millisecond}
	case contract.ActionQuarantined:
		e.Code = contract.CodeConflict
	case contract.ActionNotRecorded:
		e.Code = contract.CodeAuditUnavailable
	case contract.ActionUnavailable:
		e.Code = contract.CodeToolUnavailable
	case contract.ActionTimeout, contract.ActionOutcomeUnknown:
		e.Code = contract.CodeToolTimeout
	}
	return e
}
