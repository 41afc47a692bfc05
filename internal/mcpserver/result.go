package mcpserver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// newTool returns the definition of a tool of an MCP server.
func newTool(name string, t *gateway.Tool) *mcp.Tool {
	tool := &mcp.Tool{Name: name, Title: t.Title, Description: t.Description, InputSchema: emptyObject}
	if isObjectSchema(t.Parameters) {
		tool.InputSchema = t.Parameters
	}
	if isObjectSchema(t.OutputSchema) {
		tool.OutputSchema = t.OutputSchema
	}
	if t.Annotations != nil {
		var hints mcp.ToolAnnotations
		if strictjson.UnmarshalAllowUnknown(t.Annotations, &hints) == nil {
			tool.Annotations = &hints
		}
	}
	return tool
}

// emptyObject is the schema of the input of a tool that declares none.
var emptyObject = json.RawMessage(`{"type":"object"}`)

// isObjectSchema reports whether a schema has the type "object", which the protocol requires.
// A client may reject the whole list because of another schema.
func isObjectSchema(schema json.RawMessage) bool {
	var s struct {
		Type string `json:"type"`
	}
	return strictjson.UnmarshalAllowUnknown(schema, &s) == nil && s.Type == "object"
}

// newToolResult converts the result of a tool. Structured content that is no object becomes
// text, because clients reject a result with it (MCP 2025-11-25, schema, CallToolResult).
func newToolResult(r *contract.ActionResult) *mcp.CallToolResult {
	result := &mcp.CallToolResult{Content: newContent(r)}
	switch {
	case r.Structured == nil:
	case isObject(r.Structured):
		result.StructuredContent = r.Structured
	case !slices.ContainsFunc(result.Content, isText):
		result.Content = append(result.Content, &mcp.TextContent{Text: string(r.Structured)})
	}
	return result
}

// isObject reports whether a JSON value is an object.
func isObject(value json.RawMessage) bool {
	return bytes.HasPrefix(bytes.TrimLeft(value, " \t\r\n"), []byte("{"))
}

func isText(c mcp.Content) bool {
	_, ok := c.(*mcp.TextContent)
	return ok
}

// newContent returns the content of the result of a tool.
func newContent(r *contract.ActionResult) []mcp.Content {
	var text string
	isText := strictjson.Unmarshal(r.Content, &text) == nil
	switch r.Type {
	case contract.ActionToolResult:
		var blocks mcp.CallToolResult
		content := `{"content":` + string(r.Content) + `}`
		if strictjson.UnmarshalAllowUnknown([]byte(content), &blocks) == nil {
			return blocks.Content
		}
	case contract.ActionImage, contract.ActionAudio:
		if data, err := base64.StdEncoding.DecodeString(text); isText && err == nil {
			if r.Type == contract.ActionImage {
				return []mcp.Content{&mcp.ImageContent{Data: data, MIMEType: r.MIMEType}}
			}
			return []mcp.Content{&mcp.AudioContent{Data: data, MIMEType: r.MIMEType}}
		}
		if isText { // a server of transport rest may return the address
			return []mcp.Content{&mcp.ResourceLink{URI: text, Name: r.Type, MIMEType: r.MIMEType}}
		}
	}
	if !isText {
		text = string(r.Content)
	}
	return []mcp.Content{&mcp.TextContent{Text: text}}
}

// metaError is the key of the *contract.ActionError in the metadata of a result.
const metaError = "caprouter/error"

// newToolFailure returns the error of a call as a result.
func newToolFailure(e *contract.ActionError) *mcp.CallToolResult {
	text := e.Message // which contains the details
	if e.Suggestion != "" {
		text += "\n" + e.Suggestion
	}
	return &mcp.CallToolResult{
		IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}},
		Meta: mcp.Meta{metaError: e},
	}
}

// maxShownName bounds the name of a tool in an error, in bytes.
const maxShownName = 128

func quoteName(name string) string {
	if len(name) > maxShownName {
		name = strings.ToValidUTF8(name[:maxShownName], "") + "…"
	}
	return strconv.Quote(name)
}

// responseText returns the text of a response for a model or a person.
func responseText(resp *contract.Response) string {
	var b strings.Builder
	line := func(format string, args ...any) {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, format, args...)
	}
	d := &resp.Data
	switch {
	case d.Answer != "":
		line("%s", d.Answer)
	default:
		for i := range d.Results {
			if data, err := strictjson.Marshal(d.Results[i].Data); err == nil && len(d.Results[i].Data) > 0 {
				line("%s: %s", d.Results[i].AgentID, data)
			}
		}
	}
	switch {
	case d.Mode == contract.DataClarification:
		line("%s", d.Question)
		for _, o := range d.Options {
			line("- %s: %s", o.ID, o.Label)
		}
		line(`Call route_request again with the same prompt and "clarification": {"request_id": %q, "option_id": …}.`, resp.RequestID)
	case d.Proposal != nil:
		line("%s", d.Proposal.Detail)
	case d.Unsupported != nil && d.Mode != contract.DataServerFallback:
		line("%s", d.Detail)
	}
	if d.DryRun && resp.Decision != nil {
		line("This was a dry run. Chosen agents: %s", strings.Join(resp.Decision.Chosen, ", "))
	}
	for i := range resp.Tasks {
		if t := &resp.Tasks[i]; t.Error != nil {
			line("%s: %s: %s", t.AgentID, t.Error.Code, t.Error.Detail)
		}
	}
	for _, o := range resp.Omitted {
		line("left out: %s: %s", o.Title, o.Reason)
	}
	if b.Len() == 0 {
		line("%s", resp.Status)
	}
	return b.String()
}
