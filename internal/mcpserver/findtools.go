package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical/ranking"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Numbers of tools that toolFind returns.
const (
	defaultFound = 10
	maxFound     = 50
)

// findTool is read-only.
var findTool = &mcp.Tool{
	Name: toolFind, Title: "Find tools",
	Description: "Finds the tools that fit a task, best first, by the words of their names and descriptions. " +
		"The result contains their definitions; call one by its name, also if it is not in your list of tools.",
	Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(false)},
	InputSchema: json.RawMessage(fmt.Sprintf(`{
  "type": "object",
  "properties": {
    "query": {"type": "string", "maxLength": %d, "description": "what the tool is needed for, in plain language"},
    "limit": {"type": "integer", "minimum": 1, "maximum": %d, "default": %d, "description": "how many tools to return"}
  },
  "required": ["query"],
  "additionalProperties": false
}`, maxQuery, maxFound, defaultFound)),
	OutputSchema: json.RawMessage(`{
  "type": "object",
  "properties": {
    "tools": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}
  },
  "required": ["tools"]
}`),
}

// maxQuery is the longest query, in bytes.
const maxQuery = 4096

// findArguments are the arguments of findTool.
type findArguments struct {
	Query string `json:"query" validate:"required"`
	Limit *int   `json:"limit,omitempty"`
}

// foundTools is the result of findTool: definitions as tools/list returns them.
type foundTools struct {
	Tools []*mcp.Tool `json:"tools"`
}

// findTools ranks the tools of MCP servers that the caller may call.
func (c *call) findTools(_ context.Context, arguments json.RawMessage) (*mcp.CallToolResult, error) {
	a, err := decodeFindArguments(arguments)
	if failed, ok := errors.AsType[*contract.Error](err); ok {
		return newRouteFailure(failed), nil
	}
	if err != nil {
		return nil, err
	}
	c.waitForServers()
	tools := c.tools(c.servers())
	docs := make([]ranking.Document, 0, len(tools))
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		docs = append(docs, ranking.Document{Name: name, Description: tools[name].Description})
	}
	found := foundTools{Tools: []*mcp.Tool{}}
	for _, d := range ranking.New(docs).Rank(a.Query) {
		if len(found.Tools) == *a.Limit {
			break
		}
		found.Tools = append(found.Tools, newTool(d.Name, tools[d.Name].Tool))
	}
	text, err := strictjson.Marshal(found)
	if err != nil {
		return nil, fmt.Errorf("encode the tools that were found: %w", err)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}, StructuredContent: json.RawMessage(text)}, nil
}

func decodeFindArguments(arguments json.RawMessage) (*findArguments, error) {
	if len(arguments) == 0 {
		arguments = json.RawMessage(`{}`)
	}
	var a findArguments
	if err := strictjson.Unmarshal(arguments, &a); err != nil {
		return nil, invalidArguments(err)
	}
	details := strictjson.Validate(&a)
	if len(a.Query) > maxQuery {
		details = append(details, contract.ErrorDetail{Pointer: "/query", Detail: fmt.Sprintf("is %d bytes long; at most %d are taken", len(a.Query), maxQuery)})
	}
	if a.Limit == nil {
		a.Limit = new(defaultFound)
	}
	if *a.Limit < 1 || *a.Limit > maxFound {
		details = append(details, contract.ErrorDetail{Pointer: "/limit", Detail: fmt.Sprintf("must be from 1 to %d", maxFound)})
	}
	if len(details) > 0 {
		return nil, &contract.Error{Code: contract.CodeInvalidRequest, Message: "the arguments are not valid", Details: details}
	}
	return &a, nil
}
