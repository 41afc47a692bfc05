package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/internal/testkit"
)

// changingTools are tools that a test changes.
type changingTools struct {
	fakeTools

	mu   sync.Mutex
	next chan struct{}
}

func (f *changingTools) Servers() []gateway.ServerInfo {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.servers
}

func (f *changingTools) changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.next
}

// set replaces the only server.
func (f *changingTools) set(s *gateway.ServerInfo) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.Name, s.Status, s.ReadsResources = "s", gateway.StatusConnected, true
	f.servers = []gateway.ServerInfo{*s}
	close(f.next)
	f.next = make(chan struct{})
}

// listenTo sends a request, and returns the data of its events, and what ends it.
func listenTo(t *testing.T, url, method, body string, header http.Header) (events <-chan string, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, method, url+Path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		content, _ := io.ReadAll(resp.Body)
		t.Fatalf("got %d, content type %q: %s", resp.StatusCode, got, content)
	}
	data := make(chan string, 100)
	go func() {
		defer close(data)
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				data <- text
			}
		}
	}()
	return data, func() {
		cancel()
		_ = resp.Body.Close()
	}
}

const listenBody = `{"jsonrpc":"2.0","id":"a/1","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` +
	`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`

func listenHeader(version string) http.Header {
	return http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {version}, "Mcp-Method": {"subscriptions/listen"},
	}
}

// startChanging serves tools that a test changes, and one request of the class of calls at a time.
func startChanging(t *testing.T) (tools *changingTools, url string) {
	t.Helper()
	tools = &changingTools{next: make(chan struct{})}
	backend := httptest.NewServer(newHTTPServer(t, Config{Tools: tools, Changed: tools.changed}))
	t.Cleanup(backend.Close)
	return tools, backend.URL
}

// A stream has a notification for each change of a list as the caller sees it, and for nothing else.
// It does not keep other requests from being admitted.
func TestServer_StreamsChanges(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/subscriptionId":"a/1"}`
	const tools, prompts, resources = "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed"
	const wantsOthers = `"promptsListChanged":true,"resourcesListChanged":true`
	for _, tt := range []struct {
		name, method, body string
		header             http.Header
		first, lists       []string
		params             string // of the notifications
	}{
		{
			"listen to tools", "POST", listenBody, listenHeader("2026-07-28"),
			[]string{`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{` + meta + `,"notifications":{"toolsListChanged":true}}}`},
			[]string{tools},
			`,"params":{` + meta + "}",
		},
		{
			"listen to others", "POST", strings.Replace(listenBody, `"toolsListChanged":true`, wantsOthers, 1), listenHeader("2026-07-28"),
			[]string{`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{` + meta + `,"notifications":{` + wantsOthers + `}}}`},
			[]string{prompts, resources},
			`,"params":{` + meta + "}",
		},
		{
			"get", "GET", "",
			http.Header{"Accept": {"text/event-stream"}},
			[]string{changedMessage(tools, ""), changedMessage(prompts, ""), changedMessage(resources, "")},
			[]string{tools, prompts, resources},
			"",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			servers, url := startChanging(t)
			events, end := listenTo(t, url, tt.method, tt.body, tt.header)
			defer end()
			for _, want := range tt.first {
				if diff := cmp.Diff(want, testkit.Receive(t, events)); diff != "" {
					t.Errorf("first messages (-want +got):\n%s", diff)
				}
			}
			one := []gateway.Entry{{ID: "1", Definition: json.RawMessage(`{"name":"1"}`)}}
			titled := []gateway.Entry{{ID: "1", Definition: json.RawMessage(`{"name":"1","title":"new"}`)}}
			for _, change := range []struct {
				server  gateway.ServerInfo
				changed []string
			}{
				{gateway.ServerInfo{Tools: []gateway.Tool{{Action: "s.a"}}}, []string{tools}},
				{gateway.ServerInfo{Tools: []gateway.Tool{{Action: "s.a", Description: "new"}}}, []string{tools}},
				{gateway.ServerInfo{Tools: []gateway.Tool{{Action: "s.a", Description: "new"}, {Action: "s.b", Error: "cannot be called"}}}, nil},
				{gateway.ServerInfo{Prompts: one}, []string{tools, prompts}},
				{gateway.ServerInfo{Prompts: titled, Resources: one}, []string{prompts, resources}},
				{gateway.ServerInfo{Prompts: titled, ResourceTemplates: one}, []string{resources}},
				{gateway.ServerInfo{}, []string{prompts, resources}},
			} {
				servers.set(&change.server)
				for _, method := range change.changed {
					if !slices.Contains(tt.lists, method) {
						continue
					}
					if diff := cmp.Diff(changedMessage(method, tt.params), testkit.Receive(t, events)); diff != "" {
						t.Errorf("message (-want +got):\n%s", diff)
					}
				}
			}
			req := newRequest(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
			other, err := http.NewRequestWithContext(t.Context(), req.Method, url+Path, req.Body)
			if err != nil {
				t.Fatal(err)
			}
			other.Header = req.Header
			resp, err := http.DefaultClient.Do(other)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("got %v, %v, want the list beside the stream", resp, err)
			}
			_ = resp.Body.Close()
			if n := len(events); n > 0 {
				t.Errorf("got %d further messages, want none", n)
			}
		})
	}
}

