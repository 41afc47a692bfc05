//go:build unix

package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/internal/mcpsample"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/testkit"
)

// Every transport and every version of the protocol gives the same result.
func TestInvoke_OverHTTP(t *testing.T) {
	stateful := streamableHTTP(t, newSystem, nil)
	stateless := streamableHTTP(t, newSystem, &mcp.StreamableHTTPOptions{Stateless: true})
	sse := mcp.NewSSEHandler(newSystem, nil)
	tests := []struct {
		name, transport string
		handler         http.Handler
		protocol        string
	}{
		{"stateful", mcpfile.HTTP, stateful, "2025-11-25"},
		{"stateless", mcpfile.HTTP, stateless, "2026-07-28"},
		// Before its initialization, a session of the library's SSE server offers all versions.
		{"sse", mcpfile.SSE, sse, ""},
		{"auto for http", mcpfile.Auto, stateful, "2025-11-25"},
		{"auto for sse", mcpfile.Auto, sse, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := serve(t, requireToken(tt.handler))
			declared := mcpfile.Server{
				ID: "system", Transport: tt.transport, URL: server.URL,
				Auth: &mcpfile.Auth{Type: "bearer", Env: "TOKEN"}, Headers: map[string]string{"X-Tenant": "acme"},
			}
			g := startGateway(t, gateway.Config{Lookup: token}, declared)
			if info := g.Servers()[0]; tt.protocol != "" && info.Protocol != tt.protocol || info.Error != "" {
				t.Fatalf("got protocol %q and error %q, want protocol %q", info.Protocol, info.Error, tt.protocol)
			}
			got, err := g.Invoke(t.Context(), contract.Action{Action: "system.echo", Input: json.RawMessage(`{"text":"x"}`)})
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Content) != `"x"` {
				t.Errorf("got %s, want x", got.Content)
			}
		})
	}
}

func TestInvoke_ReconnectsAfterRestartOverHTTP(t *testing.T) {
	system := newSystem(nil)
	var current atomic.Pointer[http.Handler]
	closeSessions := func() {
		for session := range system.Sessions() {
			_ = session.Close()
		}
	}
	t.Cleanup(closeSessions) // the gateway may have opened one that the next handler does not know
	restart := func() {
		closeSessions()
		var h http.Handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return system }, nil)
		current.Store(&h)
	}
	restart()
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*current.Load()).ServeHTTP(w, r) }))
	g := startGateway(t, gateway.Config{MinBackoff: time.Millisecond}, mcpfile.Server{ID: "system", Transport: mcpfile.HTTP, URL: server.URL})
	restart()
	testkit.Eventually(t, "the server answers again", func() bool {
		_, err := g.Invoke(t.Context(), contract.Action{Action: "system.info"})
		return err == nil
	})
}

