package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/mcphost"
	"github.com/caprouter/caprouter/internal/testkit"
)

// fakeTools are tools of MCP servers.
type fakeTools struct {
	servers []gateway.ServerInfo
	call    func(*mcphost.Call) (*contract.ActionResult, error)
}

func (f *fakeTools) Servers() []gateway.ServerInfo { return f.servers }

func (f *fakeTools) WaitServer(context.Context, string) (gateway.ServerInfo, bool) {
	return gateway.ServerInfo{}, false
}

func (f *fakeTools) MayUseServer(*contract.Caller, *gateway.ServerInfo) bool { return true }

func (f *fakeTools) Call(_ context.Context, call *mcphost.Call) (*contract.ActionResult, error) {
	return f.call(call)
}

// fakeRouter answers with the function.
type fakeRouter func() (*contract.Response, []byte, error)

func (f fakeRouter) HandleJSON(context.Context, *contract.Request, *contract.Caller) (*contract.Response, []byte, error) {
	return f()
}

// outcomes are the outcomes of routing requests.
type outcomes []string

func (o *outcomes) RecordRequest(outcome string, _ time.Duration) { *o = append(*o, outcome) }

// post sends a message to a server, and returns its response.
func post(t *testing.T, cfg Config, body string) string {
	t.Helper()
	w := httptest.NewRecorder()
	postTo(t.Context(), t, w, cfg, body)
	return w.Body.String()
}

// postTo sends a message to a server, which writes its response to w.
func postTo(ctx context.Context, t *testing.T, w http.ResponseWriter, cfg Config, body string) {
	t.Helper()
	newHTTPServer(t, cfg).ServeHTTP(w, newRequest(ctx, body))
}

// newHTTPServer returns a server that handles one request at a time.
func newHTTPServer(t *testing.T, cfg Config) *httpserver.Server {
	t.Helper()
	srv, err := httpserver.New(httpserver.Config{NewID: func() string { return "r1" }, MaxInFlight: 1})
	if err == nil {
		err = srv.Mount(New(cfg))
	}
	if err != nil {
		t.Fatal(err)
	}
	return srv
}

func newRequest(ctx context.Context, body string) *http.Request {
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+Path, strings.NewReader(body))
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	return req
}

// slowReader calls a function while the response is being written to it.
type slowReader struct {
	*httptest.ResponseRecorder
	reading func()
}

func (r *slowReader) Write(p []byte) (int, error) {
	r.reading()
	return r.ResponseRecorder.Write(p)
}

// A client that reads its response slowly does not keep other requests from being admitted.
func TestServer_AdmitsWhileResponseIsRead(t *testing.T) {
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	srv := newHTTPServer(t, Config{})
	other := httptest.NewRecorder()
	w := &slowReader{ResponseRecorder: httptest.NewRecorder(), reading: func() { srv.ServeHTTP(other, newRequest(t.Context(), ping)) }}
	srv.ServeHTTP(w, newRequest(t.Context(), ping))
	for _, got := range []*httptest.ResponseRecorder{w.ResponseRecorder, other} {
		if got.Code != http.StatusOK || got.Body.String() != `{"jsonrpc":"2.0","id":1,"result":{}}` {
			t.Errorf("got %d %s, want a result", got.Code, got.Body)
		}
	}
}

