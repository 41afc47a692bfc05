//go:build unix

package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/gateway/redaction"
	"github.com/caprouter/caprouter/internal/testkit"
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
	info, ok := g.Get("library")
	if !ok {
		t.Fatal("there is no server library")
	}
	var ids []string
	for _, e := range slices.Concat(info.Prompts, info.Resources, info.ResourceTemplates) {
		ids = append(ids, e.ID)
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
	if info, _ := g.Get("library"); !info.ReadsResources || !info.Completes {
		t.Errorf("got %+v, want resources and completions", info)
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

// The lists follow the changes that the server reports.
func TestGateway_FollowsChangedContents(t *testing.T) {
	library := newLibrary(nil)
	url := serve(t, streamableHTTP(t, func(*http.Request) *mcp.Server { return library }, nil)).URL
	g := startGateway(t, gateway.Config{}, mcpfile.Server{ID: "library", Transport: mcpfile.HTTP, URL: url})
	library.RemoveResources("lib://readme")
	testkit.Eventually(t, "the resource is not listed", func() bool {
		return slices.Equal(listed(t, g), []string{"greet", "lib://books/{id}"})
	})
	library.RemovePrompts("greet")
	testkit.Eventually(t, "the prompt is not listed", func() bool {
		return slices.Equal(listed(t, g), []string{"lib://books/{id}"})
	})
}

// Definitions are redacted like results, and an entry whose id is redacted is left out.
func TestGateway_RedactsContents(t *testing.T) {
	library := newLibrary(nil)
	library.AddPrompt(&mcp.Prompt{Name: "SECRET-1"}, nil)
	library.AddPrompt(&mcp.Prompt{Name: "described", Description: "for SECRET-2"}, nil)
	url := serve(t, streamableHTTP(t, func(*http.Request) *mcp.Server { return library }, nil)).URL
	server := mcpfile.Server{ID: "library", Transport: mcpfile.HTTP, URL: url, Resources: new(false)}
	server.Redaction = []redaction.Rule{{Pattern: "SECRET-[0-9]", In: []string{redaction.Response}}}
	g := startGateway(t, gateway.Config{}, server)
	info, _ := g.Get("library")
	if len(info.Prompts) != 2 || info.Prompts[0].ID != "described" || !strings.Contains(string(info.Prompts[0].Definition), "for <redacted>") {
		t.Errorf("got the prompts %s, want the redacted description, and no prompt with a redacted name", info.Prompts)
	}
}

// Rules for requests apply to values of arguments, and not to what the request names.
func TestRequest_RedactsArguments(t *testing.T) {
	server := library(t)
	server.Redaction = []redaction.Rule{{Key: "name", In: []string{redaction.Request}}, {Key: "uri", In: []string{redaction.Request}}}
	g := startGateway(t, gateway.Config{}, server)
	for method, tt := range map[string]struct{ params, want string }{
		gateway.MethodGetPrompt:    {`{"name":"greet","arguments":{"name":"Ana"}}`, "Hello <redacted>"},
		gateway.MethodReadResource: {`{"uri":"lib://readme"}`, "text of lib://readme"},
		gateway.MethodComplete:     {`{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":"Ana"}}`, "<redacted>na"},
	} {
		result, err := g.Request(t.Context(), "library", method, json.RawMessage(tt.params), gateway.Invocation{Caller: contract.LocalCaller()})
		if err != nil || !strings.Contains(string(result), tt.want) {
			t.Errorf("%s: got %s, error %v, want %q", method, result, err, tt.want)
		}
	}
}

// A result that a server permits to cache is requested again, and results are not kept.
func TestRequest_IsNotCached(t *testing.T) {
	const results, size = 20, 256 << 10
	var reads atomic.Int32
	server := mcp.NewServer(&mcp.Implementation{Name: "library", Version: "1"}, nil)
	server.AddResourceTemplate(&mcp.ResourceTemplate{Name: "books", URITemplate: "lib://books/{id}"},
		func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			text := strconv.Itoa(int(reads.Add(1))) + strings.Repeat(" ", size)
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, Text: text}}, Cacheable: mcp.Cacheable{TTLMs: 3_600_000}}, nil
		})
	handler := streamableHTTP(t, func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	g := startGateway(t, gateway.Config{}, mcpfile.Server{ID: "library", Transport: mcpfile.HTTP, URL: serve(t, handler).URL})
	if info, _ := g.Get("library"); info.Protocol < "2026-07-28" {
		t.Fatalf("got protocol %s, want one with caches", info.Protocol)
	}
	read := func(id int) {
		params := json.RawMessage(fmt.Sprintf(`{"uri":"lib://books/%d"}`, id))
		if _, err := g.Request(t.Context(), "library", gateway.MethodReadResource, params, gateway.Invocation{Caller: contract.LocalCaller()}); err != nil {
			t.Fatal(err)
		}
	}
	read(0)
	read(0)
	if n := reads.Load(); n != 2 {
		t.Errorf("got %d reads of the server, want 2", n)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for id := range results {
		read(id)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > results*size/2 {
		t.Errorf("the heap grew by %d bytes after %d results of %d bytes, want less than half of them", grown, results, size)
	}
}

// A server with a faulty list has the others, and incomplete results are errors.
func TestGateway_ServerWithFaultyContents(t *testing.T) {
	const library = `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":"s","version":"1"}}`
	results := map[string]string{
		"initialize":               library,
		"tools/list":               `"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`,
		"prompts/list":             `"result":{"prompts":[{"name":"endless"}],"nextCursor":"1"}`,
		"resources/list":           `"result":{"resources":[null,{"name":"without a URI"},{"name":"a","uri":"lib://a"}]}`,
		"resources/templates/list": `"result":{"resourceTemplates":{"name":7}}`,
		"prompts/get":              `"result":{"messages":[null]}`,
		"resources/read":           `"result":{}`,
	}
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		switch err := json.NewDecoder(r.Body).Decode(&m); {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case err != nil:
			t.Error(err)
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case results[m.Method] == "":
			reply(w, m.ID, `"error":{"code":-32601,"message":"no such method"}`)
		default:
			reply(w, m.ID, results[m.Method])
		}
	}))
	g := startGateway(t, gateway.Config{}, mcpfile.Server{ID: "library", Transport: mcpfile.HTTP, URL: server.URL})
	if diff := cmp.Diff([]string{"lib://a"}, listed(t, g)); diff != "" {
		t.Errorf("lists (-want +got):\n%s", diff)
	}
	if info, _ := g.Get("library"); info.ToolCount != 1 {
		t.Errorf("got %d tools, want one", info.ToolCount)
	}
	for method, params := range map[string]string{gateway.MethodGetPrompt: `{"name":"endless"}`, gateway.MethodReadResource: `{"uri":"lib://a"}`} {
		_, err := g.Request(t.Context(), "library", method, json.RawMessage(params), gateway.Invocation{Caller: contract.LocalCaller()})
		if codeOf(err) != contract.ActionBadResult {
			t.Errorf("%s: got %v, want %s", method, err, contract.ActionBadResult)
		}
	}
}

