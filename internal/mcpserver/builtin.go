package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/visibility"
)

// Names of the tools of this server.
const (
	toolRoute        = "route_request"
	toolCapabilities = "list_capabilities"
	toolFind         = "find_tools"
)

// builtin is a tool of this server.
type builtin struct {
	definition *mcp.Tool
	call       func(ctx context.Context, arguments json.RawMessage) (*mcp.CallToolResult, error)
}

// builtins returns the tools of this server that the caller may call, by name.
func (c *call) builtins() map[string]builtin {
	tools := map[string]builtin{}
	if c.http.Caller.HasScope(contract.ScopeRouteSubmit) {
		tools[toolRoute] = builtin{routeTool, c.routeRequest}
	}
	if c.http.Caller.HasScope(contract.ScopeAgentsRead) {
		tools[toolCapabilities] = builtin{capabilitiesTool, c.listCapabilities}
	}
	if c.http.Caller.MayInvoke("") {
		tools[toolFind] = builtin{findTool, c.findTools}
	}
	return tools
}

// routeTool is read-only.
var routeTool = &mcp.Tool{
	Name: toolRoute, Title: "Route a request",
	Description: "Sends a request in plain language to the agents that may serve it, and returns their answer. " +
		"If the request is ambiguous, the result is a question with options.",
	Annotations: &mcp.ToolAnnotations{OpenWorldHint: new(true)},
	InputSchema: json.RawMessage(`{
  "type": "object",
  "properties": {
    "prompt": {"type": "string", "description": "the request, in any language"},
    "inputs": {"type": "object", "description": "values for the agent, such as a document; they are not used to choose it"},
    "session_id": {"type": "string", "description": "a name of yours for a conversation: later requests with it refer to earlier ones"},
    "agent_id": {"type": "string", "description": "the only agent that may serve the request"},
    "locale": {"type": "string", "description": "the language of the answer, such as pt-BR"},
    "clarification": {
      "type": "object", "description": "the answer to a question: request_id of the question, and option_id",
      "properties": {"request_id": {"type": "string"}, "option_id": {"type": "string"}},
      "required": ["request_id", "option_id"], "additionalProperties": false
    },
    "dry_run": {"type": "boolean", "description": "only return which agents would be chosen"}
  },
  "required": ["prompt"],
  "additionalProperties": false
}`),
}

// routeArguments are the arguments of routeTool.
type routeArguments struct {
	Prompt        string                        `json:"prompt"`
	Inputs        map[string]json.RawMessage    `json:"inputs,omitempty"`
	SessionID     string                        `json:"session_id,omitempty"`
	AgentID       *string                       `json:"agent_id,omitempty"`
	Locale        string                        `json:"locale,omitempty"`
	Clarification *contract.ClarificationChoice `json:"clarification,omitempty"`
	DryRun        bool                          `json:"dry_run,omitzero"`
}

// routeRequest routes a request, as POST /api/v1/route does.
func (c *call) routeRequest(ctx context.Context, arguments json.RawMessage) (*mcp.CallToolResult, error) {
	start := time.Now()
	result, err := c.tryRoute(ctx, arguments)
	if err == nil {
		return result, nil
	}
	failed, ok := errors.AsType[*contract.Error](err)
	if !ok {
		c.server.cfg.Meter.RecordRequest(string(contract.CodeInternal), time.Since(start))
		return nil, err
	}
	c.server.cfg.Meter.RecordRequest(string(failed.Code), time.Since(start))
	return newRouteFailure(failed), nil
}

