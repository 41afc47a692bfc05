package mcprelay

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/internal/cli/restclient"
	"github.com/caprouter/caprouter/internal/testkit"
)

// startRelay starts a relay for the router, which rejects messages that contain the word
// "large", and returns the transport to the relay.
func startRelay(t *testing.T, router *mcp.Server) mcp.Transport {
	t.Helper()
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return router }, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, PropagateRequestCancellation: true, // as the router does
	})
	return relayTo(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "large") {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"the limit is 1 byte","data":{"code":"payload_too_large","request_id":"r1"}}}`)
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		handler.ServeHTTP(w, r)
	})
}

// relayTo starts a relay for the router with the handler, and returns the transport to the relay.
func relayTo(t *testing.T, router http.HandlerFunc) mcp.Transport {
	t.Helper()
	srv := httptest.NewServer(router)
	t.Cleanup(srv.Close)
	c, err := restclient.New(srv.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	relay := New(c, "1")
	t.Cleanup(relay.close)
	near, far := mcp.NewInMemoryTransports()
	if _, err := relay.server().Connect(t.Context(), near, nil); err != nil {
		t.Fatal(err)
	}
	return far
}

// Clients of all versions get the notifications of the router about each list, also those of the next
// stream after the first one has ended.
func TestRelay_PassesOnChanges(t *testing.T) {
	const tools, prompts, resources = "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed"
	for _, version := range []string{"2025-06-18", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			var streams atomic.Int32
			transport := relayTo(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet || r.Header.Get("Accept") != "text/event-stream" {
					t.Errorf("got %s, Accept %q, want a GET for events", r.Method, r.Header.Get("Accept"))
				}
				w.Header().Set("Content-Type", "text/event-stream")
				methods := []string{tools, prompts}
				if streams.Add(1) > 1 {
					methods = []string{resources}
				}
				for i, method := range methods {
					fmt.Fprintf(w, ": comment\n\nid: %d\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":%q}\n\n", i+1, method)
				}
			})
			changed := make(chan string, 10)
			client := mcp.NewClient(&mcp.Implementation{Name: "tests", Version: "1"}, &mcp.ClientOptions{
				ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { changed <- tools },
				PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { changed <- prompts },
				ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { changed <- resources },
			})
			session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = session.Close() })
			got := map[string]bool{}
			for len(got) < 3 {
				got[testkit.Receive(t, changed)] = true
			}
		})
	}
}

// A call that the router rejects does not end the others, and its error has the reason.
func TestRelay_RejectedCallLeavesOthers(t *testing.T) {
	started, proceed := make(chan struct{}, 1), make(chan struct{})
	router := mcp.NewServer(&mcp.Implementation{Name: "router", Version: "1"}, nil)
	mcp.AddTool(router, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		started <- struct{}{}
		select {
		case <-proceed:
		case <-ctx.Done():
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, ctx.Err()
	})
	session, err := mcp.NewClient(&mcp.Implementation{Name: "tests", Version: "1"}, nil).Connect(t.Context(), startRelay(t, router), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	ended := make(chan error, 1)
	go func() {
		_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "wait"})
		ended <- err
	}()
	testkit.Receive(t, started)
	_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "large"})
	if err == nil || !strings.Contains(err.Error(), "the limit is 1 byte") {
		t.Errorf("got error %v, want that of the router", err)
	}
	close(proceed)
	if err := testkit.Receive(t, ended); err != nil {
		t.Errorf("the other call: %v", err)
	}
}

// A client that cancels a call cancels it at the router, and can make other calls.
func TestRelay_PassesOnCancellation(t *testing.T) {
	started, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	router := mcp.NewServer(&mcp.Implementation{Name: "router", Version: "1"}, nil)
	mcp.AddTool(router, &mcp.Tool{Name: "hang"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		started <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return nil, nil, ctx.Err()
	})
	session, err := mcp.NewClient(&mcp.Implementation{Name: "tests", Version: "1"}, nil).Connect(t.Context(), startRelay(t, router), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "hang"})
		failed <- err
	}()
	testkit.Receive(t, started)
	cancel()
	testkit.Receive(t, ended)
	if err := testkit.Receive(t, failed); err == nil {
		t.Error("got a result, want an error")
	}
	if _, err := session.ListTools(t.Context(), nil); err != nil {
		t.Errorf("after the cancellation: %v", err)
	}
}

// A call without arguments has none for the router, either: null does not match the schema of
// any tool.
func TestRelay_CallsWithoutArguments(t *testing.T) {
	router := mcp.NewServer(&mcp.Implementation{Name: "router", Version: "1"}, nil)
	router.AddTool(&mcp.Tool{Name: "show", InputSchema: map[string]any{"type": "object"}}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(req.Params.Arguments)}}}, nil
	})
	// The client of the SDK always sends arguments.
	conn, err := startRelay(t, router).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	var response jsonrpc.Message
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"show"}}`,
	} {
		message, err := jsonrpc.DecodeMessage([]byte(text))
		if err == nil {
			err = conn.Write(t.Context(), message)
		}
		if req, ok := message.(*jsonrpc.Request); err == nil && ok && req.IsCall() {
			response, err = conn.Read(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got, err := jsonrpc.EncodeMessage(response); err != nil || !strings.Contains(string(got), `"text":"{}"`) {
		t.Errorf("got %s, error %v, want empty arguments", got, err)
	}
}

// Prompts, resources and completions of the router reach the client.
func TestRelay_PassesOnPromptsAndResources(t *testing.T) {
	router := mcp.NewServer(&mcp.Implementation{Name: "router", Version: "1"}, &mcp.ServerOptions{
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{"Ana"}}}, nil
		},
	})
	router.AddPrompt(&mcp.Prompt{Name: "greet"}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Description: "for " + req.Params.Arguments["name"]}, nil
	})
	read := func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, Text: "text"}}}, nil
	}
	router.AddResource(&mcp.Resource{Name: "readme", URI: "lib://readme"}, read)
	router.AddResourceTemplate(&mcp.ResourceTemplate{Name: "books", URITemplate: "lib://books/{id}"}, read)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "tests", Version: "1"}, nil).Connect(t.Context(), startRelay(t, router), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	prompts, err := session.ListPrompts(t.Context(), nil)
	if err != nil || len(prompts.Prompts) != 1 {
		t.Errorf("got prompts %+v, error %v, want one", prompts, err)
	}
	prompt, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "greet", Arguments: map[string]string{"name": "Ana"}})
	if err != nil || prompt.Description != "for Ana" {
		t.Errorf("got the prompt %+v, error %v, want that for Ana", prompt, err)
	}
	resources, err := session.ListResources(t.Context(), nil)
	if err != nil || len(resources.Resources) != 1 {
		t.Errorf("got resources %+v, error %v, want one", resources, err)
	}
	templates, err := session.ListResourceTemplates(t.Context(), nil)
	if err != nil || len(templates.ResourceTemplates) != 1 {
		t.Errorf("got templates %+v, error %v, want one", templates, err)
	}
	resource, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "lib://books/1"})
	if err != nil || resource.Contents[0].Text != "text" {
		t.Errorf("got the resource %+v, error %v, want its text", resource, err)
	}
	ref := &mcp.CompleteReference{Type: "ref/prompt", Name: "greet"}
	completion, err := session.Complete(t.Context(), &mcp.CompleteParams{Ref: ref, Argument: mcp.CompleteParamsArgument{Name: "name", Value: "A"}})
	if err != nil || len(completion.Completion.Values) != 1 {
		t.Errorf("got the completion %+v, error %v, want one value", completion, err)
	}
}
