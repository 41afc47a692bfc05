//go:build unix

package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/gateway/mcpclient"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/internal/testkit"
)

// scriptedServer is a server over streamable HTTP whose replies and session expiry are set by a
// test.
type scriptedServer struct {
	t    *testing.T
	url  string
	call func(w http.ResponseWriter, text string, id json.RawMessage) // of the tool "echo"

	list   func(w http.ResponseWriter, cursor string, id json.RawMessage) // nil = the tool "echo"
	stream func(w http.ResponseWriter)                                    // of changes; nil = none

	mu       sync.Mutex
	sessions map[string]bool
	opened   int
	executed map[string]int // calls by text
}

func newScriptedServer(t *testing.T) *scriptedServer {
	t.Helper()
	s := &scriptedServer{t: t, sessions: map[string]bool{}, executed: map[string]int{}}
	s.url = serve(t, s).URL
	return s
}

// expire ends all sessions.
func (s *scriptedServer) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sessions)
}

func (s *scriptedServer) executions(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.executed[text]
}

func (s *scriptedServer) sessionsOpened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

func (s *scriptedServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet && s.stream != nil:
		s.stream(w)
		return
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Arguments struct{ Text string }
			Cursor    string
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		s.t.Error(err)
	}
	const session = "Mcp-Session-Id"
	s.mu.Lock()
	if m.Method == "initialize" {
		s.opened++
		id := sessionPrefix + fmt.Sprint(s.opened)
		s.sessions[id] = true
		w.Header().Set(session, id)
	}
	known := m.Method == "initialize" || m.Method == "server/discover" || s.sessions[r.Header.Get(session)]
	if known && m.Method == "tools/call" {
		s.executed[m.Params.Arguments.Text]++
	}
	s.mu.Unlock()
	switch {
	case !known:
		w.WriteHeader(http.StatusNotFound)
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case m.Method == "initialize":
		reply(w, m.ID, `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"scripted","version":"1"}}`)
	case m.Method == "tools/list" && s.list != nil:
		s.list(w, m.Params.Cursor, m.ID)
	case m.Method == "tools/list":
		reply(w, m.ID, `"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`)
	case m.Method == "tools/call":
		s.call(w, m.Params.Arguments.Text, m.ID)
	default:
		reply(w, m.ID, `"error":{"code":-32601,"message":"no such method"}`)
	}
}

// reply sends a JSON-RPC response with this member.
func reply(w http.ResponseWriter, id json.RawMessage, member string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, id, member)
}

// sessionPrefix is the prefix of session ids.
const sessionPrefix = "session-"

const emptyResult = `"result":{"content":[]}`

func echo(text string) contract.Action {
	return contract.Action{Action: "s.echo", Input: json.RawMessage(fmt.Sprintf(`{"text":%q}`, text))}
}

// If a session expires during a call, the call is not sent again and is not reported as unsent.
func TestInvoke_CallInFlightAtSessionExpiry(t *testing.T) {
	for name, begin := range map[string]func(w http.ResponseWriter){
		"JSON": func(http.ResponseWriter) {},
		"event stream": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScriptedServer(t)
			arrived, release := make(chan struct{}), make(chan struct{})
			var once sync.Once
			s.call = func(w http.ResponseWriter, text string, id json.RawMessage) {
				if text == "first" {
					begin(w)
					once.Do(func() { close(arrived) })
					<-release
				}
				reply(w, id, emptyResult)
			}
			g := startGateway(t, gateway.Config{MinBackoff: time.Millisecond}, mcpfile.Server{ID: "s", Transport: mcpfile.HTTP, URL: s.url})
			first := make(chan error, 1)
			go func() {
				_, err := g.Invoke(t.Context(), echo("first"))
				first <- err
			}()
			testkit.WaitClosed(t, arrived)
			s.expire()
			if _, err := g.Invoke(t.Context(), echo("second")); err != nil {
				t.Errorf("rejected call: got %v, want it repeated in a new session", err)
			}
			close(release)
			err := testkit.Receive(t, first)
			if codeOf(err) != contract.ActionOutcomeUnknown {
				t.Fatalf("call in flight: got %v, want %s", err, contract.ActionOutcomeUnknown)
			}
			if text := err.Error(); strings.Contains(text, sessionPrefix) {
				t.Errorf("got %q, want no session id", text)
			}
			if n := s.executions("first"); n != 1 {
				t.Errorf("got %d executions of the call in flight, want 1", n)
			}
		})
	}
}