// A notification has a response without a body.
func TestServer_AcceptsNotification(t *testing.T) {
	w := httptest.NewRecorder()
	postTo(t.Context(), t, w, Config{}, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if w.Code != http.StatusAccepted || w.Body.Len() != 0 {
		t.Errorf("got %d %q, want 202 and no body", w.Code, w.Body)
	}
}

// deadlineRecorder records the write deadline.
type deadlineRecorder struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (r *deadlineRecorder) SetWriteDeadline(deadline time.Time) error {
	r.deadline = deadline
	return nil
}

// Between two events of a stream there is no deadline, because HTTP/2 ends a stream whose
// deadline passes. Each write has one.
func TestServer_WaitsForEventsWithoutDeadline(t *testing.T) {
	w := &deadlineRecorder{ResponseRecorder: httptest.NewRecorder()}
	var waiting time.Time
	tools := &fakeTools{servers: []gateway.ServerInfo{server("s", nil, "t")}, call: func(call *mcphost.Call) (*contract.ActionResult, error) {
		call.OnProgress(contract.ActionProgress{Progress: 1})
		waiting = w.deadline
		return &contract.ActionResult{Type: contract.ActionText, Content: json.RawMessage(`"done"`)}, nil
	}}
	postTo(t.Context(), t, w, Config{Tools: tools}, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__t","_meta":{"progressToken":1}}}`)
	if got := w.Body.String(); strings.Count(got, "event: message") != 2 {
		t.Fatalf("got %q, want progress and the result", got)
	}
	if !waiting.IsZero() {
		t.Errorf("got the deadline %s after the progress, want none", waiting)
	}
	if w.deadline.IsZero() {
		t.Error("got no deadline for the end of the response")
	}
}

// The cause of an internal error is for the log, and a panic does not end the process.
func TestServer_HidesInternalErrors(t *testing.T) {
	const secret = "open /var/lib/caprouter: no space"
	const want = `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error; the server log has the cause under this request_id","data":{"code":"internal","request_id":"r1"}}}`
	fail := func(*mcphost.Call) (*contract.ActionResult, error) { return nil, errors.New(secret) }
	for _, tt := range []struct {
		name, tool string
		tools      *fakeTools
		router     fakeRouter
		outcomes   int
	}{
		{"error of the router", toolRoute, &fakeTools{}, func() (*contract.Response, []byte, error) { return nil, nil, errors.New(secret) }, 1},
		{"panic of the router", toolRoute, &fakeTools{}, func() (*contract.Response, []byte, error) { panic(secret) }, 0},
		{"error of a call", "s__t", &fakeTools{servers: []gateway.ServerInfo{server("s", nil, "t")}, call: fail}, nil, 0},
	} {
		var log testkit.LogBuffer
		var counted outcomes
		cfg := Config{Tools: tt.tools, Router: tt.router, Meter: &counted, Logger: log.Logger()}
		got := post(t, cfg, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tt.tool+`","arguments":{"prompt":"x"}}}`)
		if got != want {
			t.Errorf("%s: got %s, want %s", tt.name, got, want)
		}
		if !strings.Contains(log.String(), secret) {
			t.Errorf("%s: got log %q, want the cause", tt.name, log.String())
		}
		if len(counted) != tt.outcomes {
			t.Errorf("%s: got outcomes %v, want %d", tt.name, counted, tt.outcomes)
		}
	}
}

// A call that the shutdown cancels has an error as its response, not an empty one.
func TestServer_AnswersCancelledCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tools := &fakeTools{servers: []gateway.ServerInfo{server("s", nil, "t")}, call: func(*mcphost.Call) (*contract.ActionResult, error) {
		cancel()
		return nil, ctx.Err()
	}}
	w := httptest.NewRecorder()
	postTo(ctx, t, w, Config{Tools: tools}, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__t"}}`)
	want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"the request was cancelled before it was answered","data":{"code":"overloaded","request_id":"r1"}}}`
	if got := w.Body.String(); got != want {
		t.Errorf("got %q, want %s", got, want)
	}
}

// A request that no agent serves has the code of the HTTP interface.
func TestServer_NamesCodeOfUnsupportedRequest(t *testing.T) {
	cfg := Config{
		Tools: &fakeTools{}, Meter: &outcomes{},
		Router: fakeRouter(func() (*contract.Response, []byte, error) {
			return &contract.Response{RequestID: "r1", Status: contract.StatusUnsupported, Data: contract.ResponseData{Answer: "no agent"}}, nil, nil
		}),
	}
	body := post(t, cfg, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"route_request","arguments":{"prompt":"x"}}}`)
	var got struct {
		Result struct {
			IsError bool
			Meta    map[string]struct {
				Code    contract.Code `json:"error_code"`
				Message string
			} `json:"_meta"`
		}
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if e := got.Result.Meta[metaError]; !got.Result.IsError || e.Code != contract.CodeNoEligibleAgent || e.Message != "no agent" {
		t.Errorf("got %s, want the code %s", body, contract.CodeNoEligibleAgent)
	}
}
