package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/rest"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// startReplica starts a router with its own data directory on a shared store.
func startReplica(t *testing.T, store *teststore.Server, registry string) *testServer {
	t.Helper()
	lookup := func(name string) (string, bool) {
		return "dGVzdHMgZW5jcnlwdCB3aXRoIHRoaXMga2V5IG9ubHk=", name == "CONTENT_KEY"
	}
	return startServerIn(t, lookup, registry, func(c *config.Config) {
		c.Store.URL, c.Store.Encryption.KeyEnv = store.URL, "CONTENT_KEY"
	})
}

// awaitReplicas waits until the readiness reports this number of live replicas.
func (s *testServer) awaitReplicas(want int) {
	s.t.Helper()
	testkit.Eventually(s.t, "the replicas are live", func() bool {
		var ready rest.Readiness
		if err := json.Unmarshal([]byte(s.get("/readyz")), &ready); err != nil {
			s.t.Fatal(err)
		}
		return ready.Store.Replicas == want
	})
}

func TestReplicas_ShareStore(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	a, b := startReplica(t, srv, guestGrants), startReplica(t, srv, guestGrants)
	a.awaitReplicas(2)
	b.awaitReplicas(2)
	if x, y := a.core.persistence.members.Name(), b.core.persistence.members.Name(); x == y {
		t.Errorf("got the name %s for both replicas", x)
	}
	embedded := startServer(t, guestGrants)
	embedded.awaitReplicas(1)
}

// TestReplicas_RouteToAgentsOfEachOther registers an agent at one replica and routes requests to it
// through the other one.
func TestReplicas_RouteToAgentsOfEachOther(t *testing.T) {
	t.Parallel()
	srv := teststore.Serve(t, t.TempDir(), -1)
	url, calls := countingAgent(t)
	a, b := startReplica(t, srv, guestGrants), startReplica(t, srv, guestGrants)
	a.register("guest", "one", url)
	b.awaitChosen("guest")
	if calls.Load() == 0 {
		t.Error("got no task at the agent from the other replica")
	}
	if got := a.do(call{method: "DELETE", path: "/api/v1/agents/guest"}); got.status != http.StatusNoContent {
		t.Fatalf("deregister: %d %s", got.status, got.body)
	}
	b.awaitChosen("")
}

// TestReplica_SurvivesRestartOfItsStore restarts the store server, which loses its streams in
// memory: the router reports it, recovers afterwards, and emits events.
func TestReplica_SurvivesRestartOfItsStore(t *testing.T) {
	t.Parallel()
	srv := teststore.Serve(t, t.TempDir(), testkit.FreePort(t))
	url, _ := countingAgent(t)
	s := startReplica(t, srv, "clients:\n"+entry("counter", "count_words", "text", url))
	hasAllEvents := func() bool {
		got := testkit.Receive(t, s.readEvents("", s.submit("")))
		return strings.Contains(got, "event: decision") && strings.Contains(got, "event: final")
	}
	// On a busy machine an append may take longer than its limit, and the event is lost.
	testkit.Eventually(t, "a request has all events", hasAllEvents)
	countWarnings := func() int { return strings.Count(s.log.String(), "events are dropped") }
	before := countWarnings()
	srv.Stop()
	testkit.Eventually(t, "the router is not ready", func() bool { return strings.Contains(s.get("/readyz"), `"status":"degraded"`) })
	srv.StartAgain(t)
	testkit.Eventually(t, "the router is ready", func() bool { return strings.Contains(s.get("/readyz"), `"status":"ready"`) })
	// The first requests may lose events, which does not affect readiness until then.
	testkit.Eventually(t, "a request has all events again", hasAllEvents)
	if got := countWarnings() - before; got > 1 {
		t.Errorf("got %d warnings about dropped events, want at most one:\n%s", got, s.log.String())
	}
}

// A replica continues the orchestration of another one after a decision, and cancels one that
// another replica executes.
func TestReplicas_ShareOrchestrations(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	held := make(chan struct{})
	called := make(chan struct{}, 4)
	tools := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var action contract.Action
		if json.NewDecoder(r.Body).Decode(&action) == nil && strings.HasSuffix(action.Action, "hold") {
			called <- struct{}{}
			select {
			case <-held:
			case <-r.Context().Done():
			}
		}
		_, _ = io.WriteString(w, `{"type":"text","content":"done","mime_type":"text/plain"}`)
	}))
	t.Cleanup(tools.Close)
	t.Cleanup(func() { close(held) })
	file := writeFile(t, "mcp.json", fmt.Sprintf(`{"plugins":[{"id":"counter","endpoint":%q,"actions":[{"name":"ask"},{"name":"hold"}]}]}`, tools.URL))
	rules := writeFile(t, "policy.yaml", runPolicy)
	start := func() *testServer {
		lookup := func(name string) (string, bool) {
			return "dGVzdHMgZW5jcnlwdCB3aXRoIHRoaXMga2V5IG9ubHk=", name == "CONTENT_KEY"
		}
		return startServerIn(t, lookup, "clients: {}\n", func(c *config.Config) {
			c.Store.URL, c.Store.Encryption.KeyEnv = srv.URL, "CONTENT_KEY"
			c.MCP.File, c.Orchestrator.PolicyFile = file, rules
		})
	}
	a, b := start(), start()
	a.awaitReplicas(2)
	post := func(s *testServer, path, body string) contract.Orchestration {
		t.Helper()
		got := s.do(call{method: "POST", path: path, body: body, header: http.Header{"Prefer": {"respond-async"}}})
		var run contract.Orchestration
		if err := json.Unmarshal(got.body, &run); err != nil || got.status >= 300 {
			t.Fatalf("%s: got %d %s", path, got.status, got.body)
		}
		return run
	}
	await := func(s *testServer, id string, status contract.OrchestrationStatus) {
		t.Helper()
		testkit.Eventually(t, "the run is "+string(status), func() bool {
			var run contract.Orchestration
			return json.Unmarshal([]byte(s.get("/api/v1/orchestrations/"+id)), &run) == nil && run.Status == status
		})
	}
	goal := func(tool string) string {
		return fmt.Sprintf(`{"goal":"g","constraints":{"plan":{"steps":[{"id":"a","action":"counter.%s","success_criteria":[{"contains":"done"}]}]}}}`, tool)
	}

	waiting := post(a, "/api/v1/orchestrations", goal("ask")).OrchestrationID
	await(b, waiting, contract.OrchestrationWaiting)
	post(b, "/api/v1/orchestrations/"+waiting+"/approve", `{"step":"a","decision":"approve"}`)
	await(a, waiting, contract.OrchestrationDone)

	running := post(a, "/api/v1/orchestrations", goal("hold")).OrchestrationID
	testkit.Receive(t, called)
	post(b, "/api/v1/orchestrations/"+running+"/cancel", "")
	await(b, running, contract.OrchestrationFailed)
}
