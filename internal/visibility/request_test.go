package visibility_test

import (
	"errors"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/visibility"
)

func TestMaySeeRequest(t *testing.T) {
	owner := &contract.Caller{Subject: "alice", Tenant: "north", Issuer: "https://id.example"}
	ended := &contract.Response{
		Status: contract.StatusCompleted, Decision: &contract.Decision{Chosen: []string{"payer"}, Standby: []string{"third"}},
		Tasks: []contract.TaskReport{{AgentID: "second", FailedOver: []contract.FailedAttempt{{AgentID: "payer"}}}},
	}
	running := *ended
	running.Status = contract.StatusRunning
	undecided := &contract.Response{Status: contract.StatusRunning}
	both := []string{"agent:payer", "agent:second"}
	for _, tt := range []struct {
		name     string
		caller   contract.Caller
		agents   []string // of the audit records
		response *contract.Response
		want     bool
	}{
		{"owner without agents", *owner, []string{"payer"}, ended, true},
		{"administrator of another tenant", contract.Caller{Tenant: "south", Scopes: []string{"admin"}}, []string{"payer"}, nil, true},
		{"another tenant", contract.Caller{Subject: "alice", Tenant: "south", AllAgents: true}, nil, ended, false},
		{"same subject of another issuer", contract.Caller{Subject: "alice", Tenant: "north"}, nil, ended, false},
		{"colleague with every agent", contract.Caller{Subject: "bob", Tenant: "north", AllAgents: true}, []string{"payer"}, nil, true},
		{"colleague with all agents of an ended request", contract.Caller{Subject: "bob", Tenant: "north", Scopes: both}, []string{"payer"}, ended, true},
		{"… of a running request", contract.Caller{Subject: "bob", Tenant: "north", Scopes: both}, nil, &running, false},
		{"… and its standby", contract.Caller{Subject: "bob", Tenant: "north", Scopes: append(both, "agent:third")}, nil, &running, true},
		{"colleague without the agent that failed", contract.Caller{Subject: "bob", Tenant: "north", Scopes: both[1:]}, nil, ended, false},
		{"colleague without the agent that took over", contract.Caller{Subject: "bob", Tenant: "north", Scopes: both[:1]}, nil, ended, false},
		{"colleague without an agent of the audit record", contract.Caller{Subject: "bob", Tenant: "north", Scopes: both}, []string{"third"}, ended, false},
		{"colleague, not decided yet", contract.Caller{Subject: "bob", Tenant: "north", Scopes: both}, nil, undecided, false},
		{"colleague, response cannot be read", contract.Caller{Subject: "bob", Tenant: "north", Scopes: both}, nil, nil, false},
	} {
		got := visibility.MaySeeRequest(&tt.caller, visibility.StoredRequest{Owner: owner, Agents: tt.agents, Response: func() (*contract.Response, error) {
			if tt.response == nil {
				return nil, errors.New("broken")
			}
			return tt.response, nil
		}})
		if got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.name, got, tt.want)
		}
	}
}

func TestMayEndRequest(t *testing.T) {
	owner := &contract.Caller{Subject: "alice", Tenant: "north"}
	for _, tt := range []struct {
		name   string
		caller contract.Caller
		want   bool
	}{
		{"owner", contract.Caller{Subject: "alice", Tenant: "north"}, true},
		{"colleague with every agent", contract.Caller{Subject: "bob", Tenant: "north", AllAgents: true}, false},
		{"administrator", contract.Caller{Subject: "root", Scopes: []string{"admin"}}, false},
		{"administrator who may submit", contract.Caller{Subject: "root", Scopes: []string{"admin", "route:submit"}}, true},
	} {
		if got := visibility.MayEndRequest(&tt.caller, owner); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.name, got, tt.want)
		}
	}
}

func TestMaySeeTenant(t *testing.T) {
	owner := &contract.Caller{Issuer: "one"}
	for _, tt := range []struct {
		name   string
		caller contract.Caller
		want   bool
	}{
		{"no tenant, same issuer", contract.Caller{Issuer: "one"}, true},
		{"no tenant, another issuer", contract.Caller{Issuer: "two"}, false},
		{"another tenant", contract.Caller{Tenant: "north", Issuer: "one"}, false},
		{"administrator", contract.Caller{Tenant: "north", Scopes: []string{"admin"}}, true},
	} {
		if got := visibility.MaySeeTenant(&tt.caller, owner); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.name, got, tt.want)
		}
	}
}