// A change of a list that only a probe finds is reported, and a list that a server does not answer
// with is the one before.
func TestGateway_ListsContentsAtProbes(t *testing.T) {
	const prompts = `"result":{"prompts":[{"name":"a"}]}`
	var list atomic.Pointer[string]
	list.Store(new(prompts))
	var rejected atomic.Int32
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		switch err := json.NewDecoder(r.Body).Decode(&m); {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case err != nil:
			t.Error(err)
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case m.Method == "initialize":
			reply(w, m.ID, `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"prompts":{}},"serverInfo":{"name":"s","version":"1"}}`)
		case m.Method == "tools/list":
			reply(w, m.ID, `"result":{"tools":[]}`)
		case m.Method == "prompts/list" && *list.Load() == "":
			rejected.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
		case m.Method == "prompts/list":
			reply(w, m.ID, *list.Load())
		default: // also server/discover
			reply(w, m.ID, `"error":{"code":-32601,"message":"no such method"}`)
		}
	}))
	g := startGateway(t, gateway.Config{ProbeInterval: 10 * time.Millisecond}, mcpfile.Server{ID: "library", Transport: mcpfile.HTTP, URL: server.URL})
	if diff := cmp.Diff([]string{"a"}, listed(t, g)); diff != "" {
		t.Fatalf("prompts (-want +got):\n%s", diff)
	}
	awaitChange := func(want ...string) {
		for changed := g.Changed(); !slices.Equal(listed(t, g), want); changed = g.Changed() {
			testkit.WaitClosed(t, changed)
		}
	}
	list.Store(new(`"result":{"prompts":[{"name":"b"}]}`))
	awaitChange("b")
	list.Store(new(""))
	testkit.Eventually(t, "the list was requested twice", func() bool { return rejected.Load() > 1 })
	if diff := cmp.Diff([]string{"b"}, listed(t, g)); diff != "" {
		t.Errorf("without an answer (-want +got):\n%s", diff)
	}
	list.Store(new(`"error":{"code":-32601,"message":"no such method"}`))
	awaitChange()
}

// A server that answers probes stays connected, also if it does not answer requests of a list.
func TestGateway_StaysConnectedWithoutList(t *testing.T) {
	var connections, requests atomic.Int32
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		switch err := json.NewDecoder(r.Body).Decode(&m); {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case err != nil:
			t.Error(err)
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case m.Method == "initialize":
			connections.Add(1)
			reply(w, m.ID, `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"prompts":{}},"serverInfo":{"name":"s","version":"1"}}`)
		case m.Method == "prompts/list" && requests.Add(1) > 1:
			<-r.Context().Done()
		case m.Method == "prompts/list":
			reply(w, m.ID, `"result":{"prompts":[{"name":"a"}]}`)
		case m.Method == "tools/list":
			reply(w, m.ID, `"result":{"tools":[]}`)
		case m.Method == "ping":
			reply(w, m.ID, `"result":{}`)
		default:
			reply(w, m.ID, `"error":{"code":-32601,"message":"no such method"}`)
		}
	}))
	g := startGateway(t, gateway.Config{ProbeInterval: 10 * time.Millisecond, ProbeTimeout: 200 * time.Millisecond},
		mcpfile.Server{ID: "library", Transport: mcpfile.HTTP, URL: server.URL})
	testkit.Eventually(t, "the list was requested at several probes", func() bool { return requests.Load() > 6 })
	if n := connections.Load(); n != 1 {
		t.Errorf("got %d connections, want one", n)
	}
	if diff := cmp.Diff([]string{"a"}, listed(t, g)); diff != "" {
		t.Errorf("prompts (-want +got):\n%s", diff)
	}
}