func (c *call) tryRoute(ctx context.Context, arguments json.RawMessage) (*mcp.CallToolResult, error) {
	var a routeArguments
	if len(arguments) > 0 {
		if err := strictjson.Unmarshal(arguments, &a); err != nil {
			return nil, invalidArguments(err)
		}
	}
	if limiter := c.server.cfg.RouteLimit; limiter != nil {
		if state, ok := limiter.Take(c.http.Caller); !ok {
			return nil, &contract.Error{Code: contract.CodeRateLimited, Message: "the caller exceeded its rate limit", Limit: &state}
		}
	}
	req := &contract.Request{
		Content:  contract.Content{Prompt: a.Prompt, Inputs: a.Inputs},
		Metadata: contract.Metadata{Locale: a.Locale}, SessionID: a.SessionID, AgentID: a.AgentID, Clarification: a.Clarification,
		Options: contract.Options{DryRun: a.DryRun}, RequestID: c.http.ID, TraceID: c.http.TraceID(),
	}
	if e := req.Validate(); e != nil {
		return nil, e
	}
	if details := strictjson.Validate(req); len(details) > 0 {
		return nil, contract.InvalidRequestDetails(details)
	}
	resp, encoded, err := c.server.cfg.Router.HandleJSON(ctx, req, c.http.Caller)
	if err != nil {
		return nil, err
	}
	c.outcome.Store(new(string(resp.Status)))
	text := responseText(resp)
	result := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
	if result.StructuredContent = json.RawMessage(encoded); encoded == nil {
		result.StructuredContent = resp
	}
	switch resp.Status {
	case contract.StatusUnsupported:
		result.IsError, result.Meta = true, newErrorMeta(contract.CodeNoEligibleAgent, text)
	case contract.StatusFailed, contract.StatusCancelled:
		result.IsError = true // the response has an error for each task
	}
	return result, nil
}

// invalidArguments returns the error for arguments that cannot be decoded.
func invalidArguments(err error) error {
	e, ok := errors.AsType[*strictjson.Error](err)
	if !ok {
		return fmt.Errorf("decode the arguments of a tool: %w", err)
	}
	return &contract.Error{
		Code: contract.CodeInvalidRequest, Message: "the arguments are not valid",
		Details: []contract.ErrorDetail{{Pointer: e.Pointer, Detail: e.Detail}},
	}
}

// newRouteFailure returns the error of a routing request as a result.
func newRouteFailure(e *contract.Error) *mcp.CallToolResult {
	lines := []string{e.Message}
	for _, d := range e.Details {
		lines = append(lines, strings.TrimSpace(d.Pointer+" "+d.Detail))
	}
	if e.Limit != nil {
		lines = append(lines, fmt.Sprintf("try again after %s", e.Limit.Reset.Round(time.Second)))
	}
	return &mcp.CallToolResult{
		IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: strings.Join(lines, "\n")}},
		Meta: newErrorMeta(e.Code, e.Message),
	}
}

func newErrorMeta(code contract.Code, message string) mcp.Meta {
	return mcp.Meta{metaError: map[string]any{"error_code": code, "message": message}}
}

// capabilitiesTool is read-only.
var capabilitiesTool = &mcp.Tool{
	Name: toolCapabilities, Title: "List the capabilities of the agents",
	Description: "Lists the agents that the caller may use, with the intents and domains that they serve.",
	Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(false)},
	InputSchema: json.RawMessage(`{"type": "object", "properties": {}, "additionalProperties": false}`),
	OutputSchema: json.RawMessage(`{
  "type": "object",
  "properties": {
    "agents": {
      "type": "array",
      "items": {
        "type": "object",
        "properties": {
          "agent_id": {"type": "string"},
          "description": {"type": "string"},
          "intents": {"type": "array", "items": {"type": "string"}},
          "domains": {"type": "array", "items": {"type": "string"}}
        },
        "required": ["agent_id", "intents", "domains"]
      }
    }
  },
  "required": ["agents"]
}`),
}

// capabilityList is the result of capabilitiesTool.
type capabilityList struct {
	Agents []agentCapabilities `json:"agents"`
}

type agentCapabilities struct {
	AgentID     string   `json:"agent_id"`
	Description string   `json:"description,omitempty"`
	Intents     []string `json:"intents"`
	Domains     []string `json:"domains"`
}

// listCapabilities lists the agents that GET /api/v1/agents lists.
func (c *call) listCapabilities(_ context.Context, arguments json.RawMessage) (*mcp.CallToolResult, error) {
	if len(arguments) > 0 {
		if err := strictjson.Unmarshal(arguments, &struct{}{}); err != nil {
			failed, ok := errors.AsType[*contract.Error](invalidArguments(err))
			if !ok {
				return nil, err
			}
			return newRouteFailure(failed), nil
		}
	}
	list := capabilityList{Agents: []agentCapabilities{}}
	for _, entry := range visibility.Visible(c.server.cfg.Registry().Catalogue, c.http.Caller).List() {
		list.Agents = append(list.Agents, agentCapabilities{
			AgentID: entry.ID, Description: entry.Description, Intents: entry.Match.Intent, Domains: entry.Match.Domains,
		})
	}
	text, err := strictjson.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("encode the capabilities: %w", err)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}, StructuredContent: json.RawMessage(text)}, nil
}
