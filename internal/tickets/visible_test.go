package tickets_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/tickets"
)

func reader(tenant string, scopes ...string) *contract.Caller {
	return &contract.Caller{Subject: "eve", Tenant: tenant, Scopes: scopes}
}

// A caller sees the tickets of its tenant, or all tickets if it may see all; a ticket of another
// tenant looks like a missing one in every call.
func TestPropose_SeparatesTenants(t *testing.T) {
	o := newServiceFixture(t)
	for i, prompt := range topics(4) {
		o.propose(t, newDemand(fmt.Sprint("r", i), []string{"acme/ana", "globex/bob"}[i%2], prompt))
	}
	admin := reader("", "admin")
	for _, tt := range []struct {
		name   string
		caller *contract.Caller
		want   []string
	}{
		{"one tenant", reader("acme"), []string{"id-003", "id-001"}},
		{"another", reader("globex"), []string{"id-004", "id-002"}},
		{"without a tenant", reader(""), []string{}},
		{"every agent, no tenant", &contract.Caller{Tenant: "west", AllAgents: true}, []string{}},
		{"all tenants", admin, []string{"id-004", "id-003", "id-002", "id-001"}},
	} {
		page, err := o.Tickets(t.Context(), contract.TicketQuery{}, tt.caller)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, idsOf(page)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	_, unknown := o.Ticket(t.Context(), "id-404", reader("acme"))
	for _, id := range []string{"id-002", "a.b", "", strings.Repeat("x", 65)} {
		_, err := o.Ticket(t.Context(), id, reader("acme"))
		_, _, closeErr := o.CloseTicket(t.Context(), id, "mine", reader("acme"))
		if diff := cmp.Diff([]error{unknown, unknown}, []error{err, closeErr}); diff != "" {
			t.Errorf("%q (-unknown +forbidden):\n%s", id, diff)
		}
	}
	if got := o.get(t, "id-002"); got.Status != contract.TicketOpen {
		t.Errorf("got another tenant's ticket closed: %+v", got)
	}
	if got, _, err := o.CloseTicket(t.Context(), "id-002", "done", admin); err != nil || got.Status != contract.TicketClosed || got.Note != "done" {
		t.Errorf("all tenants: got %+v, %v, want it closed", got, err)
	}
}

// A ticket has requests of callers that may use different agents: a reader gets no information
// about agents that it may not use.
func TestTickets_HideAgentsOfOthers(t *testing.T) {
	seen := &capabilities.Catalogue{
		Agents: []*contract.RegistryEntry{
			{ID: "open_agent", Match: contract.Match{Intent: []string{"open_intent"}, Domains: []string{"open_domain"}}},
			{ID: "xx_agent", Match: contract.Match{Intent: []string{"xx_intent"}, Domains: []string{"xx_domain", "*"}}},
		},
		Routing: capabilities.DefaultRouting(), Fallback: capabilities.DefaultFallback(),
	}
	proposed := func(o *serviceFixture) string {
		d := newDemand("r1", "acme/ana", "book a flight")
		d.Unmet.Catalogue = seen
		d.Unmet.Decision = &contract.Decision{
			Classification: contract.Classification{Intent: "xx_intent", Domains: []string{"xx_domain", "open_domain"}, Confidence: 0.4},
			Candidates: []contract.Candidate{
				{AgentID: "xx_agent", Score: 0.5, Gates: []contract.Gate{{Gate: "scopes", Reason: "needs scope xx"}}},
				{AgentID: "open_agent", Score: 0.3, Gates: []contract.Gate{{Gate: "threshold", Reason: "too little"}}},
			},
		}
		d.Unmet.Reason = fallback.ReasonLowConfidence
		return o.propose(t, d).TicketID
	}
	o := newServiceFixture(t, func(c *tickets.Config) { c.Catalogue = func() *capabilities.Catalogue { return seen } })
	id := proposed(o)
	whole := o.get(t, id)
	if r := whole.NearestReading; r == nil || r.AgentID != "xx_agent" {
		t.Errorf("got nearest reading %+v, want that of xx_agent", r)
	}

	for name, c := range map[string]*contract.Caller{"every agent": {Tenant: "acme", AllAgents: true}, "all tenants": reader("", "admin")} {
		got, err := o.Ticket(t.Context(), id, c)
		if diff := cmp.Diff(whole, got); diff != "" || err != nil {
			t.Errorf("%s: %v, ticket (-record +got):\n%s", name, err, diff)
		}
	}
	for name, c := range map[string]*contract.Caller{"one agent": reader("acme", "agent:open_agent"), "no agent": reader("acme")} {
		page, err := o.Tickets(t.Context(), contract.TicketQuery{}, c)
		if err != nil || len(page.Tickets) != 1 {
			t.Fatalf("%s: got %+v, %v, want one ticket", name, page, err)
		}
		one, err := o.Ticket(t.Context(), id, c)
		if err != nil {
			t.Fatal(err)
		}
		closed, _, err := o.CloseTicket(t.Context(), id, "", c)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal([]any{page, one, closed})
		if err != nil || strings.Contains(string(text), "xx") {
			t.Errorf("%s: %v, got a word of a hidden agent: %s", name, err, text)
		}
		if one.Intents[contract.Unknown] != 1 || one.Domains[contract.Unknown] != 1 || !strings.Contains(one.SuggestedYAML, "book_flight") {
			t.Errorf("%s: got %+v, want the counts under unknown, and a suggestion from the requests' words", name, one)
		}
	}
	if got, err := o.Ticket(t.Context(), id, reader("acme", "agent:open_agent")); err != nil || len(got.Nearest) != 1 || got.Domains["open_domain"] != 1 {
		t.Errorf("got %+v, %v, want the agents that the reader may use", got, err)
	}

	// A new process has no registry before the first request, so it shows no agent.
	o = newServiceFixture(t)
	id = proposed(o)
	o.reopen(t)
	got, err := o.Ticket(t.Context(), id, reader("acme", "agent:open_agent"))
	if err != nil || got.Intents[contract.Unknown] != 1 || got.Domains[contract.Unknown] != 1 || len(got.Domains) != 1 || len(got.Nearest) != 0 {
		t.Errorf("without a registry: got %+v, %v, want no names", got, err)
	}
}

// A request for an agent that its caller may not use asks for access, and not for a new agent. The
// ticket states that for readers who may see the agent, and hides it from others.
func TestPropose_NamesAgentThatCallerMayNotUse(t *testing.T) {
	o := newServiceFixture(t)
	d := newDemand("r1", "acme/ana", "please have a look at my pull request")
	d.Unmet.Caller = reader("acme", "tickets")
	d.Unmet.Decision = &contract.Decision{
		Classification: contract.Classification{Intent: "code_review", Domains: []string{"python"}, Confidence: 0.9},
		Hidden:         []contract.Candidate{{AgentID: "quality_agent", Score: 0.8, Gates: []contract.Gate{{Gate: "entitlement", Reason: "needs scope agent:quality_agent"}}}},
	}
	seen := *d.Unmet
	seen.Decision = &contract.Decision{Classification: contract.Classification{Intent: contract.Unknown}}
	d.Seen = &seen
	proposal := o.propose(t, d)

	got, err := o.Ticket(t.Context(), proposal.TicketID, reader("", "admin"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"overlap with quality_agent, which scored 0.80 and may not take the request: needs scope agent:quality_agent",
		"1 request of 1 fit an agent that may not serve them: granting access may be sufficient",
	}
	if diff := cmp.Diff(want, got.Risks[:min(2, len(got.Risks))]); diff != "" {
		t.Errorf("risks (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{fallback.ReasonNotEntitled: 1}, got.Reasons); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}

	hidden, err := o.Ticket(t.Context(), proposal.TicketID, reader("acme", "tickets"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal([]any{proposal, hidden})
	for _, secret := range []string{"quality_agent", "code_review", fallback.ReasonNotEntitled, "granting access"} {
		if err != nil || strings.Contains(string(text), secret) {
			t.Errorf("%v, got %s in what a caller without the agent sees: %s", err, secret, text)
		}
	}
	if hidden.Reasons[fallback.ReasonNoMatch] != 1 {
		t.Errorf("got reasons %v, want it counted as %s", hidden.Reasons, fallback.ReasonNoMatch)
	}
}

// Two principals with the same name but different issuers are two callers.
func TestPropose_SeparatesIssuers(t *testing.T) {
	o := newServiceFixture(t)
	var id string
	for i, issuer := range []string{"", "https://a.example", "https://b.example", "https://a.example"} {
		d := newDemand(fmt.Sprint("r", i), "acme/ana", "book a flight")
		d.Unmet.Caller.Issuer = issuer
		id = o.propose(t, d).TicketID
	}
	if got := o.get(t, id); got.Callers != 3 || got.Count != 4 {
		t.Errorf("got %d callers of %d requests, want 3 of 4", got.Callers, got.Count)
	}
}
