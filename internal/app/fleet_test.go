package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/rest"
	"github.com/caprouter/caprouter/internal/testkit"
)

const guestGrants = "clients: { payer: { match: { intent: [pay_invoice], domains: [money] } } }\n" +
	"grants: { guest: { intents: [count_words], domains: [prose] } }\n"

const countProse = "please count words of this prose"

// register registers an instance of the agent at the address, and returns its lease.
func (s *testServer) register(agentID, instance, url string, change ...func(*contract.Registration)) contract.Lease {
	s.t.Helper()
	r := contract.Registration{
		Instance: instance, Match: contract.Match{Intent: []string{"count_words"}, Domains: []string{"prose"}},
		Endpoint: contract.Endpoint{Protocol: contract.ProtocolHTTP, URL: url},
	}
	for _, c := range change {
		c(&r)
	}
	got := s.do(call{method: "PUT", path: "/api/v1/agents/" + agentID, body: encode(r)})
	var lease contract.Lease
	if err := json.Unmarshal(got.body, &lease); err != nil || got.status >= 300 {
		s.t.Fatalf("register %s/%s: %d %s", agentID, instance, got.status, got.body)
	}
	return lease
}

// routeProse routes the prompt and returns the response.
func (s *testServer) routeProse() *contract.Response {
	s.t.Helper()
	got := s.do(call{method: "POST", path: "/api/v1/route", body: fmt.Sprintf(`{"content":{"prompt":%q}}`, countProse)})
	if got.status == http.StatusUnprocessableEntity { // a problem, whose status is a number
		var refused rest.UnsupportedProblem
		if err := json.Unmarshal(got.body, &refused); err != nil {
			s.t.Fatalf("route: %v in %s", err, got.body)
		}
		return &contract.Response{Status: refused.Outcome, Decision: refused.Decision}
	}
	var resp contract.Response
	if err := json.Unmarshal(got.body, &resp); err != nil || resp.Decision == nil {
		s.t.Fatalf("route: %d %s", got.status, got.body)
	}
	return &resp
}

// awaitChosen waits until the prompt is routed to the agents; "" = none.
func (s *testServer) awaitChosen(want string) *contract.Response {
	s.t.Helper()
	var resp *contract.Response
	testkit.Eventually(s.t, "the request is routed to "+want, func() bool {
		resp = s.routeProse()
		return strings.Join(resp.Decision.Chosen, ",") == want
	})
	return resp
}

func TestFleet_RoutesToRegisteredAgents(t *testing.T) {
	t.Parallel()
	url, calls := countingAgent(t)
	s := startServer(t, guestGrants)
	if resp := s.routeProse(); len(resp.Decision.Chosen) != 0 {
		t.Fatalf("got agents %v chosen before the registration, want none", resp.Decision.Chosen)
	}
	lease := s.register("guest", "one", url, func(r *contract.Registration) {
		r.Match.Intent = append(r.Match.Intent, "pay_invoice")
		r.LeaseTTLS = contract.MinLeaseTTLS
	})
	if got := strings.Join(lease.Refused, ""); got != "intent pay_invoice is not granted" {
		t.Errorf("got %q rejected, want the intent that is not granted", got)
	}
	resp := s.awaitChosen("guest")
	if resp.Status != contract.StatusCompleted || calls.Load() == 0 {
		t.Errorf("got %s after %d calls, want the result of the agent", resp.Status, calls.Load())
	}
	if resp.Decision.FleetRevision == "" {
		t.Error("got a decision without a revision of the fleet")
	}
	s.awaitChosen("") // its lease ends without a heartbeat
	got := s.do(call{method: "GET", path: "/api/v1/agents/guest"})
	for _, want := range []string{`"state":"expired"`, `"origin":"registration"`, `"refused":["intent pay_invoice is not granted"]`} {
		if !strings.Contains(string(got.body), want) {
			t.Errorf("GET /agents/guest: got %s, want %s", got.body, want)
		}
	}
	if got := s.do(call{method: "POST", path: "/api/v1/agents/guest/heartbeat", body: `{"instance":"one"}`}); got.status != http.StatusOK {
		t.Errorf("late heartbeat: got %d %s", got.status, got.body)
	}
	s.awaitChosen("guest")
	s.do(call{method: "DELETE", path: "/api/v1/agents/guest"})
	s.awaitChosen("")
}

