package rest

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/gateway/pins"
	"github.com/caprouter/caprouter/internal/httpserver"
)

// MCPApprovals holds the tools whose definitions wait for approval.
type MCPApprovals interface {
	PendingTools() []gateway.PendingTool
	// ApproveTool permits calls of a tool with the definition that has the hash, and records
	// the caller.
	ApproveTool(ctx context.Context, action, hash string, caller *contract.Caller) error
}

// MCPBindings binds capabilities of agents to servers. *mcphost.Host implements it.
type MCPBindings interface {
	// Bind returns a *contract.ActionError if the agent does not declare the capability.
	Bind(agentID, capability string) (gateway.Binding, error)
	Bindings() []gateway.Binding
	Subscribe(buffer int) *gateway.Subscription
	// IsAgent reports whether the caller is an agent of the registry, with its id as the
	// subject.
	IsAgent(caller *contract.Caller) bool
}

// MCPPendingList is the response of GET /api/v1/mcp/tools/pending.
type MCPPendingList struct {
	Tools []gateway.PendingTool `json:"tools"`
}

// MCPApproval is the body of POST /api/v1/mcp/tools/{name}/approve.
type MCPApproval struct {
	Hash string `json:"hash" validate:"required,max=64"` // of the definition that was shown, or its first 12 digits
}

// MCPBindRequest is the body of POST /api/v1/mcp/bind.
type MCPBindRequest struct {
	AgentID    string `json:"agent_id" validate:"required,max=64"`
	Capability string `json:"capability" validate:"required,max=64"`
}

// MCPBinding is the response of POST /api/v1/mcp/bind.
type MCPBinding struct {
	AgentID    string    `json:"agent_id"`
	Capability string    `json:"capability"`
	State      string    `json:"state"`
	Server     string    `json:"server,omitempty"`
	Tools      []MCPTool `json:"tools,omitempty"`
	Suggestion string    `json:"suggestion,omitempty"`
	At         time.Time `json:"at"`
}

func (m *mcpAPI) handlePendingTools(c *httpserver.Context) error {
	list := MCPPendingList{Tools: []gateway.PendingTool{}}
	for _, t := range m.approvals.PendingTools() {
		if t.Findings == nil {
			t.Findings = []pins.Finding{}
		}
		list.Tools = append(list.Tools, t)
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, list)
}

func (m *mcpAPI) handleApproveTool(c *httpserver.Context) error {
	var approval MCPApproval
	if err := decodeBody(c, &approval); err != nil {
		return err
	}
	if err := m.approvals.ApproveTool(c.Request.Context(), c.PathParam("name"), approval.Hash, c.Caller); err != nil {
		return err
	}
	c.WriteHeader(http.StatusNoContent)
	return nil
}

// maySeeBindings reports whether the caller may bind capabilities of the agent, and see its
// bindings: one that may use the agent, or the agent itself.
func (m *mcpAPI) maySeeBindings(caller *contract.Caller, agentID string) bool {
	return caller.MayUse(agentID) || caller.SeesAll() || m.isAgent(caller, agentID)
}

func (m *mcpAPI) isAgent(caller *contract.Caller, agentID string) bool {
	return caller.Subject == agentID && m.bindings.IsAgent(caller)
}

// handleBind binds a capability of an agent.
func (m *mcpAPI) handleBind(c *httpserver.Context) error {
	var req MCPBindRequest
	if err := decodeBody(c, &req); err != nil {
		return err
	}
	undeclared := &contract.Error{
		Code: contract.CodeForbidden, Message: "there is no such agent, the caller may not use it, or it does not declare the capability in mcp_capabilities",
	}
	if m.isAgent(c.Caller, req.AgentID) {
		undeclared.Message = "agent " + req.AgentID + " does not declare the capability in mcp_capabilities"
	}
	if !m.maySeeBindings(c.Caller, req.AgentID) {
		return undeclared
	}
	b, err := m.bindings.Bind(req.AgentID, req.Capability)
	if _, ok := errors.AsType[*contract.ActionError](err); ok {
		return undeclared
	}
	if err != nil {
		return err
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, MCPBinding{
		AgentID: b.AgentID, Capability: b.Capability, State: b.State, Server: b.Server, Tools: newMCPTools(b.Tools), Suggestion: b.Suggestion, At: b.At,
	})
}

// maxGatewayEvents bounds the events that wait for a slow reader.
const maxGatewayEvents = 256

// handleMCPEvents streams changes of servers, bindings and tools, after the present state.
func (m *mcpAPI) handleMCPEvents(c *httpserver.Context) error {
	return c.StreamEvents(httpserver.EventStream{EndOnShutdown: true, EndWithToken: true, Source: func(ctx context.Context, emit httpserver.EmitFunc) error {
		events := m.bindings.Subscribe(maxGatewayEvents)
		defer events.Close()
		send := func(e contract.GatewayEvent) error {
			if e.AgentID != "" && !m.maySeeBindings(c.Caller, e.AgentID) {
				return nil
			}
			if e.Type == contract.AgentBriefingEvent && !c.Caller.SeesAll() {
				hideAction(&e)
			}
			return emit(&httpserver.Event{Name: e.Type, Data: e})
		}
		for _, e := range m.presentState() {
			if err := send(e); err != nil {
				return err
			}
		}
		for {
			select {
			case <-ctx.Done():
				return nil
			case e, more := <-events.Events():
				if !more {
					return nil
				}
				if err := send(e); err != nil {
					return err
				}
			}
		}
	}})
}

// hideAction removes what a caller does not see of an agent that is a tool.
func hideAction(e *contract.GatewayEvent) {
	if e.Tool != "" {
		e.Tool, e.Error, e.Suggestion = "", "", ""
	}
}

// presentState returns the state of all servers and bindings as events.
func (m *mcpAPI) presentState() []contract.GatewayEvent {
	now := time.Now().UTC()
	var events []contract.GatewayEvent
	for _, s := range m.servers.Servers() {
		events = append(events, contract.GatewayEvent{
			Type: contract.ServerStatusEvent, Server: s.Name, Status: s.Status, State: s.State, Error: s.Error, At: now,
		})
	}
	for _, b := range m.bindings.Bindings() {
		events = append(events, b.Event())
	}
	return events
}