// changedMessage returns a notification. params is the JSON of the rest of the object.
func changedMessage(method, params string) string {
	return `{"jsonrpc":"2.0","method":"` + method + `"` + params + "}"
}

// The ids of the events of a stream differ, also if several are sent at once.
func TestServer_NumbersEvents(t *testing.T) {
	_, url := startChanging(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+Path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	ids := map[string]bool{}
	for lines := bufio.NewScanner(resp.Body); len(ids) < 3 && lines.Scan(); {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			if ids[id] {
				t.Fatalf("got the id %s twice", id)
			}
			ids[id] = true
		}
	}
	if len(ids) != 3 {
		t.Errorf("got ids %v, want three", ids)
	}
}

// A message that asks for a stream and is not valid is answered with an error.
func TestServer_RejectsStreams(t *testing.T) {
	for name, tt := range map[string]struct{ method, body, version string }{
		"no accept":            {"GET", "", ""},
		"no id":                {"POST", strings.Replace(listenBody, `"a/1"`, "null", 1), "2026-07-28"},
		"no id, for prompts":   {"POST", strings.NewReplacer(`"a/1"`, "null", "toolsList", "promptsList").Replace(listenBody), "2026-07-28"},
		"earlier version":      {"POST", listenBody, "2025-11-25"},
		"no list of what":      {"POST", strings.Replace(listenBody, `"notifications":{"toolsListChanged":true},`, "", 1), "2026-07-28"},
		"notifications a list": {"POST", strings.Replace(listenBody, `{"toolsListChanged":true}`, "[]", 1), "2026-07-28"},
	} {
		t.Run(name, func(t *testing.T) {
			_, url := startChanging(t)
			req, err := http.NewRequestWithContext(t.Context(), tt.method, url+Path, strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header = listenHeader(tt.version)
			if tt.method == http.MethodGet {
				req.Header = http.Header{"Accept": {"application/json"}}
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			content, err := io.ReadAll(resp.Body)
			if err != nil || !strings.Contains(string(content), `"error":{`) {
				t.Errorf("got %d %s, %v, want an error", resp.StatusCode, content, err)
			}
		})
	}
}

// A client that asks for other notifications gets none, and the stream ends.
func TestServer_AgreesToKnownNotificationsOnly(t *testing.T) {
	_, url := startChanging(t)
	events, end := listenTo(t, url, "POST", strings.Replace(listenBody, `"toolsListChanged":true`, `"resourceSubscriptions":["lib://a"]`, 1), listenHeader("2026-07-28"))
	defer end()
	var ack struct {
		Method string
		Params struct{ Notifications map[string]any }
	}
	if err := json.Unmarshal([]byte(testkit.Receive(t, events)), &ack); err != nil || ack.Method != notificationAcknowledged || len(ack.Params.Notifications) > 0 {
		t.Errorf("got %+v, %v, want an empty agreement", ack, err)
	}
	if result := testkit.Receive(t, events); !strings.Contains(result, `"result"`) {
		t.Errorf("got %s, want the result, which ends the stream", result)
	}
}
