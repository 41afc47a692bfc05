package app

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
)

const countWords = `{"content":{"prompt":"count words of this text","inputs":{"author":"ann@example.com"}},"options":{"mode":"async","timeout_ms":60000}}`

// submit posts an asynchronous request and returns its id.
func (s *testServer) submit(token string) string {
	s.t.Helper()
	got := s.do(call{method: "POST", path: "/api/v1/route", token: token, body: countWords})
	var resp contract.Response
	if err := json.Unmarshal(got.body, &resp); err != nil || got.status != http.StatusAccepted {
		s.t.Fatalf("got %d %s, want 202", got.status, got.body)
	}
	return resp.RequestID
}

// state returns the request as seen by its caller.
func (s *testServer) state(token, id string) *contract.Response {
	s.t.Helper()
	got := s.do(call{method: "GET", path: "/api/v1/requests/" + id, token: token})
	var resp contract.Response
	if err := json.Unmarshal(got.body, &resp); err != nil || got.status != http.StatusOK {
		s.t.Fatalf("got %d %s, want 200", got.status, got.body)
	}
	return &resp
}

func (s *testServer) end(token, id string) *contract.Response {
	s.t.Helper()
	var resp *contract.Response
	testkit.Eventually(s.t, "the request has ended", func() bool {
		resp = s.state(token, id)
		return resp.Status.Terminal()
	})
	return resp
}

// countingAgent returns an agent that accepts every task and counts them.
func countingAgent(t *testing.T) (url string, calls *atomic.Int64) {
	t.Helper()
	calls = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		var task contract.Task
		_ = json.NewDecoder(r.Body).Decode(&task)
		_ = json.NewEncoder(w).Encode(contract.Result{TaskID: task.TaskID, Status: contract.ResultSuccess})
	}))
	t.Cleanup(server.Close)
	return server.URL, calls
}

// An asynchronous request that waits for its agent is checked with the registry in use when the
// task is sent.
func TestServer_RechecksAgentsOfWaitingRequests(t *testing.T) {
	down := refusing
	for _, tt := range []struct {
		name   string
		before func(up string) string // the clients of the registry while the request waits
		after  func(up string) string // the clients afterwards
		status contract.Status
		agent  string
		detail string // of the last error
	}{
		{
			"removed",
			func(string) string { return entry("slow", "count_words", "text", down) },
			func(up string) string { return entry("other", "translate", "prose", up) },
			contract.StatusFailed, "slow", "is not registered any more",
		},
		{
			"moved",
			func(string) string { return entry("slow", "count_words", "text", down) },
			func(up string) string { return entry("slow", "count_words", "text", up) },
			contract.StatusCompleted, "slow", "",
		},
		{
			"needs another scope",
			func(string) string { return entry("slow", "count_words", "text", down) },
			func(up string) string {
				return entry("slow", "count_words", "text", up, ", requires: { scopes: [vip] }")
			},
			contract.StatusFailed, "slow", "vip",
		},
		{
			"serves other tenants",
			func(string) string { return entry("slow", "count_words", "text", down) },
			func(up string) string {
				return entry("slow", "count_words", "text", up, ", requires: { tenants: [other] }")
			},
			contract.StatusFailed, "slow", "tenant",
		},
		{
			"does not accept the data of the inputs",
			func(string) string { return entry("slow", "count_words", "text", down) },
			func(up string) string {
				return entry("slow", "count_words", "text", up, ", accepts_data_classes: none")
			},
			contract.StatusFailed, "slow", "does not accept email",
		},
		{
			"serves another intent",
			func(string) string { return entry("slow", "count_words", "text", down) },
			func(up string) string { return entry("slow", "translate", "prose", up) },
			contract.StatusFailed, "slow", "any more",
		},
		{
			"failover to a standby",
			func(string) string {
				return entry("slow", "count_words", "text", down) + entry("spare", "count_words", "text", down)
			},
			func(up string) string { return entry("spare", "count_words", "text", up) },
			contract.StatusCompleted, "spare", "",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			up, calls := countingAgent(t)
			m := newTokenIssuer()
			token := m.token("alice", everyScope+" agent:*", map[string]any{"tenant": "acme"})
			s := startGuarded(t, m, "clients:\n"+tt.before(up))
			id := s.submit(token)
			testkit.Eventually(t, "the request is executed", func() bool { return s.state(token, id).Status == contract.StatusRunning })
			s.write("clients:\n" + tt.after(up))
			if err := s.reload(); err != nil {
				t.Fatal(err)
			}
			got := s.end(token, id)
			if got.Status != tt.status || len(got.Tasks) != 1 || got.Tasks[0].AgentID != tt.agent {
				t.Fatalf("got %s with %s, want %s by %s", got.Status, encode(got.Tasks), tt.status, tt.agent)
			}
			task := &got.Tasks[0]
			if tt.detail != "" && (task.Error == nil || task.Error.Code != contract.TaskAgentUnavailable || !strings.Contains(task.Error.Detail, tt.detail)) {
				t.Errorf("got error %+v, want agent_unavailable with %q", task.Error, tt.detail)
			}
			if want := tt.status == contract.StatusCompleted; (calls.Load() > 0) != want {
				t.Errorf("got %d tasks at the agent, want one: %v", calls.Load(), want)
			}
		})
	}
}

