package gateway

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/caprouter/caprouter/gateway/mcpclient"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/gateway/pins"
	"github.com/caprouter/caprouter/gateway/schema"
)

// Tool is a tool that can be called.
type Tool struct {
	Action      string          `json:"tool_name"` // name for Invoke, for example weather.query
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // JSON Schema
	Returns     json.RawMessage `json:"returns,omitempty"`    // JSON Schema
	ReadOnly    bool            `json:"read_only"`
	Error       string          `json:"error,omitempty"` // why it cannot be called
	State       string          `json:"state,omitempty"` // ToolQuarantined if its definition is not approved
	Findings    []pins.Finding  `json:"findings,omitempty"`

	Title        string          `json:"-"` // for people; "" = none
	Annotations  json.RawMessage `json:"-"` // as the server lists them; nil = none
	OutputSchema json.RawMessage `json:"-"` // of structured content, as the server lists it; nil = none, or results are redacted
	// Repeatable means that a call may be repeated if its outcome is not known: the tool is
	// read-only or idempotent, or its declaration permits it.
	Repeatable bool `json:"-"`
}

// ToolQuarantined is the State of a tool that is not called until its definition is
// approved.
const ToolQuarantined = "quarantined"

// tool is a Tool with what a call of it needs, or another request that a server can be sent.
// It is immutable.
type tool struct {
	Tool
	Name       string // for the server; of another request, its method
	method     string // of MCP, by which it is called
	input      *schema.Schema
	output     *schema.Schema // of structured content
	response   *schema.Schema // of the whole result, declared by the operator
	idempotent bool
	retry      *mcpfile.Retry
	timeoutMS  int

	definition json.RawMessage // as the server lists it; nil if it cannot list tools, or the tool is invalid
	invalid    string          // why the entry in the list of the server cannot be decoded; "" = it can
	quarantine *pins.Verdict   // nil = may be called
}

// newTools returns the tools by name: those that the server lists, if its declaration
// selects them, with the schemas of the declaration.
func newTools(server *mcpfile.Server, listed []mcpclient.Tool) (map[string]*tool, error) {
	tools := map[string]*tool{}
	for _, l := range listed {
		if !isSelected(server.Tools, l.Name) {
			continue
		}
		t := &tool{
			Tool: Tool{
				Action: server.ID + "." + l.Name, Description: l.Description,
				Parameters: l.InputSchema, Returns: l.OutputSchema, ReadOnly: l.ReadOnly, Title: l.Title, Annotations: l.Annotations,
			},
			Name: l.Name, method: methodCall, idempotent: l.Idempotent, retry: server.Retry, timeoutMS: server.Timeouts.Call,
			definition: l.Definition, invalid: cmp.Or(l.Invalid, describeName(server.ID, l.Name)),
		}
		if t.invalid != "" {
			t.definition = nil // a corrected tool is a new one
		}
		if len(t.Action) > maxAction {
			t.Action = t.Action[:len(server.ID)] + "." + strings.ToValidUTF8(l.Name[:min(len(l.Name), maxShownName)], "") + "…"
		}
		if len(l.Definition) > maxDefinition {
			t.Title, t.Description, t.Parameters, t.Returns = "", "", nil, nil
			t.Error = fmt.Sprintf("its definition is larger than %d bytes", maxDefinition)
		} else {
			if l.Definition != nil {
				t.Findings = pins.Inspect(l.Definition)
			}
			t.compile()
		}
		tools[l.Name] = t
	}
	if len(server.Actions) == 0 {
		return tools, nil
	}
	declared := map[string]*tool{}
	for i := range server.Actions {
		a := &server.Actions[i]
		t := tools[a.Name]
		if t == nil {
			return nil, fmt.Errorf("the server has no tool %q, which the file declares", a.Name)
		}
		declared[a.Name] = t.override(a)
	}
	return declared, nil
}

// Limits of names.
const (
	maxAction    = 400 // of contract.Action
	maxShownName = 100 // bytes of a name that is longer
)