// A server whose sessions expire is reconnected each time, and calls wait for the new session.
func TestInvoke_ReopensExpiredSessions(t *testing.T) {
	s := newScriptedServer(t)
	s.call = func(w http.ResponseWriter, _ string, id json.RawMessage) { reply(w, id, emptyResult) }
	var longest atomic.Int64
	cfg := gateway.Config{MinBackoff: time.Nanosecond}.WithWait(func(_ context.Context, d time.Duration) {
		longest.Store(max(longest.Load(), int64(d))) // only one goroutine waits
	})
	g := startGateway(t, cfg, mcpfile.Server{ID: "s", Transport: mcpfile.HTTP, URL: s.url})
	for n := range 5 {
		if _, err := g.Invoke(t.Context(), echo(fmt.Sprint(n))); err != nil {
			t.Errorf("call %d: %v", n, err)
		}
		s.expire()
	}
	if got := longest.Load(); got > 1 {
		t.Errorf("got a delay of %d times the shortest one, want no increase", got)
	}
}

// A server that rejects the request of a call has not executed the tool: many answer 400 to a session
// that they do not know, and a credential may expire. The call is sent again.
func TestInvoke_RejectedRequests(t *testing.T) {
	for _, tt := range []struct {
		status int
		want   string // "" = a result, of the second attempt
	}{
		{http.StatusBadRequest, ""},
		{http.StatusUnauthorized, ""},
		{http.StatusForbidden, ""},
		{http.StatusTooManyRequests, ""},
		{http.StatusFound, contract.ActionOutcomeUnknown},
		{http.StatusRequestTimeout, contract.ActionOutcomeUnknown},
		{http.StatusInternalServerError, contract.ActionOutcomeUnknown},
	} {
		t.Run(fmt.Sprint(tt.status), func(t *testing.T) {
			s := newScriptedServer(t)
			var calls atomic.Int32
			s.call = func(w http.ResponseWriter, _ string, id json.RawMessage) {
				if calls.Add(1) == 1 {
					w.WriteHeader(tt.status)
					return
				}
				reply(w, id, emptyResult)
			}
			g := startGateway(t, gateway.Config{MinBackoff: time.Millisecond}, mcpfile.Server{ID: "s", Transport: mcpfile.HTTP, URL: s.url})
			if _, err := g.Invoke(t.Context(), echo("x")); codeOf(err) != tt.want {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// A server, or a proxy, may end the stream of changes at any time. The session and its calls go on, and
// changes in the meantime are not missed.
func TestGateway_OpensStreamOfChangesAgain(t *testing.T) {
	t.Parallel()
	s := newScriptedServer(t)
	arrived, release, streams := make(chan struct{}), make(chan struct{}), make(chan struct{}, 10)
	s.call = func(w http.ResponseWriter, _ string, id json.RawMessage) {
		close(arrived)
		<-release
		reply(w, id, emptyResult)
	}
	var lists atomic.Int32
	s.list = func(w http.ResponseWriter, _ string, id json.RawMessage) {
		lists.Add(1)
		reply(w, id, `"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`)
	}
	s.stream = func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"jsonrpc\":") // the end of an event is missing
		streams <- struct{}{}
	}
	g := startGateway(t, gateway.Config{}, mcpfile.Server{ID: "s", Transport: mcpfile.HTTP, URL: s.url})
	result := make(chan error, 1)
	go func() {
		_, err := g.Invoke(t.Context(), echo("x"))
		result <- err
	}()
	testkit.WaitClosed(t, arrived)
	for range 4 { // the library ends the session after the third one
		testkit.Receive(t, streams)
	}
	close(release)
	if err := testkit.Receive(t, result); err != nil {
		t.Errorf("got %v, want a result", err)
	}
	testkit.Eventually(t, "the tools are listed again", func() bool { return lists.Load() > 1 })
	if got := s.sessionsOpened(); got != 1 {
		t.Errorf("got %d sessions, want 1", got)
	}
}

// A caller that cancels while its call waits for a new session gets the error of its context, and
// the call is recorded as cancelled.
func TestInvoke_CancelledBeforeReconnect(t *testing.T) {
	s := newScriptedServer(t)
	s.call = func(w http.ResponseWriter, _ string, id json.RawMessage) { reply(w, id, emptyResult) }
	reconnecting, release := make(chan struct{}), make(chan struct{})
	var lists atomic.Int32
	s.list = func(w http.ResponseWriter, _ string, id json.RawMessage) {
		if lists.Add(1) == 2 {
			close(reconnecting)
			<-release
		}
		reply(w, id, `"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`)
	}
	recorder := &memoryRecorder{}
	g := startGateway(t, gateway.Config{MinBackoff: time.Millisecond, Recorder: recorder}, mcpfile.Server{ID: "s", Transport: mcpfile.HTTP, URL: s.url})
	defer close(release)
	if _, err := g.Invoke(t.Context(), echo("first")); err != nil {
		t.Fatal(err)
	}
	s.expire()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result := make(chan error, 1)
	go func() {
		_, err := g.Invoke(ctx, echo("second"))
		result <- err
	}()
	testkit.WaitClosed(t, reconnecting)
	cancel()
	if err := testkit.Receive(t, result); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if records := recorder.ended; len(records) != 2 || records[1].Outcome != gateway.OutcomeCancelled {
		t.Errorf("got the records %+v, want the second call cancelled", records)
	}
}

// An invalid result is reported as such and not requested again, because the tool was executed and
// would return the same.
func TestInvoke_InvalidResults(t *testing.T) {
	s := newScriptedServer(t)
	var next atomic.Pointer[string]
	s.call = func(w http.ResponseWriter, _ string, id json.RawMessage) { reply(w, id, *next.Load()) }
	g := startGateway(t, gateway.Config{}, mcpfile.Server{
		ID: "s", Transport: mcpfile.HTTP, URL: s.url, Retry: &mcpfile.Retry{Retries: 2, MinMS: 1},
	})
	for result, want := range map[string]string{
		`"x"`:                               "it is not an object",
		`{"content":"x"}`:                   "the type of /content is wrong",
		`{"content":[{"type":"hologram"}]}`: `unrecognized content type "hologram"`,
		`{"content":[{"type":"image","data":"%","mimeType":"image/png"}]}`:             "base64",
		`{"content":[],"isError":"yes"}`:                                               "/isError",
		`{"content":[{"type":"text","text":7}]}`:                                       "text",
		`{"content":[{"type":"resource","resource":{"uri":"a:b","blob":"%"}}]}`:        "base64",
		`{"content":[{"type":"resource_link","uri":"a:b","name":"n","size":"large"}]}`: "/content/0/size",
	} {
		member := `"result":` + result
		next.Store(&member)
		_, err := g.Invoke(t.Context(), echo(result))
		if codeOf(err) != contract.ActionBadResult || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "struct {") {
			t.Errorf("%s: got %v, want %s with %q", result, err, contract.ActionBadResult, want)
		}
		if n := s.executions(result); n != 1 {
			t.Errorf("%s: got %d executions, want 1", result, n)
		}
	}
}

// A response that is none of JSON-RPC is the result of its call only: others in the session go on.
func TestInvoke_InvalidResponses(t *testing.T) {
	for _, member := range []string{`"error":"bad"`, `"Result":{}`} {
		t.Run(member, func(t *testing.T) {
			s := newScriptedServer(t)
			arrived, release := make(chan struct{}), make(chan struct{})
			s.call = func(w http.ResponseWriter, text string, id json.RawMessage) {
				if text == "invalid" {
					reply(w, id, member)
					return
				}
				close(arrived)
				<-release
				reply(w, id, emptyResult)
			}
			g := startGateway(t, gateway.Config{}, mcpfile.Server{ID: "s", Transport: mcpfile.HTTP, URL: s.url})
			valid := make(chan error, 1)
			go func() {
				_, err := g.Invoke(t.Context(), echo("valid"))
				valid <- err
			}()
			testkit.WaitClosed(t, arrived)
			_, err := g.Invoke(t.Context(), echo("invalid"))
			close(release)
			if codeOf(err) != contract.ActionBadResult {
				t.Errorf("got %v, want %s", err, contract.ActionBadResult)
			}
			if err := testkit.Receive(t, valid); err != nil {
				t.Errorf("the other call: got %v, want a result", err)
			}
		})
	}
}

// After a session has failed, its calls are not sent, and the error states this.
func TestSession_SendsNothingAfterFailure(t *testing.T) {
	s := newScriptedServer(t)
	s.call = func(w http.ResponseWriter, _ string, _ json.RawMessage) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, "<html>")
	}
	server := &mcpfile.Expanded{Server: mcpfile.Server{ID: "s", Transport: mcpfile.HTTP, URL: s.url}}
	session, err := mcpclient.Connect(t.Context(), server, mcpclient.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	for n, wantNotSent := range []bool{false, true} {
		_, err := session.Call(t.Context(), "echo", json.RawMessage(`{"text":"x"}`), nil)
		if failure, ok := errors.AsType[*mcpclient.CallError](err); !ok || failure.NotSent != wantNotSent {
			t.Errorf("call %d: got %#v, want an error for an unsent call: %v", n, err, wantNotSent)
		}
	}
	if n := s.executions("x"); n != 1 {
		t.Errorf("got %d calls at the server, want 1", n)
	}
}

func TestSession_ListsTools(t *testing.T) {
	const tool = `{"name":"a","inputSchema":{"type":"object"}}`
	for name, tt := range map[string]struct {
		pages map[string]string // results by cursor
		want  string            // error; "" = two tools
	}{
		"two pages":       {map[string]string{"": `{"tools":[` + tool + `],"nextCursor":"2"}`, "2": `{"tools":[null,` + tool + `]}`}, ""},
		"repeated cursor": {map[string]string{"": `{"tools":[],"nextCursor":"2"}`, "2": `{"tools":[],"nextCursor":"2"}`}, "the list of the server does not end"},
		"wrong type":      {map[string]string{"": `{"tools":{"name":"a"}}`}, "the list is not valid: the type of /tools is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScriptedServer(t)
			s.list = func(w http.ResponseWriter, cursor string, id json.RawMessage) {
				reply(w, id, `"result":`+tt.pages[cursor])
			}
			server := &mcpfile.Expanded{Server: mcpfile.Server{ID: "s", Transport: mcpfile.HTTP, URL: s.url}}
			session, err := mcpclient.Connect(t.Context(), server, mcpclient.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = session.Close() }()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			tools, err := session.Tools(ctx)
			if tt.want == "" && (err != nil || len(tools) != 2) || tt.want != "" && (err == nil || err.Error() != tt.want) {
				t.Errorf("got %d tools and error %v, want error %q", len(tools), err, tt.want)
			}
		})
	}
}

// A subscription that ends is opened again, and the changes in the meantime are not missed.
func TestGateway_SubscribesAgain(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "changing", Version: "1"}, nil)
	add := func(name string) {
		mcp.AddTool(server, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{}, nil, nil
		})
	}
	add("first")
	handler := streamableHTTP(t, func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	subscriptions := make(chan context.CancelFunc, 10)
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "subscriptions/listen" {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			r = r.WithContext(ctx)
			subscriptions <- cancel
		}
		handler.ServeHTTP(w, r)
	})).URL
	g := startGateway(t, gateway.Config{}, mcpfile.Server{ID: "s", Transport: mcpfile.HTTP, URL: url})
	awaitTool := func(action string) {
		t.Helper()
		testkit.Eventually(t, action+" is listed", func() bool {
			info, _ := g.Get("s")
			return slices.ContainsFunc(info.Tools, func(tool gateway.Tool) bool { return tool.Action == action })
		})
	}
	awaitTool("s.first")
	testkit.Receive(t, subscriptions)()
	add("second")
	awaitTool("s.second")
	testkit.Receive(t, subscriptions)
	add("third")
	awaitTool("s.third")
}
