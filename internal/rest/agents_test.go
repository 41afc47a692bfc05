package rest

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
)

// getAs decodes the response of path for the caller into v and returns the status.
func getAs(t *testing.T, core *fakeBackend, caller *contract.Caller, path string, v any) int {
	t.Helper()
	w := httptest.NewRecorder()
	newServer(t, httpserver.Config{Auth: staticAuth{caller: caller}}, core).ServeHTTP(w, localRequest("GET", path, ""))
	if w.Code == 200 {
		if err := json.Unmarshal(w.Body.Bytes(), v); err != nil {
			t.Fatal(err)
		}
	}
	return w.Code
}

func TestHandleAgent_ReportsState(t *testing.T) {
	until := time.Date(2026, 1, 2, 16, 4, 5, 0, time.FixedZone("", 3600))
	cases := []struct {
		name      string
		now       AgentState
		state     contract.AgentState
		reasons   string
		breaker   string
		openUntil bool
	}{
		{"idle", AgentState{}, "active", "", "closed", false},
		{"busy", AgentState{Breaker: "closed", InFlight: 1}, "active", "", "closed", false},
		{"full", AgentState{InFlight: 2}, "active", "at_capacity", "closed", false},
		{"broken", AgentState{Breaker: "open", OpenUntil: until}, "degraded", "breaker_open", "open", true},
		{"breaker open, at capacity", AgentState{Breaker: "open", OpenUntil: until, InFlight: 2}, "degraded", "breaker_open at_capacity", "open", true},
		{"breaker half open", AgentState{Breaker: "half_open"}, "active", "", "half_open", false},
		{"degraded", AgentState{State: contract.AgentDegraded}, "degraded", "", "closed", false},
		{"draining, at capacity", AgentState{State: contract.AgentDraining, InFlight: 2}, "draining", "at_capacity", "closed", false},
		{"expired", AgentState{State: contract.AgentExpired}, "expired", "", "closed", false},
		{"disabled", AgentState{State: contract.AgentDisabled, Breaker: "open", OpenUntil: until}, "disabled", "breaker_open", "open", true},
	}
	caller := &contract.Caller{Scopes: []string{"agents:read", "agent:quality_agent"}}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var got Agent
			core := &fakeBackend{states: map[string]AgentState{"quality_agent": c.now}}
			if status := getAs(t, core, caller, "/api/v1/agents/quality_agent", &got); status != 200 {
				t.Fatalf("got %d", status)
			}
			if got.State != c.state || strings.Join(got.Reasons, " ") != c.reasons || got.Breaker.State != c.breaker || (got.Breaker.OpenUntil != nil) != c.openUntil {
				t.Errorf("got %+v, want %s %s with breaker %s", got, c.state, c.reasons, c.breaker)
			}
			if c.openUntil && got.Breaker.OpenUntil.Format(time.RFC3339) != "2026-01-02T15:04:05Z" {
				t.Errorf("got open_until %s, want it in UTC", got.Breaker.OpenUntil)
			}
			if got.ID != "quality_agent" || got.Origin != "file" || got.MaxInFlight != 2 || got.InFlight != c.now.InFlight {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// A caller sees only agents that it may use, and their URLs only if it is an administrator.
func TestHandleAgents_ShowsVisibleAgentsOnly(t *testing.T) {
	cases := []struct {
		name    string
		caller  *contract.Caller
		agents  []string
		intents []string
		domains []string
		grants  []string
		url     string // of billing_agent
		warned  bool
	}{
		{
			name:   "none",
			caller: &contract.Caller{Scopes: []string{"agents:read"}},
		},
		{
			name:    "one",
			caller:  &contract.Caller{Scopes: []string{"agents:read", "agent:quality_agent"}},
			agents:  []string{"quality_agent"},
			intents: []string{"code_review"}, domains: []string{"python"},
		},
		{
			name:    "all",
			caller:  &contract.Caller{Scopes: []string{"agents:read"}, AllAgents: true},
			agents:  []string{"billing_agent", "quality_agent"},
			intents: []string{"code_review", "cost_analysis"}, domains: []string{"azure", "databricks", "python"},
			grants: []string{"billing_agent"}, warned: true,
		},
		{
			name:    "administrator without agents",
			caller:  &contract.Caller{Scopes: []string{"agents:read", "admin"}},
			agents:  []string{"billing_agent", "quality_agent"},
			intents: []string{"code_review", "cost_analysis"}, domains: []string{"azure", "databricks", "python"},
			grants: []string{"billing_agent"}, url: "http://127.0.0.1:9102/tasks", warned: true,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			core := &fakeBackend{}
			var list AgentList
			getAs(t, core, c.caller, "/api/v1/agents", &list)
			var listed []string
			for _, a := range list.Agents {
				listed = append(listed, a.ID)
				if a.ID == "billing_agent" && a.Entry.Endpoint.URL != c.url {
					t.Errorf("got URL %q in the list, want %q", a.Entry.Endpoint.URL, c.url)
				}
			}
			if diff := cmp.Diff(c.agents, listed); diff != "" {
				t.Errorf("listed agents differ (-want +got):\n%s", diff)
			}
			for _, id := range []string{"billing_agent", "quality_agent"} {
				want := 404
				if strings.Contains(strings.Join(c.agents, " "), id) {
					want = 200
				}
				if status := getAs(t, core, c.caller, "/api/v1/agents/"+id, new(Agent)); status != want {
					t.Errorf("%s: got %d, want %d", id, status, want)
				}
			}

			var registry Registry
			getAs(t, core, c.caller, "/api/v1/registry", &registry)
			var entries, grants []string
			for _, a := range registry.Agents {
				entries = append(entries, a.ID)
				if a.ID == "billing_agent" && a.Endpoint.URL != c.url {
					t.Errorf("got URL %q in the registry, want %q", a.Endpoint.URL, c.url)
				}
			}
			if warned := len(registry.Warnings) > 0; warned != c.warned || registry.Warnings == nil {
				t.Errorf("got warnings %v, want some: %t", registry.Warnings, c.warned)
			}
			for subject := range registry.Grants {
				grants = append(grants, subject)
			}
			for _, d := range []string{
				cmp.Diff(c.agents, entries), cmp.Diff(c.grants, grants),
				cmp.Diff(c.intents, append([]string(nil), registry.Intents...)),
				cmp.Diff(c.domains, append([]string(nil), registry.Domains...)),
			} {
				if d != "" {
					t.Errorf("the registry differs (-want +got):\n%s", d)
				}
			}
		})
	}
	if url := testSnapshot().Fleet.Agents[0].Endpoint.URL; url == "" {
		t.Error("got the snapshot changed by hiding the URL")
	}
}

func TestHandleAgent_TreatsHiddenAgentLikeUnknown(t *testing.T) {
	s := newServer(t, httpserver.Config{Auth: staticAuth{caller: &contract.Caller{Scopes: []string{"agents:read"}}}}, &fakeBackend{})
	var bodies []string
	for _, id := range []string{"quality_agent", "nobody_at_all"} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, localRequest("GET", "/api/v1/agents/"+id, ""))
		body, _, _ := strings.Cut(w.Body.String(), `"request_id"`)
		bodies = append(bodies, body)
	}
	if bodies[0] != bodies[1] {
		t.Errorf("hidden: %s\nunknown: %s", bodies[0], bodies[1])
	}
}