// A server must not send the client, and with it the credential, to another host.
func TestGateway_SendsCredentialsToOneOriginOnly(t *testing.T) {
	var requests atomic.Int32
	other := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	redirecting := serve(t, http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	referring := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: endpoint\ndata: %s/messages\n\n", other.URL)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	auth := &mcpfile.Auth{Type: "header", Header: "X-Api-Key", Env: "TOKEN"}
	g := startGateway(t, gateway.Config{Lookup: token, MinBackoff: time.Hour},
		mcpfile.Server{ID: "redirecting", Transport: mcpfile.HTTP, URL: redirecting.URL, Auth: auth},
		mcpfile.Server{ID: "referring", Transport: mcpfile.SSE, URL: referring.URL, Auth: auth})
	for _, s := range g.Servers() {
		if s.Status != gateway.StatusError {
			t.Errorf("%s: got status %s, want error", s.Name, s.Status)
		}
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("got %d requests at the other host, want none", n)
	}
}

func TestInvoke_REST(t *testing.T) {
	replies := map[string]func(w http.ResponseWriter){
		"ok": func(w http.ResponseWriter) {
			fmt.Fprint(w, `{"type":"text","content":"rain","metadata":{"provider":"x"}}`)
		},
		"image":     func(w http.ResponseWriter) { fmt.Fprint(w, `{"type":"image","content":"https://h/i.png"}`) },
		"unknown":   func(w http.ResponseWriter) { fmt.Fprint(w, `{"type":"video","content":""}`) },
		"no result": func(w http.ResponseWriter) { fmt.Fprint(w, `<html>`) },
		"error": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"error_code":"NO_PLACE","suggestion":"name one","severity":"WARNING"}`)
		},
		"forbidden":   func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) },
		"broken":      func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		"repeatable":  func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		"unavailable": func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		"large":       func(w http.ResponseWriter) { _, _ = io.Copy(w, io.LimitReader(zeros{}, 20<<20)) },
	}
	var calls atomic.Int32
	var last atomic.Value
	server := serve(t, requireToken(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		body, _ := io.ReadAll(r.Body)
		last.Store(string(body))
		var request contract.Action
		if err := json.Unmarshal(body, &request); err != nil {
			t.Error(err)
		}
		replies[strings.TrimPrefix(request.Action, "weather.")](w)
	})))
	declared := mcpfile.Server{ID: "weather", Transport: mcpfile.REST, URL: server.URL, Auth: &mcpfile.Auth{Type: "bearer", Env: "TOKEN"}}
	for name := range replies {
		a := mcpfile.Action{Name: name}
		switch name {
		case "ok":
			a.InputSchema = json.RawMessage(`{"type":"object","required":["ubicacion"]}`)
			a.OutputSchema = json.RawMessage(`{"type":"object","required":["type","content"],"properties":{"type":{"enum":["text","image"]}}}`)
		case "repeatable":
			a.Retry = &mcpfile.Retry{Retries: 2, MinMS: 1}
		}
		declared.Actions = append(declared.Actions, a)
	}
	g := startGateway(t, gateway.Config{Lookup: token, Breaker: resilience.BreakerConfig{Failures: 100}}, declared)
	tests := []struct {
		name  string
		want  string // error code
		calls int32
	}{
		{"ok", "", 1},
		{"image", "BAD_RESULT", 1},
		{"unknown", "BAD_RESULT", 1},
		{"no result", "BAD_RESULT", 1},
		{"error", "NO_PLACE", 1},
		{"forbidden", "TOOL_ERROR", 1},
		{"unavailable", "SERVER_UNAVAILABLE", 2},
		{"large", "OUTCOME_UNKNOWN", 1},
		{"broken", "OUTCOME_UNKNOWN", 1},
		{"repeatable", "SERVER_UNAVAILABLE", 3},
	}
	for _, tt := range tests {
		calls.Store(0)
		got, err := g.Invoke(t.Context(), contract.Action{
			Action: "weather." + tt.name, Input: json.RawMessage(`{"ubicacion":"Madrid"}`), Context: contract.ActionContext{Locale: "es-ES"},
		})
		if code := codeOf(err); code != tt.want {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
		if n := calls.Load(); n != tt.calls {
			t.Errorf("%s: got %d calls, want %d", tt.name, n, tt.calls)
		}
		if tt.name != "ok" {
			continue
		}
		want := &contract.ActionResult{Type: "text", Content: json.RawMessage(`"rain"`), Metadata: contract.ActionMetadata{Provider: "weather"}}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(contract.ActionMetadata{}, "LatencyMS")); diff != "" {
			t.Errorf("result (-want +got):\n%s", diff)
		}
		const request = `{"action":"weather.ok","input":{"ubicacion":"Madrid"},"context":{"locale":"es-ES"},"response":{"format":"auto","stream":false}}`
		if diff := cmp.Diff(request, last.Load()); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
	}
	calls.Store(0)
	_, err := g.Invoke(t.Context(), contract.Action{Action: "weather.ok"})
	if codeOf(err) != "INVALID_INPUT" || calls.Load() != 0 {
		t.Errorf("got %v after %d calls, want INVALID_INPUT after none", err, calls.Load())
	}
}

// After several failures a server gets no calls until the circuit breaker permits one.
func TestInvoke_OpensCircuitBreaker(t *testing.T) {
	var calls atomic.Int32
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
	}))
	g := startGateway(t, gateway.Config{}, mcpfile.Server{ID: "a", Transport: mcpfile.REST, URL: server.URL, Actions: []mcpfile.Action{{Name: "x"}}})
	var last error
	for range 8 {
		_, last = g.Invoke(t.Context(), contract.Action{Action: "a.x"})
	}
	if codeOf(last) != "SERVER_UNAVAILABLE" || !strings.Contains(last.Error(), "failed repeatedly") {
		t.Errorf("got %v, want SERVER_UNAVAILABLE with the reason", last)
	}
	if got, want := calls.Load(), int32(5); got != want {
		t.Errorf("got %d calls, want %d", got, want)
	}
}

func TestInvoke_EndsWithContext(t *testing.T) {
	arrived := make(chan struct{}, 1)
	server := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server watches the connection after the body
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	g := startGateway(t, gateway.Config{}, mcpfile.Server{ID: "a", Transport: mcpfile.REST, URL: server.URL, Actions: []mcpfile.Action{{Name: "x"}}})
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := g.Invoke(ctx, contract.Action{Action: "a.x"})
		result <- err
	}()
	testkit.Receive(t, arrived)
	cancel()
	if err := testkit.Receive(t, result); err == nil || codeOf(err) != context.Canceled.Error() {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// Calls with a short deadline do not make a server unavailable to others.
func TestInvoke_ShortDeadlinesOpenNoCircuitBreaker(t *testing.T) {
	var calls atomic.Int32
	server := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	g := startGateway(t, gateway.Config{}, mcpfile.Server{ID: "a", Transport: mcpfile.REST, URL: server.URL, Actions: []mcpfile.Action{{Name: "x"}}})
	for n := int32(1); n <= 7; n++ {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		_, err := g.Invoke(ctx, contract.Action{Action: "a.x"})
		cancel()
		if codeOf(err) != "OUTCOME_UNKNOWN" || calls.Load() != n {
			t.Fatalf("call %d: got %v after %d calls, want OUTCOME_UNKNOWN after %d", n, err, calls.Load(), n)
		}
	}
}

func newSystem(*http.Request) *mcp.Server {
	server, err := mcpsample.New("system", "test")
	if err != nil {
		return nil
	}
	return server
}

func token(name string) (string, bool) { return "secret-token", name == "TOKEN" }

// requireToken rejects requests without the credential.
func requireToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret-token" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// streamableHTTP returns a handler of the servers, whose sessions end with the test. The gateway
// asks a server to end its session, but may be closed before the request arrives.
func streamableHTTP(tb testing.TB, provide func(*http.Request) *mcp.Server, opts *mcp.StreamableHTTPOptions) http.Handler {
	tb.Helper()
	var mu sync.Mutex
	servers := map[*mcp.Server]bool{}
	tb.Cleanup(func() { // after the HTTP server has been closed
		mu.Lock()
		defer mu.Unlock()
		for server := range servers {
			for session := range server.Sessions() {
				_ = session.Close()
			}
		}
	})
	return mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		server := provide(r)
		mu.Lock()
		defer mu.Unlock()
		servers[server] = true
		return server
	}, opts)
}

func serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

// zeros is an endless reader.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}
