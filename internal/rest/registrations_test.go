package rest

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/fleet"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// emptyFleet is a Fleet without registrations.
type emptyFleet struct{}

var errNoRegistration = &contract.Error{Code: contract.CodeNotFound, Message: "not registered"}

func (emptyFleet) Register(context.Context, string, contract.Registration, *contract.Caller, string) (fleet.Registered, error) {
	return fleet.Registered{}, errNoRegistration
}

func (emptyFleet) Heartbeat(context.Context, string, string, *contract.Caller) (contract.Lease, error) {
	return contract.Lease{}, errNoRegistration
}

func (emptyFleet) Drain(context.Context, string, string, *contract.Caller) (contract.Lease, error) {
	return contract.Lease{}, errNoRegistration
}

func (emptyFleet) Deregister(context.Context, string, string, *contract.Caller) error {
	return errNoRegistration
}

func (emptyFleet) SetDisabled(context.Context, string, bool, *contract.Caller) error {
	return errNoRegistration
}

func (emptyFleet) Leases(string) []contract.Lease { return nil }

func (emptyFleet) CheckPull(context.Context, string, string, *contract.Caller) error {
	return errNoRegistration
}

// fleetServer is a server with a real fleet.
type fleetServer struct {
	t      *testing.T
	fleet  *fleet.Fleet
	caller contract.Caller
	core   fakeBackend
}

func newFleetServer(t *testing.T) *fleetServer {
	t.Helper()
	b, err := teststore.Open(t).Bucket(t.Context(), store.BucketConfig{Name: "AGENTS"})
	if err != nil {
		t.Fatal(err)
	}
	operator, err := capabilities.ParseDefinition("f.yaml", []byte(`
clients: {fixed: {match: {intent: [x], domains: [d]}}}
grants: {word_counter: {intents: [count_words], domains: [text]}}
`))
	if err != nil {
		t.Fatal(err)
	}
	s := &fleetServer{t: t, caller: contract.Caller{Subject: "word_counter", Issuer: "router", Scopes: []string{"agents:register"}}}
	s.fleet, err = fleet.Open(t.Context(), fleet.Config{Bucket: b, Operator: func() *capabilities.Definition { return operator }})
	if err != nil {
		t.Fatal(err)
	}
	s.core.fleet = s.fleet
	return s
}

// do sends a request as the caller, and returns the response.
func (s *fleetServer) do(method, path, body, ifMatch string) *httptest.ResponseRecorder {
	s.t.Helper()
	w := httptest.NewRecorder()
	r := localRequest(method, "/api/v1/agents/"+path, body)
	if body != "" {
		r.Header.Set("Content-Type", httpserver.MediaTypeJSON)
	}
	if ifMatch != "" {
		r.Header.Set("If-Match", ifMatch)
	}
	newServer(s.t, httpserver.Config{Auth: staticAuth{caller: &s.caller}}, &s.core).ServeHTTP(w, r)
	return w
}

const goodRegistration = `{"instance":"pod-1","match":{"intent":["count_words","pay"],"domains":["text"]},"endpoint":{"protocol":"http","url":"http://127.0.0.1:9101/"}}`

// The life cycle of a registration, over HTTP.
func TestRegistrations_OverHTTP(t *testing.T) {
	s := newFleetServer(t)
	etag := ""
	for _, step := range []struct {
		name, method, path, body string
		ifMatch                  string // "etag" = that of the last response with one
		status                   int
		text                     string // in the response
	}{
		{"heartbeat before the registration", "POST", "word_counter/heartbeat", "", "", 404, "instance default of agent word_counter is not registered"},
		{"register", "PUT", "word_counter", goodRegistration, "", 201, `"refused":["intent pay is not granted"]`},
		{"again", "PUT", "word_counter", goodRegistration, "etag", 200, `"state":"active"`},
		{"another ETag", "PUT", "word_counter", goodRegistration, `"7"`, 412, "If-Match"},
		{"list of ETags", "PUT", "word_counter", goodRegistration, `"7", etag`, 200, "active"},
		{"heartbeat", "POST", "word_counter/heartbeat", `{"instance":"pod-1"}`, "", 200, `"heartbeat_s":10`},
		{"heartbeat of another instance", "POST", "word_counter/heartbeat", `{}`, "", 404, "instance default"},
		{"drain", "POST", "word_counter/drain", `{"instance":"pod-1"}`, "", 200, `"state":"draining"`},
		{"another agent", "PUT", "fixed", goodRegistration, "", 403, "the token is for word_counter and not for the agent fixed"},
		{"invalid id", "PUT", "Word", goodRegistration, "", 404, "matches ^"},
		{"not JSON", "PUT", "word_counter", `{`, "", 400, "the body is not JSON"},
		{"key of the grant", "PUT", "word_counter", strings.Replace(goodRegistration, "{", `{"priority":7,`, 1), "", 422, "/priority"},
		{"several mistakes", "PUT", "word_counter", `{"lease_ttl_s":1,"match":{"intent":[],"domains":["unknown"]},"endpoint":{"protocol":"http"}}`, "", 422, "/match/domains/0"},
		{"long name", "POST", "word_counter/heartbeat", `{"instance":"` + strings.Repeat("x", 65) + `"}`, "", 422, "/instance"},
		{"unknown parameter", "DELETE", "word_counter?name=x", "", "", 422, "unknown parameter"},
		{"leave with an empty name", "DELETE", "word_counter?instance=", "", "", 422, "must not be empty; without it, all instances leave"},
		{"leave", "DELETE", "word_counter?instance=pod-1", "", "", 204, ""},
		{"leave again", "DELETE", "word_counter", "", "", 404, "not registered"},
		{"disable as an agent", "POST", "word_counter/disable", "", "", 403, "the token lacks the scope admin"},
	} {
		w := s.do(step.method, step.path, step.body, strings.Replace(step.ifMatch, "etag", etag, 1))
		if w.Code != step.status || !strings.Contains(w.Body.String(), step.text) {
			t.Errorf("%s: got %d %s, want %d with %s", step.name, w.Code, w.Body, step.status, step.text)
		}
		if (w.Header().Get("Etag") != "") != (step.method == "PUT" && w.Code < 300) {
			t.Errorf("%s: got ETag %q", step.name, w.Header().Get("Etag"))
		}
		if tag := w.Header().Get("Etag"); tag != "" {
			etag = tag
		}
	}
}

func TestRegistrations_DisableAndEnable(t *testing.T) {
	s := newFleetServer(t)
	s.caller = contract.Caller{Subject: "ops", Scopes: []string{"admin"}}
	for _, step := range []struct {
		path     string
		status   int
		disabled []string
	}{
		{"fixed/disable", 204, []string{"fixed"}},
		{"fixed/disable", 204, []string{"fixed"}},
		{"nobody/disable", 404, []string{"fixed"}},
		{"fixed/enable", 204, []string{}},
	} {
		if w := s.do("POST", step.path, "", ""); w.Code != step.status {
			t.Errorf("%s: got %d %s, want %d", step.path, w.Code, w.Body, step.status)
		}
		d, err := s.fleet.State()
		if err != nil {
			t.Fatal(err)
		}
		got := make([]string, 0, len(d.Disabled))
		for id := range d.Disabled {
			got = append(got, id)
		}
		if diff := cmp.Diff(step.disabled, got); diff != "" {
			t.Errorf("%s: disabled (-want +got):\n%s", step.path, diff)
		}
	}
}
