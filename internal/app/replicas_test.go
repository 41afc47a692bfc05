package app

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/rest"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// startReplica starts a router with a data directory of its own on a shared store.
func startReplica(t *testing.T, store *teststore.Server, registry string) *testServer {
	t.Helper()
	lookup := func(name string) (string, bool) {
		return "dGVzdHMgZW5jcnlwdCB3aXRoIHRoaXMga2V5IG9ubHk=", name == "CONTENT_KEY"
	}
	return startServerIn(t, lookup, registry, func(c *Config) {
		c.Store.URL, c.Store.Encryption.KeyEnv = store.URL, "CONTENT_KEY"
	})
}

// awaitReplicas waits until the readiness reports the number of live replicas.
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
		t.Errorf("both replicas have the name %s", x)
	}
	embedded := startServer(t, guestGrants)
	embedded.awaitReplicas(1)
}

// TestReplicas_RouteToAgentsOfEachOther registers an agent at one replica and routes
// requests to it through the other one.
func TestReplicas_RouteToAgentsOfEachOther(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	url, calls := countingAgent(t)
	a, b := startReplica(t, srv, guestGrants), startReplica(t, srv, guestGrants)
	a.register("guest", "one", url)
	b.awaitChosen("guest")
	if calls.Load() == 0 {
		t.Error("the agent got no task from the other replica")
	}
	if got := a.do(call{method: "DELETE", path: "/api/v1/agents/guest"}); got.status != http.StatusNoContent {
		t.Fatalf("deregister: %d %s", got.status, got.body)
	}
	b.awaitChosen("")
}

// TestReplica_SurvivesRestartOfItsStore restarts the server of the store, whose streams in
// memory are gone then: the router shows it, works as before afterwards, and emits events.
func TestReplica_SurvivesRestartOfItsStore(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), testkit.FreePort(t))
	url, _ := countingAgent(t)
	s := startReplica(t, srv, "clients:\n"+entry("counter", "count_words", "text", url))
	events := func() string { return testkit.Receive(t, s.readEvents("", s.submit(""))) }
	if got := events(); !strings.Contains(got, "event: decision") || !strings.Contains(got, "event: final") {
		t.Fatalf("before: got events\n%s\nwant all", got)
	}
	srv.Stop()
	testkit.Eventually(t, "the router is not ready", func() bool { return strings.Contains(s.get("/readyz"), `"status":"degraded"`) })
	srv.StartAgain(t)
	testkit.Eventually(t, "the router is ready", func() bool { return strings.Contains(s.get("/readyz"), `"status":"ready"`) })
	if got := events(); !strings.Contains(got, "event: decision") || !strings.Contains(got, "event: final") {
		t.Errorf("after the restart: got events\n%s\nwant all", got)
	}
	if got := strings.Count(s.log.String(), "events are dropped"); got > 1 {
		t.Errorf("got %d warnings about dropped events, want at most one:\n%s", got, s.log.String())
	}
}
