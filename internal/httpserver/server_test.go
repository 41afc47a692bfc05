package httpserver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNew_RequiresNewID(t *testing.T) {
	if _, err := New(Config{}); err == nil || !strings.Contains(err.Error(), "NewID") {
		t.Errorf("got error %v, want one that names NewID", err)
	}
}

func TestMount_RejectsInvalidAPIs(t *testing.T) {
	handle := func(*Context) error { return nil }
	valid := func() API {
		return API{Prefix: "/x/", EncodeError: encodeTestError, Routes: []Route{{Method: "GET", Path: "/x/a", Handle: handle}}}
	}
	for name, change := range map[string]func(*API){
		"no EncodeError": func(a *API) { a.EncodeError = nil },
		"undefined code": func(a *API) {
			a.EncodeError = func(string, *contract.Error) (EncodedError, bool) { return EncodedError{}, false }
		},
		"another prefix":  func(a *API) { a.Routes[0].Path = "/y" },
		"no handler":      func(a *API) { a.Routes[0].Handle = nil },
		"duplicate route": func(a *API) { a.Routes = append(a.Routes, a.Routes[0]) },
		"mounted route":   func(a *API) { a.Prefix, a.Routes[0].Path, a.Routes[0].Method = "/", "/work", "POST" },
	} {
		s := newServer(t, Config{}, &fakeAPI{})
		api := valid()
		change(&api)
		if err := s.Mount(api); err == nil {
			t.Errorf("%s: got no error, want one", name)
		}
	}
	s := newServer(t, Config{}, &fakeAPI{})
	if err := s.Mount(valid()); err != nil {
		t.Errorf("valid API: %v", err)
	}
}

func TestServe_WithoutAPIFails(t *testing.T) {
	s, err := New(Config{NewID: func() string { return "id" }})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(t.Context(), ln); err == nil {
		t.Error("got no error, want one")
	}
}

// TestServer_EncodesGuardErrorsInFormatOfAPI mounts a second API with its own error format
// next to the first one.
func TestServer_EncodesGuardErrorsInFormatOfAPI(t *testing.T) {
	type rpcError struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	encode := func(_ string, e *contract.Error) (EncodedError, bool) {
		if e.Code == contract.CodeConflict {
			return EncodedError{}, false
		}
		body := map[string]any{"jsonrpc": "2.0", "error": rpcError{-32000, string(e.Code)}}
		status := http.StatusBadRequest
		switch e.Code {
		case contract.CodeUnauthenticated:
			status = http.StatusUnauthorized
		case contract.CodeForbidden:
			status = http.StatusForbidden
		}
		return EncodedError{Status: status, ContentType: "application/rpc+json", Body: body}, true
	}
	auth, limit := authFor("s"), &countdown{left: map[string]int{}}
	first := newBlockedAPI()
	s := newServer(t, Config{Auth: auth, MaxInFlight: 2}, &first.fakeAPI)
	fail := errors.New("secret")
	err := s.Mount(API{
		Prefix:      "/rpc/",
		EncodeError: encode,
		NotFound:    "no such method",
		Routes: []Route{
			{
				Method: "POST", Path: "/rpc/call", Scope: "work", RateLimit: limit,
				Body:   BodySpec{MaxBytes: 10, MediaTypes: []string{MediaTypeJSON}},
				Handle: func(c *Context) error { return c.WriteJSON(http.StatusOK, MediaTypeJSON, string(c.Body())) },
			},
			{Method: "POST", Path: "/rpc/panic", Scope: "work", Handle: func(*Context) error { panic("secret") }},
			{Method: "POST", Path: "/rpc/fail", Scope: "work", Handle: func(*Context) error { return fail }},
			{Method: "POST", Path: "/rpc/conflict", Scope: "work", Handle: func(*Context) error {
				return &contract.Error{Code: contract.CodeConflict, Message: "secret"}
			}},
			{Method: "POST", Path: "/rpc/stream", Scope: "work", Handle: func(c *Context) error {
				return c.StreamEvents(EventStream{Source: func(_ context.Context, emit EmitFunc) error {
					return errors.Join(emit(&Event{Name: "a", Data: 1}), fail)
				}})
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	limit.left["s"] = 1
	if w := serve(s, localRequest("POST", "/rpc/call", "{}")); w.Code != 200 || w.Body.String() != `"{}"` {
		t.Fatalf("got %d %s, want the echoed body", w.Code, w.Body)
	}
	check := func(name string, r *http.Request, want contract.Code) {
		t.Helper()
		w := serve(s, r)
		wantBody := `{"error":{"code":-32000,"message":"` + string(want) + `"},"jsonrpc":"2.0"}`
		if got := strings.TrimSpace(w.Body.String()); got != wantBody || w.Header().Get("Content-Type") != "application/rpc+json" {
			t.Errorf("%s: got %d %s %s, want %s", name, w.Code, w.Header().Get("Content-Type"), got, wantBody)
		}
	}
	check("rate limited", localRequest("POST", "/rpc/call", "{}"), contract.CodeRateLimited)
	limit.left["s"] = 9
	check("too large", localRequest("POST", "/rpc/call", strings.Repeat(" ", 11)), contract.CodePayloadTooLarge)
	check("no route", localRequest("POST", "/rpc/nothing", ""), contract.CodeNotFound)
	check("another method", localRequest("PUT", "/rpc/call", ""), contract.CodeMethodNotAllowed)
	check("panic", localRequest("POST", "/rpc/panic", ""), contract.CodeInternal)
	check("internal error", localRequest("POST", "/rpc/fail", ""), contract.CodeInternal)
	check("a code that the API does not define", localRequest("POST", "/rpc/conflict", ""), contract.CodeInternal)
	foreign := localRequest("POST", "/rpc/call", "{}")
	foreign.Header.Set("Sec-Fetch-Site", "cross-site")
	check("another origin", foreign, contract.CodeForbidden)
	auth.caller.Scopes = nil
	check("no scope", localRequest("POST", "/rpc/call", "{}"), contract.CodeForbidden)
	auth.caller.Scopes = []string{"work"}
	auth.err = &contract.Error{Code: contract.CodeUnauthenticated}
	check("no valid token", localRequest("POST", "/rpc/call", "{}"), contract.CodeUnauthenticated)
	auth.err = nil

	events := testkit.ReadSSE(t, serve(s, localRequest("POST", "/rpc/stream", "")).Body.String())
	if len(events) != 2 || events[1].Name != EventError || !strings.Contains(events[1].Data, `"jsonrpc":"2.0"`) {
		t.Errorf("got events %v, want an error in the format of the API at the end", events)
	}

	// Both APIs share the admission classes.
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() { serve(s, localRequest("POST", "/work", "{}")) })
		testkit.Receive(t, first.entered)
	}
	check("shed", localRequest("POST", "/rpc/call", "{}"), contract.CodeOverloaded)
	close(first.release)
	running.Wait()

	if w := serve(s, localRequest("GET", "/nothing", "")); w.Code != 404 || !strings.Contains(w.Body.String(), `"error":"not_found"`) {
		t.Errorf("outside of the prefix: got %d %s, want the format of the first API", w.Code, w.Body)
	}
}
