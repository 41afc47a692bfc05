//go:build unix

package gateway_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/gateway/redaction"
)

// newLibrary returns a server with a prompt, a resource, a template of resources, and
// completions.
func newLibrary(*http.Request) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "library", Version: "1"}, &mcp.ServerOptions{
		CompletionHandler: func(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{req.Params.Argument.Value + "na"}}}, nil
		},
	})
	server.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "name"}}},
		func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			text := &mcp.TextContent{Text: "Hello " + req.Params.Arguments["name"] + " SECRET-1"}
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: text}}}, nil
		})
	read := func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, Text: "text of " + req.Params.URI + " SECRET-2"}}}, nil
	}
	server.AddResource(&mcp.Resource{Name: "readme", URI: "lib://readme"}, read)
	server.AddResourceTemplate(&mcp.ResourceTemplate{Name: "books", URITemplate: "lib://books/{id}"}, read)
	return server
}

// library returns the declaration of a server that newLibrary returns.
func library(t *testing.T) mcpfile.Server {
	t.Helper()
	return mcpfile.Server{ID: "library", Transport: mcpfile.HTTP, URL: serve(t, streamableHTTP(t, newLibrary, nil)).URL}
}

// listed returns the ids of all lists of the server.
func listed(t *testing.T, g *gateway.Gateway) []string {
	t.Helper()
	var ids []string
	for _, method := range []string{gateway.MethodListPrompts, gateway.MethodListResources, gateway.MethodListResourceTemplates} {
		entries, err := g.List(t.Context(), "library", method)
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		for _, e := range entries {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// Prompts and resources are listed and read with the checks, redaction and records of a call.
func TestRequest_ReadsPromptsAndResources(t *testing.T) {
	server := library(t)
	server.Redaction = []redaction.Rule{{Pattern: "SECRET-[0-9]", In: []string{redaction.Response}}}
	recorder := &memoryRecorder{}
	g := startGateway(t, gateway.Config{Recorder: recorder}, server)
	if diff := cmp.Diff([]string{"greet", "lib://readme", "lib://books/{id}"}, listed(t, g)); diff != "" {
		t.Errorf("lists (-want +got):\n%s", diff)
	}
	if info, _ := g.Get("library"); !info.Prompts || !info.Resources || !info.Completions {
		t.Errorf("got %+v, want prompts, resources and completions", info)
	}
	const invoke = contract.ScopeInvokePrefix
	ana := &contract.Caller{Subject: "ana", Scopes: []string{invoke + "library.prompts/get", invoke + "library.resources/read"}}
	for _, tt := range []struct{ method, params, want string }{
		{gateway.MethodGetPrompt, `{"name":"greet","arguments":{"name":"Ana"}}`, `"text":"Hello Ana <redacted>"`},
		{gateway.MethodReadResource, `{"uri":"lib://readme"}`, `"text":"text of lib://readme <redacted>"`},
		{gateway.MethodReadResource, `{"uri":"lib://books/7"}`, `"uri":"lib://books/7"`},
		{gateway.MethodComplete, `{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":"A"}}`, `"values":["Ana"]`},
		{gateway.MethodComplete, `{"ref":{"type":"ref/resource","uri":"lib://books/{id}"},"argument":{"name":"id","value":"A"}}`, `"values":["Ana"]`},
	} {
		result, err := g.Request(t.Context(), "library", tt.method, json.RawMessage(tt.params), gateway.Invocation{Caller: ana})
		if err != nil || !strings.Contains(string(result), tt.want) || strings.Contains(string(result), "SECRET") {
			t.Errorf("%s %s: got %s, error %v, want %s", tt.method, tt.params, result, err, tt.want)
		}
	}
	last := recorder.ended[0]
	if last.Server != "library" || last.Tool != gateway.MethodGetPrompt || last.Outcome != gateway.OutcomeOK || last.Attempts != 1 ||
		!strings.Contains(string(last.Input), "Ana") || !strings.Contains(string(last.Result.Content), "<redacted>") {
		t.Errorf("got the record %+v, want that of the prompt", last)
	}
}

// A request that a server cannot be sent fails with a reason, and is not sent.
func TestRequest_Errors(t *testing.T) {
	server := library(t)
	server.Resources = new(false)
	g := startGateway(t, gateway.Config{Capabilities: agents}, server, testServer("system", "sample", "system"))
	if diff := cmp.Diff([]string{"greet"}, listed(t, g)); diff != "" {
		t.Errorf("lists (-want +got):\n%s", diff)
	}
	all := gateway.Invocation{Caller: contract.LocalCaller()}
	one := gateway.Invocation{Caller: &contract.Caller{Subject: "ana", Scopes: []string{contract.ScopeInvokePrefix + "library.prompts/get"}}}
	agent := gateway.Invocation{Caller: contract.LocalCaller(), AgentID: "gis"}
	for _, tt := range []struct {
		name, server, method, params string
		by                           gateway.Invocation
		want                         string
	}{
		{"not passed on", "library", gateway.MethodReadResource, `{"uri":"lib://readme"}`, all, contract.ActionNotFound},
		{"completion of what is not passed on", "library", gateway.MethodComplete, `{"ref":{"type":"ref/resource"},"argument":{}}`, all, contract.ActionNotFound},
		{"without prompts", "system", gateway.MethodGetPrompt, `{"name":"greet"}`, all, contract.ActionNotFound},
		{"no server", "none", gateway.MethodGetPrompt, `{"name":"greet"}`, all, contract.ActionNotFound},
		{"no method", "library", "tools/call", `{"name":"greet"}`, all, contract.ActionNotFound},
		{"without the scope", "library", gateway.MethodReadResource, `{"uri":"lib://readme"}`, one, contract.ActionForbidden},
		{"completion without the scope", "library", gateway.MethodComplete, `{"ref":{"type":"ref/resource"}}`, one, contract.ActionForbidden},
		{"completion of nothing", "library", gateway.MethodComplete, `{}`, all, contract.ActionNotFound},
		{"agent without the capability", "library", gateway.MethodGetPrompt, `{"name":"greet"}`, agent, contract.ActionForbidden},
		{"unknown prompt", "library", gateway.MethodGetPrompt, `{"name":"none"}`, one, contract.ActionFailed},
	} {
		_, err := g.Request(t.Context(), tt.server, tt.method, json.RawMessage(tt.params), tt.by)
		if codeOf(err) != tt.want {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
	}
}

// A server that is not connected delays no list.
func TestList_OfServerThatIsNotConnected(t *testing.T) {
	stopped := httptest.NewServer(http.NotFoundHandler())
	stopped.Close()
	g := startGateway(t, gateway.Config{}, mcpfile.Server{ID: "library", Transport: mcpfile.HTTP, URL: stopped.URL})
	for name, want := range map[string]string{"library": "not connected", "none": "no server"} {
		if _, err := g.List(t.Context(), name, gateway.MethodListPrompts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", name, err, want)
		}
	}
}

// A server whose tools are restricted passes on prompts and resources only if that is declared.
func TestList_OfRestrictedServer(t *testing.T) {
	server := library(t)
	server.Tools.Include = []string{"x*"}
	if ids := listed(t, startGateway(t, gateway.Config{}, server)); len(ids) != 0 {
		t.Errorf("got %q, want nothing", ids)
	}
	server.Prompts = new(true)
	if ids := listed(t, startGateway(t, gateway.Config{}, server)); !slices.Equal(ids, []string{"greet"}) {
		t.Errorf("got %q, want the prompt", ids)
	}
}
