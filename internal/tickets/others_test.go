package tickets_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/tickets"
)

// callerOf returns a caller of an issuer, without a tenant.
func callerOf(issuer string, scopes ...string) *contract.Caller {
	return &contract.Caller{Subject: "eve", Issuer: issuer, Scopes: scopes, AllAgents: true}
}

// Requests of callers without a tenant share a ticket only if both callers have the same issuer; a
// caller of another issuer cannot read it.
func TestTickets_WithoutTenant(t *testing.T) {
	o := newServiceFixture(t)
	of := func(id, issuer string) *tickets.Demand {
		d := newDemand(id, "/ana", "book a flight to rome")
		d.Unmet.Caller.Issuer = issuer
		return d
	}
	one := o.propose(t, of("r1", "https://one.example"))
	two := o.propose(t, of("r2", "https://two.example"))
	local := o.propose(t, of("r3", ""))
	again := o.propose(t, of("r4", "https://one.example"))
	if two.Joined || local.Joined || !again.Joined || again.TicketID != one.TicketID {
		t.Errorf("got %+v, %+v and %+v, want only the last one to join", two, local, again)
	}
	for _, restarted := range []bool{false, true} {
		if restarted {
			o.reopen(t)
		}
		for issuer, want := range map[string]string{
			"https://one.example": one.TicketID, "https://two.example": two.TicketID, "": local.TicketID, "https://three.example": "",
		} {
			c := callerOf(issuer, "tickets")
			page, err := o.Tickets(t.Context(), contract.TicketQuery{}, c)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(idsOf(page), " "); got != want {
				t.Errorf("%q: got listed %q, want %q", issuer, got, want)
			}
			for _, id := range []string{one.TicketID, two.TicketID, local.TicketID} {
				if _, err := o.Ticket(t.Context(), id, c); (err == nil) != (id == want) {
					t.Errorf("%q reads %s: got %v", issuer, id, err)
				}
				if _, _, err := o.CloseTicket(t.Context(), id, "", c); restarted && (err == nil) != (id == want) {
					t.Errorf("%q closes %s: got %v", issuer, id, err)
				}
			}
		}
	}
}

// A ticket of a version without issuers has no issuer, and can still be read.
func TestOpen_ReadsTicketsOfEarlierVersion(t *testing.T) {
	o := newServiceFixture(t)
	id := o.propose(t, newDemand("r1", "/ana", "book a flight to rome")).TicketID
	e, err := o.bucket.Get(t.Context(), "ticket."+id)
	if err != nil || strings.Contains(string(e.Value), "issuer") {
		t.Fatalf("got %s, %v, want a record without an issuer", e.Value, err)
	}
	o.reopen(t)
	if _, err := o.Ticket(t.Context(), id, callerOf("", "tickets")); err != nil {
		t.Errorf("got %v, want it", err)
	}
}

// A caller without permission to read tickets receives its own request only, neither the text of
// other callers nor their number.
func TestPropose_HidesRequestsOfOthers(t *testing.T) {
	told := func(dry bool, scopes ...string) (string, *contract.Proposal) {
		o := newServiceFixture(t)
		for i, prompt := range []string{"book a flight to rome for miller", "book a flight to oslo for smith", "please book a flight to bern"} {
			d := newDemand(fmt.Sprint("r", i), "acme/"+[]string{"bob", "carl", "dora"}[i], prompt)
			d.Locale, d.DataClasses = "it", []string{"iban"}
			o.propose(t, d)
		}
		d := newDemand("mine", "acme/ana", "book a flight to paris")
		d.Unmet.Caller.Scopes, d.DryRun = scopes, dry
		p := o.propose(t, d)
		data, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		return string(data), p
	}
	others := []string{"rome", "miller", "oslo", "smith", "bern", "iban", "it (3)", "4 callers"}
	for _, dry := range []bool{false, true} {
		text, p := told(dry, "route:submit")
		for _, word := range others {
			if strings.Contains(text, word) {
				t.Errorf("dry run %t: got %q of another caller in the response: %s", dry, word, text)
			}
		}
		if !p.Joined || p.Count != 4 || !strings.Contains(p.SuggestedYAML, "paris") {
			t.Errorf("dry run %t: got %+v, want the caller's own text, and the count", dry, p)
		}
		for _, scope := range []string{"tickets", "admin"} {
			text, _ := told(dry, scope)
			if missing := slices.DeleteFunc(slices.Clone(others), func(word string) bool { return strings.Contains(text, word) }); len(missing) > 0 {
				t.Errorf("dry run %t: scope %s: got a response without %q: %s", dry, scope, missing, text)
			}
		}
	}
}

// Agents that the caller may not see are omitted from its proposal, and stored in the ticket.
func TestPropose_NamesVisibleAgentsOnly(t *testing.T) {
	o := newServiceFixture(t)
	d := newDemand("r1", "acme/ana", "book a flight to rome")
	d.Unmet.Decision.Classification.Intent = "open_vault"
	d.Unmet.Reason = fallback.ReasonLowConfidence
	seen := *d.Unmet
	seen.Decision, seen.Reason = &contract.Decision{Classification: contract.Classification{Intent: contract.Unknown}}, fallback.ReasonNoMatch
	want := tickets.Preview(&tickets.Demand{RequestID: "r1", Unmet: &seen})
	d.Seen = &seen
	got := o.propose(t, d)
	if diff := cmp.Diff([]any{want.SuggestedYAML, want.Requirements, want.Risks}, []any{got.SuggestedYAML, got.Requirements, got.Risks}); diff != "" {
		t.Errorf("proposal (-want +got):\n%s", diff)
	}
	if ticket := o.get(t, got.TicketID); ticket.Intents["open_vault"] != 1 || ticket.Reasons[fallback.ReasonLowConfidence] != 1 {
		t.Errorf("got intents %v and reasons %v in the ticket, want open_vault and low confidence once", ticket.Intents, ticket.Reasons)
	}
}
