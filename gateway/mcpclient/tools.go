package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/telemetry"
)

// Limits of the tools of one server.
const (
	MaxTools     = 2000
	maxToolBytes = 32 << 20 // of all definitions
)

// Tool is a tool as its server describes it.
type Tool struct {
	Name, Title, Description string
	InputSchema              json.RawMessage
	OutputSchema             json.RawMessage // nil = none
	Annotations              json.RawMessage // nil = none
	ReadOnly, Idempotent     bool            // hints of the server
	// Definition is the canonical JSON of all that a model or a policy depends on: names,
	// description, schemas and hints.
	Definition json.RawMessage
	// Invalid is why the tool cannot be decoded; "" = it can. Only its name is known.
	Invalid string
}

// definition is a tool with its members in a fixed order.
type definition struct {
	Name         string               `json:"name"`
	Title        string               `json:"title,omitempty"`
	Description  string               `json:"description"`
	InputSchema  json.RawMessage      `json:"input_schema"`
	OutputSchema json.RawMessage      `json:"output_schema,omitempty"`
	Hints        *mcp.ToolAnnotations `json:"annotations,omitempty"`
}

// Tools returns all tools of the server.
func (s *Session) Tools(ctx context.Context) ([]Tool, error) {
	if caps := s.session.InitializeResult().Capabilities; caps == nil || caps.Tools == nil {
		return nil, nil
	}
	var tools []Tool
	size := 0
	cursors := map[string]bool{} // a list that does not end repeats them
	for params := (&mcp.ListToolsParams{}); ; {
		page, err := requestList(ctx, s, params, s.session.ListTools)
		if err != nil {
			if text := describeInvalid(err); text != "" {
				return nil, fmt.Errorf("the list is not valid: %s", text)
			}
			return nil, errors.New(s.hide(err.Error()))
		}
		for _, t := range page.Tools {
			if t == nil {
				continue
			}
			if len(tools) == MaxTools {
				return nil, errTooManyTools
			}
			tool, err := newTool(t)
			if err != nil {
				return nil, err
			}
			if size += len(tool.Definition); size > maxToolBytes {
				return nil, errToolsTooLarge
			}
			tools = append(tools, tool)
		}
		params.Cursor = page.NextCursor
		switch {
		case params.Cursor == "":
			return tools, nil
		case cursors[params.Cursor] || len(cursors) > MaxTools:
			return nil, errEndlessList
		}
		cursors[params.Cursor] = true
	}
}

func newTool(t *mcp.Tool) (Tool, error) {
	if reason, ok := t.Meta[invalidKey].(string); ok {
		return Tool{Name: t.Name, Invalid: reason}, nil
	}
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
		if tool.Annotations, err = strictjson.Marshal(a); err != nil {
			return tool, err
		}
	}
	tool.Definition, err = strictjson.Marshal(definition{
		Name: t.Name, Title: t.Title, Description: t.Description,
		InputSchema: tool.InputSchema, OutputSchema: tool.OutputSchema, Hints: t.Annotations,
	})
	return tool, err
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

// Call calls a tool. arguments is a JSON object. onProgress is called for each progress
// that the server reports, one at a time, or is nil. The error is a *CallError, or that
// of the context, of which the server is notified.
func (s *Session) Call(ctx context.Context, tool string, arguments json.RawMessage, onProgress func(contract.ActionProgress)) (*Result, error) {
	params := &mcp.CallToolParams{Name: tool, Arguments: arguments}
	if traceparent := telemetry.Traceparent(ctx); traceparent != "" {
		params.Meta = mcp.Meta{"traceparent": traceparent} // in _meta, for all transports (SEP-414)
	}
	if onProgress != nil {
		token, stop := s.progress.add(onProgress)
		defer stop()
		params.SetProgressToken(token)
	}
	callCtx, delivered := withDelivery(ctx)
	reply, err := s.session.CallTool(callCtx, params)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, s.newCallError(err, delivered)
	}
	result := &Result{IsError: reply.IsError}
	for _, block := range reply.Content {
		content, err := newContent(block)
		if err != nil {
			return nil, &CallError{Text: err.Error(), Invalid: true}
		}
		result.Content = append(result.Content, content)
	}
	if reply.StructuredContent != nil {
		if result.Structured, err = strictjson.Marshal(reply.StructuredContent); err != nil {
			return nil, &CallError{Text: err.Error(), Invalid: true}
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