// An agent that declares more than its grant, with examples for it, gets no request for undeclared
// labels, even if no other agent serves them.
func TestFleet_IgnoresDeclarationsBeyondGrant(t *testing.T) {
	t.Parallel()
	url, calls := countingAgent(t)
	s := startServer(t, guestGrants)
	s.register("guest", "one", url, func(r *contract.Registration) {
		r.Match.Intent = append(r.Match.Intent, "pay_invoice", "book_flight")
		r.Match.Domains = append(r.Match.Domains, "money", "travel")
		r.Examples = map[string][]string{"pay_invoice": {"pay the invoice"}, "book_flight": {"book a flight for travel"}}
	})
	s.awaitChosen("guest")
	before := calls.Load()
	for _, prompt := range []string{"pay invoice with this money", "pay the invoice", "book a flight for travel"} {
		got := s.do(call{method: "POST", path: "/api/v1/route", body: fmt.Sprintf(`{"content":{"prompt":%q}}`, prompt)})
		var answer struct {
			Decision contract.Decision `json:"decision"`
		}
		if err := json.Unmarshal(got.body, &answer); err != nil {
			t.Fatalf("%s: %d %s", prompt, got.status, got.body)
		}
		if slices.Contains(answer.Decision.Chosen, "guest") {
			t.Errorf("%s: got chosen %v, want another agent than the one without a grant", prompt, answer.Decision.Chosen)
		}
	}
	if calls.Load() != before {
		t.Errorf("got %d calls of the agent, want none", calls.Load()-before)
	}
}

// If one of two instances is down, no request fails; if all are down, the response states it.
func TestFleet_FailsOverBetweenInstances(t *testing.T) {
	t.Parallel()
	url, calls := countingAgent(t)
	s := startServer(t, guestGrants)
	s.register("guest", "alive", url)
	s.register("guest", "dead", "http://"+testkit.RefusingAddress+"/")
	s.awaitChosen("guest")
	before := calls.Load()
	const requests = 50
	for range requests {
		if resp := s.routeProse(); resp.Status != contract.StatusCompleted {
			t.Fatalf("got %s %+v, want every request completed", resp.Status, resp.Tasks)
		}
	}
	if got := calls.Load() - before; got != requests {
		t.Errorf("got %d calls of the agent for %d requests", got, requests)
	}
	got := s.do(call{method: "GET", path: "/api/v1/agents/guest"})
	if !strings.Contains(string(got.body), `"state":"degraded"`) {
		t.Errorf("got %s, want a degraded agent, because one of its breakers is open", got.body)
	}
	s.do(call{method: "DELETE", path: "/api/v1/agents/guest?instance=alive"})
	testkit.Eventually(t, "all instances are down", func() bool { return s.routeProse().Status == contract.StatusFailed })
	resp := s.routeProse()
	if resp.Status != contract.StatusFailed || len(resp.Tasks) != 1 || resp.Tasks[0].Error == nil || resp.Tasks[0].Error.Code != contract.TaskAgentUnavailable {
		t.Errorf("got %s %+v, want a failed task with agent_unavailable", resp.Status, resp.Tasks)
	}
}

