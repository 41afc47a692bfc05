package mcpclient

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// MaxTools bounds the tools of one server.
const MaxTools = 2000

// Tool is a tool as its server describes it.
type Tool struct {
	Name, Title, Description string
	InputSchema              json.RawMessage
	OutputSchema             json.RawMessage // nil = none
	ReadOnly, Idempotent     bool            // hints of the server
}

// Tools returns all tools of the server.
func (s *Session) Tools(ctx context.Context) ([]Tool, error) {
	if caps := s.session.InitializeResult().Capabilities; caps == nil || caps.Tools == nil {
		return nil, nil
	}
	var tools []Tool
	for t, err := range s.session.Tools(ctx, nil) {
		if err != nil {
			return nil, errors.New(s.server.Hide(err.Error()))
		}
		if len(tools) == MaxTools {
			return nil, errTooManyTools
		}
		tool, err := newTool(t)
		if err != nil {
			return nil, err
		}
		tools = append(tools, tool)
	}
	return tools, nil
}

func newTool(t *mcp.Tool) (Tool, error) {
	tool := Tool{Name: t.Name, Title: t.Title, Description: t.Description}
	var err error
	if tool.InputSchema, err = strictjson.Marshal(t.InputSchema); err != nil {
		return tool, err
	}
	if t.OutputSchema != nil {
		if tool.OutputSchema, err = strictjson.Marshal(t.OutputSchema); err != nil {
			return tool, err
		}
	}
	if a := t.Annotations; a != nil {
		tool.ReadOnly, tool.Idempotent = a.ReadOnlyHint, a.IdempotentHint || a.ReadOnlyHint
	}
	return tool, nil
}

// Result is the result of a call.
type Result struct {
	Content    []Content
	Structured json.RawMessage // nil = none
	IsError    bool            // the tool reports an error in its content
}

// Content is one block of a result.
type Content struct {
	Type     string          // "text", "image", "audio", "resource" or "resource_link"
	Text     string          // of text
	Data     []byte          // of image and audio
	MIMEType string          // of image and audio
	JSON     json.RawMessage // the whole block
}

// Call calls a tool. arguments is a JSON object. The error is a *CallError, or that of
// the context.
func (s *Session) Call(ctx context.Context, tool string, arguments json.RawMessage) (*Result, error) {
	reply, err := s.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, s.newCallError(err)
	}
	result := &Result{IsError: reply.IsError}
	for _, block := range reply.Content {
		content, err := newContent(block)
		if err != nil {
			return nil, &CallError{Text: err.Error(), Reply: true}
		}
		result.Content = append(result.Content, content)
	}
	if reply.StructuredContent != nil {
		if result.Structured, err = strictjson.Marshal(reply.StructuredContent); err != nil {
			return nil, &CallError{Text: err.Error(), Reply: true}
		}
	}
	return result, nil
}

func newContent(block mcp.Content) (Content, error) {
	raw, err := block.MarshalJSON()
	if err != nil {
		return Content{}, err
	}
	var wire struct {
		Type string `json:"type"`
	}
	if err := strictjson.UnmarshalAllowUnknown(raw, &wire); err != nil {
		return Content{}, err
	}
	c := Content{Type: wire.Type, JSON: raw}
	switch block := block.(type) {
	case *mcp.TextContent:
		c.Text = block.Text
	case *mcp.ImageContent:
		c.Data, c.MIMEType = block.Data, block.MIMEType
	case *mcp.AudioContent:
		c.Data, c.MIMEType = block.Data, block.MIMEType
	}
	return c, nil
}
