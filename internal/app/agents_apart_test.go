package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
)

// registeredAgent is an agent that registered itself and has an open task.
type registeredAgent struct {
	id      string
	token   string // for its registration
	request string
	task    string
	grant   string // token of the callback of its task
}

// startRegisteredAgents registers agents with one intent each, and sends each a task.
func startRegisteredAgents(t *testing.T, m tokenIssuer, count int) (*testServer, []registeredAgent) {
	t.Helper()
	later := &laterAgent{tasks: map[string]contract.Callback{}}
	web := httptest.NewServer(later)
	t.Cleanup(web.Close)
	words := []string{"invoices", "parcels", "lawns", "kittens", "violins"}
	var registry strings.Builder
	registry.WriteString("clients: {}\ngrants:\n")
	agents := make([]registeredAgent, count)
	for i := range agents {
		agents[i].id = words[i] + "_agent"
		agents[i].token = m.token(agents[i].id, "agents:register tasks:work", nil)
		fmt.Fprintf(&registry, "  %s: { intents: [check_%s], domains: [%s] }\n", agents[i].id, words[i], words[i])
	}
	s := startGuarded(t, m, registry.String(), func(c *config.Config) {
		c.Limits.Register.RPS = "0"
		c.Dispatch.AllowPrivate, c.Dispatch.AllowPlainHTTP = config.StringList{"127.0.0.0/8"}, true
	})
	for i := range agents {
		a, word := &agents[i], words[i]
		got := s.do(call{method: "PUT", path: "/api/v1/agents/" + a.id, token: a.token, body: fmt.Sprintf(
			`{"match":{"intent":["check_%s"],"domains":[%q]},"endpoint":{"protocol":"http","url":%q}}`, word, word, web.URL)})
		if got.status != http.StatusCreated {
			t.Fatalf("register %s: %d %s", a.id, got.status, got.body)
		}
		a.openTask(s, later, m.token("alice", everyScope+" agent:"+a.id, nil), word)
	}
	return s, agents
}

// openTask submits requests until the agent has the task of one.
func (a *registeredAgent) openTask(s *testServer, later *laterAgent, alice, word string) {
	s.t.Helper()
	testkit.Eventually(s.t, a.id+" has a task", func() bool {
		var resp contract.Response
		if a.request == "" {
			got := s.do(call{method: "POST", path: "/api/v1/route", token: alice, body: fmt.Sprintf(
				`{"content":{"prompt":"please check %s"},"options":{"mode":"async"}}`, word)})
			if got.status != http.StatusAccepted || json.Unmarshal(got.body, &resp) != nil {
				return false
			}
			a.request = resp.RequestID
		}
		got := s.do(call{method: "GET", path: "/api/v1/requests/" + a.request, token: alice})
		if json.Unmarshal(got.body, &resp) != nil || resp.Status.Terminal() {
			a.request = "" // it was submitted before the registration took effect
			return false
		}
		if len(resp.Tasks) == 0 {
			return false
		}
		a.task = resp.Tasks[0].TaskID
		a.grant = later.callback(a.task)
		return a.grant != ""
	})
}

// An agent may not use the task or the registration of another one.
func TestAgents_RejectsOperationsOnOtherAgents(t *testing.T) {
	t.Parallel()
	operations := []struct {
		method, path, body string // AGENT and TASK are those of the other agent
		callback           bool   // with the token of its own task
		own                int    // status for the agent itself
	}{
		{"POST", "/tasks/TASK/progress", `{"message":"half"}`, true, http.StatusNoContent},
		{"POST", "/tasks/TASK/heartbeat", "", true, http.StatusNotFound},  // it was not pulled
		{"POST", "/agents/AGENT/lease", `{}`, false, http.StatusConflict}, // it does not pull
		{"POST", "/agents/AGENT/heartbeat", `{}`, false, http.StatusOK},
		{"POST", "/agents/AGENT/drain", `{}`, false, http.StatusOK},
		{"POST", "/tasks/TASK/result", `{"task_id":"TASK","status":"success"}`, true, http.StatusOK},
		{"PUT", "/agents/AGENT", guestRegistration, false, http.StatusOK},
		{"DELETE", "/agents/AGENT", "", false, http.StatusNoContent},
	}
	s, agents := startRegisteredAgents(t, newTokenIssuer(), 5)
	do := func(i int, as, of *registeredAgent) apiResponse {
		op := operations[i]
		fill := strings.NewReplacer("AGENT", of.id, "TASK", of.task)
		token := as.token
		if op.callback {
			token = as.grant
		}
		return s.do(call{method: op.method, path: "/api/v1" + fill.Replace(op.path), token: token, body: fill.Replace(op.body)})
	}
	for i, op := range operations {
		for a := range agents {
			for b := range agents {
				if a == b {
					continue
				}
				if got := do(i, &agents[a], &agents[b]); got.status != http.StatusForbidden && got.status != http.StatusNotFound {
					t.Errorf("%s as %s for %s: got %d %s", op.path, agents[a].id, agents[b].id, got.status, got.body)
				}
			}
		}
	}
	// Rejected operations have changed nothing, and the agents may perform all of them.
	for a := range agents {
		for i, op := range operations {
			if got := do(i, &agents[a], &agents[a]); got.status != op.own {
				t.Errorf("%s as %s: got %d %s, want %d", op.path, agents[a].id, got.status, got.body, op.own)
			}
		}
	}
}