// A request that is resumed after a restart is checked with the registry of the new process.
func TestServer_RechecksAgentsAfterRestart(t *testing.T) {
	dir := t.TempDir()
	up, calls := countingAgent(t)
	keep := func(c *config.Config) { c.DataDir = dir }
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	first := startOnce(ctx, t, "clients:\n"+entry("slow", "count_words", "text", refusing), keep)
	first.t = t
	id := first.submit("")
	testkit.Eventually(t, "the request is executed", func() bool { return first.state("", id).Status == contract.StatusRunning })
	stop()
	if err := first.Wait(); err != nil {
		t.Fatal(err)
	}
	second := startServer(t, "clients:\n"+entry("slow", "count_words", "text", up, ", requires: { data_classes: [email] }"), keep)
	got := second.end("", id)
	if got.Status != contract.StatusFailed || !strings.Contains(encode(got.Tasks), "email") || calls.Load() > 0 {
		t.Errorf("got %s with %s after %d calls, want failed because of the data class", got.Status, encode(got.Tasks), calls.Load())
	}
}

// The registry may also change between two attempts of a synchronous request, before a retry and
// before a failover.
func TestServer_RechecksAgentsBeforeRetryAndFailover(t *testing.T) {
	t.Parallel()
	begun, goOn := make(chan struct{}, 4), make(chan struct{})
	var calls atomic.Int64
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) > 1 {
			return
		}
		begun <- struct{}{}
		<-goOn
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(busy.Close)
	up, spareCalls := countingAgent(t)
	idempotent := "  slow: { match: { intent: [count_words], domains: [text] }, endpoint: { protocol: http, url: \"" + busy.URL + "\", idempotent: true } }\n"
	s := startServer(t, "clients:\n"+idempotent+entry("spare", "count_words", "text", up))
	done := make(chan []byte, 1)
	go func() {
		_, body := s.post(context.WithoutCancel(t.Context()), `{"content":{"prompt":"count words of this text"}}`)
		done <- body
	}()
	testkit.Receive(t, begun)
	s.write("clients:\n" + entry("other", "translate", "prose", up))
	if err := s.reload(); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	var resp contract.Response
	if err := json.Unmarshal(testkit.Receive(t, done), &resp); err != nil {
		t.Fatal(err)
	}
	text := encode(resp.Tasks)
	if resp.Status != contract.StatusFailed || !strings.Contains(text, "slow is not registered any more") || !strings.Contains(text, "spare is not registered any more") {
		t.Errorf("got %s with %s, want both agents excluded", resp.Status, text)
	}
	if calls.Load() != 1 || spareCalls.Load() != 0 {
		t.Errorf("got %d and %d calls of the agents, want only the first one", calls.Load(), spareCalls.Load())
	}
}