// describeName returns why a tool with the name cannot be called, or "". Other characters
// than those that the protocol recommends are permitted.
func describeName(server, name string) string {
	switch {
	case name == "":
		return "its name is empty"
	case len(server)+1+len(name) > maxAction:
		return fmt.Sprintf("its name is longer than %d characters with that of the server", maxAction)
	case strings.ContainsFunc(name, unicode.IsControl):
		return "its name contains a control character"
	}
	return ""
}

// maxDefinition bounds the description and the schemas of a tool that can be called.
const maxDefinition = 2*schema.MaxBytes + 64<<10

// declaredTools returns the tools of a server that cannot list them.
func declaredTools(server *mcpfile.Server) map[string]*tool {
	tools := map[string]*tool{}
	for i := range server.Actions {
		a := &server.Actions[i]
		t := &tool{Tool: Tool{Action: server.ID + "." + a.Name}, Name: a.Name, method: methodCall, retry: server.Retry, timeoutMS: server.Timeouts.Call}
		tools[a.Name] = t.override(a)
	}
	return tools
}

// override returns the tool with the values of its declaration.
func (t *tool) override(a *mcpfile.Action) *tool {
	out := *t
	if a.Description != "" {
		out.Description = a.Description
	}
	if a.InputSchema != nil {
		out.Parameters = a.InputSchema
	}
	out.compile()
	if a.OutputSchema != nil {
		var err error
		if out.response, err = schema.Compile(a.OutputSchema); err != nil {
			out.Error = fmt.Sprintf("its output_schema %v", err)
		}
		if out.Returns == nil {
			out.Returns = a.OutputSchema
		}
	}
	if a.Retry != nil {
		out.retry = a.Retry
	}
	if a.TimeoutMS != 0 {
		out.timeoutMS = a.TimeoutMS
	}
	return &out
}

// compile compiles the schemas. A tool whose schemas do not compile cannot be called.
func (t *tool) compile() {
	t.input, t.output, t.Error = nil, nil, t.invalid
	var err error
	if t.Parameters != nil {
		if t.input, err = schema.Compile(t.Parameters); err != nil {
			t.Error = fmt.Sprintf("its input schema %v", err)
			t.Parameters = nil // may be as large as the limit of a message
		}
	}
	if t.Returns != nil {
		if t.output, err = schema.Compile(t.Returns); err != nil {
			t.Error = fmt.Sprintf("its output schema %v", err)
			t.Returns = nil
		}
	}
	t.OutputSchema = t.Returns // of the server: the declared output_schema describes the whole result
}

// isRepeatable reports whether a call may be repeated if its outcome is not known.
func (t *tool) isRepeatable() bool {
	if t.retry != nil {
		return t.retry.Idempotent == nil || *t.retry.Idempotent
	}
	return t.idempotent
}

// MayHaveTool reports whether a server can have a tool, as far as its declaration determines
// it: unless that contains actions, the tools are known only when the server is connected.
func MayHaveTool(server *mcpfile.Server, name string) bool {
	isREST := server.Transport == mcpfile.REST
	if isREST || len(server.Actions) > 0 {
		return slices.ContainsFunc(server.Actions, func(a mcpfile.Action) bool { return a.Name == name }) && (isREST || isSelected(server.Tools, name))
	}
	return describeName(server.ID, name) == "" && isSelected(server.Tools, name)
}

// isSelected reports whether the filter selects a tool.
func isSelected(filter mcpfile.ToolFilter, name string) bool {
	return (len(filter.Include) == 0 || matchesAny(filter.Include, name)) && !matchesAny(filter.Exclude, name)
}

// unmatched returns the patterns of the filter that match no tool of the server. They are
// probably misspelt.
func unmatched(filter mcpfile.ToolFilter, listed []mcpclient.Tool) []string {
	var patterns []string
	for _, pattern := range slices.Concat(filter.Include, filter.Exclude) {
		if !slices.ContainsFunc(listed, func(t mcpclient.Tool) bool { return matchesAny([]string{pattern}, t.Name) }) {
			patterns = append(patterns, pattern)
		}
	}
	return patterns
}

// matchesAny reports whether one of the patterns matches the name.
func matchesAny(patterns []string, name string) bool {
	for _, pattern := range patterns {
		prefix, wildcard := strings.CutSuffix(pattern, "*")
		if pattern == name || wildcard && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
