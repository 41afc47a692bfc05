package agentkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
)

// The calls of the agent word_counter.
const (
	callRegister   = "PUT /api/v1/agents/word_counter"
	callHeartbeat  = "POST /api/v1/agents/word_counter/heartbeat"
	callDrain      = "POST /api/v1/agents/word_counter/drain"
	callDeregister = "DELETE /api/v1/agents/word_counter?instance=i1"
	callShutdown   = "shutdown" // of the agent's server
)

// registryCall is one request of an agent to the registry.
type registryCall struct {
	Call  string // method and path
	Token string
	Body  string
	At    time.Duration // since the registry was created
}

// fakeRegistry is a router at which agents register, without a network.
type fakeRegistry struct {
	began time.Time

	mu    sync.Mutex
	calls []registryCall
	// reply replaces the reply of the registry if it returns a response or an error; n counts the
	// calls of this kind from 0.
	reply func(n int, call string, r *http.Request) (*http.Response, error)
}

func newFakeRegistry() *fakeRegistry { return &fakeRegistry{began: time.Now()} }

func (f *fakeRegistry) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	call := r.Method + " " + r.URL.RequestURI()
	n := f.record(registryCall{call, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), string(body), time.Since(f.began)})
	if f.reply != nil {
		if resp, err := f.reply(n, call, r); resp != nil || err != nil {
			return resp, err
		}
	}
	switch call {
	case callRegister:
		return answer(http.StatusCreated, leaseBody(contract.AgentActive)), nil
	case callHeartbeat:
		return answer(http.StatusOK, leaseBody(contract.AgentActive)), nil
	case callDrain:
		return answer(http.StatusOK, leaseBody(contract.AgentDraining)), nil
	case callDeregister:
		return answer(http.StatusNoContent, ""), nil
	}
	return nil, fmt.Errorf("unexpected call %s", call)
}

func (f *fakeRegistry) record(c registryCall) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, old := range f.calls {
		if old.Call == c.Call {
			n++
		}
	}
	f.calls = append(f.calls, c)
	return n
}

// leaseBody returns a lease of 30 s whose heartbeats are 10 s apart.
func leaseBody(state contract.AgentState) string {
	lease, err := json.Marshal(contract.Lease{
		AgentID: "word_counter", Instance: "i1", State: state, HeartbeatS: 10,
		Granted: contract.Match{Intent: []string{"count_words"}, Domains: []string{"text"}}, Refused: []string{},
	})
	if err != nil {
		panic(err)
	}
	return string(lease)
}

// received returns the calls of one kind; "" = all.
func (f *fakeRegistry) received(call string) []registryCall {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.calls), func(c registryCall) bool { return call != "" && c.Call != call })
}

// sequence returns the names of all calls in order, without repetitions.
func (f *fakeRegistry) sequence() []string {
	var names []string
	for _, c := range f.received("") {
		names = append(names, c.Call)
	}
	return slices.Compact(names)
}

// keepRegistered keeps an agent registered for the duration and returns the error of KeepRegistered.
func (f *fakeRegistry) keepRegistered(t testing.TB, log io.Writer, d time.Duration, change ...func(*agentkit.Config)) error {
	t.Helper()
	return f.keepAgentRegistered(t, f.agent(t, log, countWords, change...), d)
}

func (f *fakeRegistry) keepAgentRegistered(t testing.TB, a *agentkit.Agent, d time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	return a.KeepRegistered(ctx, func(context.Context) error {
		f.record(registryCall{Call: callShutdown, At: time.Since(f.began)})
		return nil
	})
}

func (f *fakeRegistry) agent(t testing.TB, log io.Writer, work agentkit.Work, change ...func(*agentkit.Config)) *agentkit.Agent {
	t.Helper()
	return newAgent(t, nil, log, work, append([]func(*agentkit.Config){func(c *agentkit.Config) {
		c.RouterURL, c.Client = "http://router.example/", &http.Client{Transport: f}
		c.Registration = contract.Registration{
			Instance: "i1",
			Match:    contract.Match{Intent: []string{"count_words"}, Domains: []string{"text"}},
			Endpoint: contract.Endpoint{URL: "http://agent.example:9101/"},
		}
	}}, change...)...)
}

// problemReply returns a problem document like the router's.
func problemReply(status int, code contract.Code, title, detail string, details ...contract.ErrorDetail) *http.Response {
	body := object{"type": "https://router.example/problems/" + string(code), "title": title, "status": status, "code": code, "detail": detail, "request_id": "r1"}
	if len(details) > 0 {
		body = body.with("errors", details)
	}
	resp := answer(status, body.json())
	resp.Header.Set("Content-Type", "application/problem+json")
	return resp
}

// errNoConnection is the error of a call without a connection.
var errNoConnection = errors.New("connection refused")

// replyTo answers the calls of one kind with the statuses in turn, then normally. 200 is the normal
// reply, and 0 is no connection.
func replyTo(call string, statuses ...int) func(int, string, *http.Request) (*http.Response, error) {
	return func(n int, got string, _ *http.Request) (*http.Response, error) {
		switch {
		case got != call || n >= len(statuses) || statuses[n] == http.StatusOK:
			return nil, nil
		case statuses[n] == 0:
			return nil, errNoConnection
		}
		return problemReply(statuses[n], "", http.StatusText(statuses[n]), ""), nil
	}
}

// noReply blocks until the agent ends the request.
func noReply(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}
