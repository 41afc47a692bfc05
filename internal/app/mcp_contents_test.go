package app

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/contract"
)

// startLibrary starts an MCP server with a prompt, a resource, a template of resources, and a
// tool that returns links to them. It returns its URL.
func startLibrary(t *testing.T) string {
	t.Helper()
	library := mcp.NewServer(&mcp.Implementation{Name: "library", Version: "1"}, &mcp.ServerOptions{
		CompletionHandler: func(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{req.Params.Ref.Name + req.Params.Ref.URI}}}, nil
		},
	})
	link := &mcp.ResourceLink{URI: "lib://readme", Name: "readme"}
	library.AddPrompt(&mcp.Prompt{Name: "greet", Title: "Greet a person"}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{
			{Role: "user", Content: &mcp.TextContent{Text: "Hello " + req.Params.Arguments["name"]}}, {Role: "user", Content: link},
		}}, nil
	})
	read := func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, Text: "text of " + req.Params.URI}}}, nil
	}
	library.AddResource(&mcp.Resource{Name: "readme", URI: "lib://readme"}, read)
	library.AddResourceTemplate(&mcp.ResourceTemplate{Name: "books", URITemplate: "lib://books/{id}"}, read)
	mcp.AddTool(library, &mcp.Tool{Name: "links"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{
			link, &mcp.ResourceLink{URI: "https://example.com/", Name: "web"},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "lib://books/1", Text: "a book"}},
		}}, nil, nil
	})
	backend := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return library }, &mcp.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(backend.Close)
	return backend.URL
}

// contents returns the names of all prompts and the URIs of all resources and templates that the
// session lists.
func contents(t *testing.T, session *mcp.ClientSession) []string {
	t.Helper()
	var ids []string
	for prompt, err := range session.Prompts(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, prompt.Name)
	}
	for resource, err := range session.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, resource.URI)
	}
	for template, err := range session.ResourceTemplates(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, template.URITemplate)
	}
	return ids
}

// linksIn returns the URIs in the content.
func linksIn(content ...mcp.Content) []string {
	var uris []string
	for _, block := range content {
		switch block := block.(type) {
		case *mcp.ResourceLink:
			uris = append(uris, block.URI)
		case *mcp.EmbeddedResource:
			uris = append(uris, block.Resource.URI)
		}
	}
	return uris
}

// MCP clients get the prompts and resources of all servers, under names that are unique, and as
// they are from a server with an empty prefix.
func TestMCPServer_PassesOnPromptsAndResources(t *testing.T) {
	t.Parallel()
	url := startLibrary(t)
	_, change := useMCP(t, `{"servers":{"bare":{"url":"`+url+`","tools":{"prefix":""}},"my lib":{"url":"`+url+`"},"closed":{"url":"`+url+`","prompts":false,"resources":false}}}`)
	s := startServer(t, "clients: {}\n", change)
	for _, version := range []string{"", "2025-06-18"} {
		session := s.connectMCPVersion("", version, nil)
		want := []string{
			"greet", "my_lib__greet_cdf4a7f0", "lib://readme", "mcp://my%20lib/lib://readme", "lib://books/{id}", "mcp://my%20lib/lib://books/{id}",
		}
		if diff := cmp.Diff(want, contents(t, session)); diff != "" {
			t.Errorf("version %q: lists (-want +got):\n%s", version, diff)
		}
		for name, link := range map[string]string{"greet": "lib://readme", "my_lib__greet_cdf4a7f0": "mcp://my%20lib/lib://readme"} {
			prompt, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: name, Arguments: map[string]string{"name": "Ana"}})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if text, ok := prompt.Messages[0].Content.(*mcp.TextContent); !ok || text.Text != "Hello Ana" {
				t.Errorf("%s: got %+v, want the message", name, prompt.Messages[0].Content)
			}
			if diff := cmp.Diff([]string{link}, linksIn(prompt.Messages[1].Content)); diff != "" {
				t.Errorf("%s: links (-want +got):\n%s", name, diff)
			}
			checkCompletion(t, session, &mcp.CompleteReference{Type: "ref/prompt", Name: name}, "greet")
		}
		for _, uri := range []string{"lib://readme", "mcp://my%20lib/lib://readme", "lib://books/7", "mcp://my%20lib/lib://books/7"} {
			result, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if err != nil {
				t.Fatalf("%s: %v", uri, err)
			}
			got := result.Contents[0]
			if own := strings.TrimPrefix(uri, "mcp://my%20lib/"); got.URI != uri || got.Text != "text of "+own {
				t.Errorf("%s: got %+v, want the text of %s", uri, got, own)
			}
		}
		for _, uri := range []string{"lib://books/{id}", "mcp://my%20lib/lib://books/{id}"} {
			checkCompletion(t, session, &mcp.CompleteReference{Type: "ref/resource", URI: uri}, "lib://books/{id}")
		}
		for uri, reason := range map[string]string{
			// Neither a URI that names another server nor one of the web is sent to the server with an empty prefix.
			"mcp://closed/lib://readme": "unknown resource", "mcp://none/lib://readme": "unknown resource", "https://example.com/": "unknown resource",
			"lib://none": "not found",
		} {
			if _, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil || !strings.Contains(strings.ToLower(err.Error()), reason) {
				t.Errorf("%s: got error %v, want %q", uri, err, reason)
			}
		}
		if _, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "closed__greet"}); err == nil || !strings.Contains(err.Error(), "unknown prompt") {
			t.Errorf("got error %v, want an unknown prompt", err)
		}
	}
	session := s.connectMCP("", nil)
	for tool, want := range map[string][]string{
		"links":                  {"lib://readme", "https://example.com/", "lib://books/1"},
		"my_lib__links_31b7ad5a": {"mcp://my%20lib/lib://readme", "https://example.com/", "mcp://my%20lib/lib://books/1"},
		"closed__links":          {"lib://readme", "https://example.com/", "lib://books/1"},
	} {
		result, _ := callTool(t, session, tool, nil)
		if diff := cmp.Diff(want, linksIn(result.Content...)); diff != "" {
			t.Errorf("%s: links (-want +got):\n%s", tool, diff)
		}
	}
}