// A declaration in the operator's file has precedence over a registration.
func TestFleet_FileHasPrecedence(t *testing.T) {
	t.Parallel()
	registered, _ := countingAgent(t)
	declared, calls := countingAgent(t)
	s := startServer(t, guestGrants)
	s.register("guest", "one", registered)
	s.awaitChosen("guest")
	s.write("clients:\n" + entry("guest", "count_words", "prose", declared))
	testkit.Eventually(t, "the address of the file is used", func() bool {
		s.routeProse()
		return calls.Load() > 0
	})
	got := s.do(call{method: "POST", path: "/api/v1/agents/guest/heartbeat", body: `{"instance":"one"}`})
	if got.status != http.StatusConflict {
		t.Errorf("heartbeat: got %d %s, want 409", got.status, got.body)
	}
	s.write(guestGrants)
	testkit.Eventually(t, "the registration is in use again", func() bool {
		return s.do(call{method: "POST", path: "/api/v1/agents/guest/heartbeat", body: `{"instance":"one"}`}).status == http.StatusOK
	})
}

// Agents without new labels or examples join and leave under load: no request fails, and the
// catalogue keeps its version, so no model is trained and cached classifications stay valid.
func TestFleet_ChangesUnderLoadWithoutTraining(t *testing.T) {
	const agents, requests = 60, 200
	url, _ := countingAgent(t)
	var file strings.Builder
	file.WriteString("clients:\n" + entry("counter", "count_words", "prose", url) + "grants:\n")
	for i := range agents {
		fmt.Fprintf(&file, "  agent%d: { intents: [count_words], domains: [prose] }\n", i)
	}
	s := startServer(t, file.String(), func(c *config.Config) { c.Limits.Register.RPS = "0" })
	version := s.routeProse().Decision.RegistryVersion
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range agents {
			s.register(fmt.Sprint("agent", i), "one", url)
			if i%2 == 0 {
				s.do(call{method: "DELETE", path: fmt.Sprint("/api/v1/agents/agent", i)})
			}
		}
	})
	for range requests {
		if resp := s.routeProse(); resp.Status != contract.StatusCompleted || resp.Decision.RegistryVersion != version {
			t.Fatalf("got %s with version %s, want completed with %s", resp.Status, resp.Decision.RegistryVersion, version)
		}
	}
	wg.Wait()
	testkit.Eventually(t, "the remaining agents are listed", func() bool {
		got := s.do(call{method: "GET", path: "/api/v1/agents"})
		return strings.Count(string(got.body), `"origin":"registration"`) == agents/2
	})
	if n := strings.Count(s.log.String(), "examples learned"); n > 1 {
		t.Errorf("got %d trainings, want the first one only", n)
	}
}

// Every change of a registration is in the audit log; heartbeats are not.
func TestFleet_ChangesAreAudited(t *testing.T) {
	m := newTokenIssuer()
	var dir string
	s := startGuarded(t, m, guestGrants, func(c *config.Config) { dir, c.Store.Sync = c.DataDir, "always" })
	guest, root := m.token("guest", "agents:register", nil), m.token("root", "admin", nil)
	for _, c := range []call{
		{method: "PUT", path: "", token: guest, body: guestRegistration},
		{method: "POST", path: "/heartbeat", token: guest},
		{method: "POST", path: "/disable", token: root},
		{method: "POST", path: "/enable", token: root},
		{method: "POST", path: "/drain", token: guest},
		{method: "DELETE", path: "", token: guest},
	} {
		c.path = "/api/v1/agents/guest" + c.path
		if got := s.do(c); got.status >= 300 {
			t.Fatalf("%s %s: %d %s", c.method, c.path, got.status, got.body)
		}
	}
	log, err := audit.OpenCopy(t.Context(), dir, s.core.persistence.contentKeys)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var got []string
	err = log.Walk(t.Context(), func(rec *audit.Record) {
		if rec.Kind == audit.KindAdmin && len(rec.Agents) > 0 {
			got = append(got, strings.TrimSpace(string(rec.Event)+" "+rec.Subject+" "+rec.Agents[0]+" "+rec.Note))
		}
	})
	want := []string{"register guest guest default", "disable root guest", "enable root guest", "drain guest guest default", "leave guest guest default"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("admin records, error %v (-want +got):\n%s", err, diff)
	}
}