func TestHandleValidate_ErrorsHaveLineAndColumn(t *testing.T) {
	srv := startServer(t, httpserver.Config{}, &fakeBackend{})
	for _, path := range []string{"/api/v1/registry/validate", "/api/v1/registry/lint", "/api/v1/registry/diff"} {
		for name, body := range map[string]string{
			"unknown key":     "clients:\n  a:\n    match:\n      intent: [x]\n      domain: [y]\n",
			"not YAML":        "clients: [\n",
			"empty":           "",
			"second document": "clients: {}\n---\nclients: {}\n",
			"alias":           "clients: &a\n  b: *a\n",
		} {
			t.Run(path+"/"+name, func(t *testing.T) {
				p := problemOf(t, srv.do(t, "POST", path, body, "Content-Type", "application/yaml"))
				if p.Status != 422 || p.Code != contract.CodeInvalidRequest || len(p.Errors) == 0 {
					t.Fatalf("got %+v, want 422 invalid_request with errors", p)
				}
				for _, d := range p.Errors {
					if d.Line < 1 || d.Column < 1 || d.Pointer != "" || d.Detail == "" || strings.Contains(d.Detail, registryName) {
						t.Errorf("got %+v, want line, column and detail", d)
					}
				}
			})
		}
	}
}

// Tasks of a draining instance count for the agent, and not for the capacity of its active
// instances.
func TestHandleAgent_AtCapacityCountsActiveInstances(t *testing.T) {
	registered := &contract.RegistryEntry{
		ID: "guest", Match: contract.Match{Intent: []string{"code_review"}, Domains: []string{"python"}},
		Origin: contract.OriginRegistration, MaxInFlight: 2,
		Instances: []contract.Instance{
			{Name: "drains", MaxInFlight: 2, State: contract.AgentDraining},
			{Name: "serves", MaxInFlight: 2, State: contract.AgentActive},
		},
	}
	for _, c := range []struct {
		serves int
		want   string
	}{{1, ""}, {2, "at_capacity"}} {
		core := &fakeBackend{states: map[string]AgentState{"guest": {
			InFlight: 2 + c.serves, Instances: []InstanceState{{Name: "drains", InFlight: 2}, {Name: "serves", InFlight: c.serves}},
		}}}
		a := &api{deps: core.deps()}
		got := a.describeAgent(registered, &contract.Caller{Scopes: []string{"admin"}})
		if strings.Join(got.Reasons, " ") != c.want || got.InFlight != 2+c.serves {
			t.Errorf("%d tasks at the active instance: got %v with %d in flight, want %q", c.serves, got.Reasons, got.InFlight, c.want)
		}
	}
}

func TestHandleAgent_ReportsMissingGrant(t *testing.T) {
	for _, c := range []struct {
		name  string
		entry contract.RegistryEntry
		want  string
	}{
		{"registered", contract.RegistryEntry{Origin: contract.OriginRegistration, Match: contract.Match{Domains: []string{"python"}}}, "nothing_granted"},
		{"with a grant", contract.RegistryEntry{Origin: contract.OriginRegistration, Match: contract.Match{Intent: []string{"code_review"}}}, ""},
		{"from the file", contract.RegistryEntry{Match: contract.Match{Domains: []string{"python"}}}, ""},
	} {
		core := &fakeBackend{}
		a := &api{deps: core.deps()}
		if got := a.describeAgent(&c.entry, &contract.Caller{}); strings.Join(got.Reasons, " ") != c.want || got.State != contract.AgentActive {
			t.Errorf("%s: got %s %v, want active and %q", c.name, got.State, got.Reasons, c.want)
		}
	}
}