// A result that is not valid after its redaction is an error, and not an internal one.
func TestMCPServer_RejectsContentsThatRedactionInvalidates(t *testing.T) {
	_, change := useMCP(t, `{"servers":{"library":{"url":"`+startLibrary(t)+`","redaction":[{"path":"/messages/*/content"}]}}}`)
	session := startServer(t, "clients: {}\n", change).connectMCP("", nil)
	if diff := cmp.Diff([]string{"library__greet", "mcp://library/lib://readme", "mcp://library/lib://books/{id}"}, contents(t, session)); diff != "" {
		t.Errorf("lists (-want +got):\n%s", diff)
	}
	_, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "library__greet"})
	if err == nil || !strings.Contains(err.Error(), "not valid after the redaction") {
		t.Errorf("got error %v, want one about the redaction", err)
	}
}

// checkCompletion checks that a completion reaches the server with its own reference.
func checkCompletion(t *testing.T, session *mcp.ClientSession, ref *mcp.CompleteReference, want string) {
	t.Helper()
	result, err := session.Complete(t.Context(), &mcp.CompleteParams{Ref: ref, Argument: mcp.CompleteParamsArgument{Name: "id", Value: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{want}, result.Completion.Values); diff != "" {
		t.Errorf("completion of %+v (-want +got):\n%s", ref, diff)
	}
}

// A caller gets the prompts and resources for which its token has the scope, and each request is
// recorded.
func TestMCPServer_CallersReadTheirContents(t *testing.T) {
	m := newTokenIssuer()
	url := startLibrary(t)
	_, change := useMCP(t, `{"servers":{"one":{"url":"`+url+`"},"two":{"url":"`+url+`"}}}`)
	s := startGuarded(t, m, "clients: {}\n", change)
	const invoke = contract.ScopeInvokePrefix
	for scope, want := range map[string][]string{
		invoke + "one.prompts/get":    {"one__greet"},
		invoke + "two.resources/read": {"mcp://two/lib://readme", "mcp://two/lib://books/{id}"},
		invoke + "one.links":          nil,
	} {
		session := s.connectMCP(m.token("ana", scope, nil), nil)
		if diff := cmp.Diff(want, contents(t, session)); diff != "" {
			t.Errorf("scope %s: lists (-want +got):\n%s", scope, diff)
		}
		_, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "mcp://one/lib://readme"})
		if err == nil || !strings.Contains(err.Error(), "unknown resource") {
			t.Errorf("scope %s: got error %v, want an unknown resource", scope, err)
		}
		if _, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "two__greet"}); err == nil || !strings.Contains(err.Error(), "unknown prompt") {
			t.Errorf("scope %s: got error %v, want an unknown prompt", scope, err)
		}
	}
	session := s.connectMCP(m.token("ana", invoke+"two.resources/read", nil), nil)
	if _, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "mcp://two/lib://readme"}); err != nil {
		t.Fatal(err)
	}
	got := s.do(call{method: "GET", path: "/api/v1/audit?kind=tool_call", token: m.token("root", contract.ScopeAdmin+" "+contract.ScopeRouteRead, nil)})
	if body := string(got.body); got.status != http.StatusOK || !strings.Contains(body, `"two.resources/read"`) || strings.Contains(body, "one.") {
		t.Errorf("got audit records %d %s, want that of the resource", got.status, body)
	}
}

// A client gets the codes of a server that the protocol defines for the request, and no others, and
// of the text only the message, redacted.
func TestMCPServer_KeepsErrorCodes(t *testing.T) {
	failure := func(text string) error {
		code, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Error(err)
		}
		return &jsonrpc.Error{Code: code, Message: "reason SECRET-1", Data: []byte(`"DATA"`)}
	}
	library := mcp.NewServer(&mcp.Implementation{Name: "library", Version: "1"}, &mcp.ServerOptions{
		CompletionHandler: func(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return nil, failure(req.Params.Argument.Value)
		},
	})
	library.AddPrompt(&mcp.Prompt{Name: "fail"}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return nil, failure(req.Params.Arguments["code"])
	})
	library.AddResourceTemplate(&mcp.ResourceTemplate{Name: "fail", URITemplate: "fail://{code}"},
		func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return nil, failure(strings.TrimPrefix(req.Params.URI, "fail://"))
		})
	backend := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return library }, &mcp.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(backend.Close)
	_, change := useMCP(t, `{"servers":{"library":{"url":"`+backend.URL+`","redaction":[{"pattern":"SECRET-[0-9]","in":["response"]}]}}}`)
	s := startServer(t, "clients: {}\n", change)
	const invalidParams, internalError, resourceNotFound, serverError = -32602, -32603, -32002, -32000
	for _, tt := range []struct {
		version, method string
		want            map[int64]int64 // by the code of the server
	}{
		{"2025-11-25", "prompts/get", map[int64]int64{-32602: invalidParams, -32603: internalError, -32601: internalError, -32600: internalError, -32002: serverError, -32050: serverError, 7: serverError}},
		{"2025-11-25", "completion/complete", map[int64]int64{-32602: invalidParams, -32603: internalError, -32601: internalError, 7: serverError}},
		{"2025-11-25", "resources/read", map[int64]int64{-32602: invalidParams, -32603: internalError, -32601: internalError, -32002: resourceNotFound, 7: serverError}},
		{"2026-07-28", "resources/read", map[int64]int64{-32602: invalidParams, -32603: internalError, -32002: invalidParams, 7: serverError}},
	} {
		session := s.connectMCPVersion("", tt.version, nil)
		for code, want := range tt.want {
			text := strconv.FormatInt(code, 10)
			var err error
			switch tt.method {
			case "prompts/get":
				_, err = session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "library__fail", Arguments: map[string]string{"code": text}})
			case "completion/complete":
				ref := &mcp.CompleteReference{Type: "ref/prompt", Name: "library__fail"}
				_, err = session.Complete(t.Context(), &mcp.CompleteParams{Ref: ref, Argument: mcp.CompleteParamsArgument{Name: "code", Value: text}})
			case "resources/read":
				_, err = session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "mcp://library/fail://" + text})
			}
			got, ok := errors.AsType[*jsonrpc.Error](err)
			if !ok || got.Code != want {
				t.Errorf("%s %s, server's code %d: got %v, want the code %d", tt.version, tt.method, code, err, want)
				continue
			}
			if shown := got.Message + string(got.Data); code != -32601 && !strings.Contains(got.Message, "reason <redacted>") || strings.Contains(shown, "SECRET") || strings.Contains(shown, "DATA") {
				t.Errorf("%s, server's code %d: got %q, data %s, want the redacted message only", tt.method, code, got.Message, got.Data)
			}
		}
	}
	// The router itself does not know the resource.
	for version, want := range map[string]int64{"2025-11-25": resourceNotFound, "2026-07-28": invalidParams} {
		_, err := s.connectMCPVersion("", version, nil).ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "mcp://none/lib://a"})
		if got, ok := errors.AsType[*jsonrpc.Error](err); !ok || got.Code != want {
			t.Errorf("%s, unknown resource: got %v, want the code %d", version, err, want)
		}
	}
}
