package tickets_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/tickets"
)

// TestPropose_GroupsSimilarRequests follows one ticket from its first request.
func TestPropose_GroupsSimilarRequests(t *testing.T) {
	var told []bool
	o := newServiceFixture(t, func(c *tickets.Config) { c.OnProposed = func(joined bool) { told = append(told, joined) } })
	first := o.propose(t, newDemand("r1", "acme/ana", "book a flight to Lisbon for [EMAIL_1]"))
	if first.TicketID != "id-001" || first.Joined || first.Count != 1 || first.Similarity != 0 || first.Threshold != tickets.JoinThreshold {
		t.Errorf("got %+v, want a new ticket", first)
	}
	second := newDemand("r2", "acme/bob", "please book me a flight for Monday")
	second.Locale, second.DataClasses = "en", []string{"email"}
	joined := o.propose(t, second)
	if joined.TicketID != first.TicketID || !joined.Joined || joined.Count != 2 || joined.Similarity < tickets.JoinThreshold {
		t.Errorf("got %+v, want it to join %s", joined, first.TicketID)
	}
	if !strings.Contains(joined.Detail, "ticket of 2 similar requests (similarity 0.") {
		t.Errorf("got detail %q, want the similarity in it", joined.Detail)
	}
	other := o.propose(t, newDemand("r3", "acme/ana", "translate the menu"))
	if other.TicketID == first.TicketID || other.Joined {
		t.Errorf("got %+v, want a separate ticket", other)
	}
	elsewhere := o.propose(t, newDemand("r4", "globex/ana", "book a flight to Lisbon for [EMAIL_1]"))
	if elsewhere.TicketID == first.TicketID || elsewhere.Similarity != 0 {
		t.Errorf("got %+v, want a new ticket for another tenant", elsewhere)
	}
	if diff := cmp.Diff([]bool{false, true, false, false}, told); diff != "" {
		t.Errorf("proposal (-want +got):\n%s", diff)
	}

	at := func(s int) time.Time { return time.Date(2026, 1, 2, 3, 4, 5+s, 0, time.UTC) }
	want := &contract.Ticket{
		TicketID: first.TicketID, Tenant: "acme", Status: contract.TicketOpen, Title: "book a flight to Lisbon for [EMAIL_1]",
		CreatedAt: at(1), LastAt: at(2), Count: 2, Callers: 2, PerDay: []contract.DayCount{{Day: "2026-01-02", Count: 2}},
		Intents: map[string]int{"unknown": 2}, Domains: map[string]int{"unknown": 2}, Reasons: map[string]int{"no_match": 2}, Locales: map[string]int{"en": 1},
		Examples: []contract.TicketExample{
			{RequestID: "r2", At: at(2), Prompt: "please book me a flight for Monday", Similarity: joined.Similarity},
			{RequestID: "r1", At: at(1), Prompt: "book a flight to Lisbon for [EMAIL_1]", Similarity: 1},
		},
		Nearest: []contract.NearestMiss{{AgentID: "quality_agent", Score: 0.3, MissingScore: 0.35, Gates: []contract.Gate{{Gate: "threshold", Reason: "too little"}}}},
	}
	got := o.get(t, first.TicketID)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(contract.Ticket{}, "SuggestedYAML", "Requirements", "Risks")); diff != "" {
		t.Errorf("ticket (-want +got):\n%s", diff)
	}
	s, err := capabilities.Parse("suggestion", []byte(got.SuggestedYAML))
	if err != nil || s.Catalogue.Agents[0].Match.Intent[0] != "book_flight" || len(s.Fleet.Agents[0].Restore) != 1 {
		t.Errorf("got suggestion (%v):\n%s", err, got.SuggestedYAML)
	}
}

// The state of a service is rebuilt from the bucket.
func TestOpen_RebuildsIndex(t *testing.T) {
	o := newServiceFixture(t)
	first := o.propose(t, newDemand("r1", "acme/ana", "book a flight to Lisbon"))
	closed := o.propose(t, newDemand("r2", "acme/ana", "translate the menu"))
	if _, err := o.Close(t.Context(), closed.TicketID, "built"); err != nil {
		t.Fatal(err)
	}
	if _, err := o.bucket.Put(t.Context(), tickets.Key("damaged"), []byte("{")); err != nil {
		t.Fatal(err)
	}
	before := o.propose(t, func() *tickets.Demand {
		d := newDemand("", "acme/bob", "book two flights")
		d.DryRun = true
		return d
	}())
	o.reopen(t)
	after := o.propose(t, newDemand("r3", "acme/bob", "book two flights"))
	if after.TicketID != first.TicketID || after.Similarity != before.Similarity {
		t.Errorf("got %s with %v, want %s with %v", after.TicketID, after.Similarity, first.TicketID, before.Similarity)
	}
	if again := o.propose(t, newDemand("r4", "acme/bob", "translate the menu")); again.Joined {
		t.Errorf("got %+v, want no request to join a closed ticket", again)
	}
	page, err := o.List(t.Context(), tickets.ListQuery{AllTenants: true})
	if err != nil || len(page.Tickets) != 3 {
		t.Errorf("got %d tickets (%v), want the 3 readable ones", len(page.Tickets), err)
	}
}

func TestPropose_DryRunStoresNothing(t *testing.T) {
	o := newServiceFixture(t)
	dry := func(prompt string) *contract.Proposal {
		d := newDemand("r9", "acme/ana", prompt)
		d.DryRun = true
		return o.propose(t, d)
	}
	if p := dry("book a flight"); p.TicketID != "" || p.Joined || p.Count != 1 || !strings.Contains(p.Detail, "would open") {
		t.Errorf("got %+v, want a new ticket that is not stored", p)
	}
	first := o.propose(t, newDemand("r1", "acme/ana", "book a flight"))
	if p := dry("book a flight to Rome"); p.TicketID != "" || !p.Joined || p.Count != 2 || !strings.Contains(p.Detail, "would join") {
		t.Errorf("got %+v, want a detail with would join", p)
	}
	if got := o.get(t, first.TicketID); got.Count != 1 {
		t.Errorf("got a count of %d after dry runs, want 1", got.Count)
	}
}

// Without tickets, the proposal contains only a suggestion.
func TestPreview_PromisesNothingWithoutTickets(t *testing.T) {
	p := tickets.Preview(newDemand("r1", "acme/ana", "book a flight"))
	if p.TicketID != "" || p.Count != 1 || p.SuggestedYAML == "" || strings.Contains(p.Detail, "would") || !strings.Contains(p.Detail, "not on record") {
		t.Errorf("got %+v without tickets, want a suggestion only", p)
	}
}

// A prompt without a significant word gets no ticket.
func TestPropose_WithoutSignificantWord(t *testing.T) {
	o := newServiceFixture(t, func(c *tickets.Config) { c.OnProposed = func(bool) { t.Error("it was counted") } })
	for i, prompt := range []string{
		"😀", "?!", "***", "[EMAIL_1]", "could you please", "帮我", "\u200b", "hola buenos días", "thank you very much",
		"Thank you!\n\nOn Mon, Ana <ana@example.com> wrote:\n> your booking is cancelled",
	} {
		d := newDemand(fmt.Sprint("r", i), "acme/ana", prompt)
		d.DryRun = i%2 == 1
		if p := o.propose(t, d); p.TicketID != "" || p.Joined || p.SuggestedYAML == "" || !strings.Contains(p.Detail, "not on record: no word") {
			t.Errorf("%q: got %+v, want a proposal without a ticket", prompt, p)
		}
	}
	page, err := o.List(t.Context(), tickets.ListQuery{Tenant: "acme"})
	if err != nil || len(page.Tickets) != 0 {
		t.Errorf("got %d tickets (%v), want none", len(page.Tickets), err)
	}
}

// Each demand has its own ticket.
func TestPropose_SeparatesDemands(t *testing.T) {
	o := newServiceFixture(t)
	seen := map[string]string{}
	for i, prompt := range []string{
		"book a flight to Lisbon", "book a hotel in Lisbon", "cancel my flight to Lisbon", "what is the weather in Lisbon",
		"delete my bank account", "create a bank account", "close my bank account",
		"translate the contract", "review the contract", "sign the contract",
	} {
		p := o.propose(t, newDemand(fmt.Sprint("r", i), "acme/ana", prompt))
		if before := seen[p.TicketID]; before != "" {
			t.Errorf("got %q in the ticket of %q, want its own", prompt, before)
		}
		seen[p.TicketID] = prompt
	}
}

// A request that is proposed again, for example after a crash, counts once.
func TestPropose_CountsRequestOnce(t *testing.T) {
	o := newServiceFixture(t)
	first := o.propose(t, newDemand("r1", "acme/ana", "book a flight"))
	if again := o.propose(t, newDemand("r1", "acme/ana", "book a flight")); again.TicketID != first.TicketID || again.Count != 1 || again.Joined {
		t.Errorf("got %+v, want the first ticket, unchanged", again)
	}
}

// Concurrent similar requests share one ticket, and each one counts.
func TestPropose_ConcurrentRequestsShareTicket(t *testing.T) {
	const racers = 64
	o := newServiceFixture(t)
	var racing sync.WaitGroup
	for i := range racers {
		racing.Go(func() {
			d := newDemand(fmt.Sprint("r", i), fmt.Sprintf("acme/user%d", i), fmt.Sprintf("book a flight to city%c", 'a'+i%26))
			if _, err := o.Propose(context.WithoutCancel(t.Context()), d); err != nil {
				t.Error(err)
			}
		})
	}
	racing.Wait()
	page, err := o.List(t.Context(), tickets.ListQuery{Tenant: "acme"})
	if err != nil || len(page.Tickets) != 1 {
		t.Fatalf("got %d tickets (%v), want 1", len(page.Tickets), err)
	}
	got := &page.Tickets[0]
	if got.Count != racers || got.Callers != racers || len(got.Examples) != 20 || got.PerDay[0].Count != racers {
		t.Errorf("got %d requests of %d callers, %d examples, %v; want %d, %d, 20", got.Count, got.Callers, len(got.Examples), got.PerDay, racers, racers)
	}
}

// Two processes that share a bucket lose no count.
func TestPropose_TwoServicesLoseNoCount(t *testing.T) {
	const each = 30
	o := newServiceFixture(t)
	first := o.propose(t, newDemand("r", "acme/ana", "book a flight"))
	second, err := tickets.Open(t.Context(), o.cfg)
	if err != nil {
		t.Fatal(err)
	}
	var racing sync.WaitGroup
	for name, service := range map[string]*tickets.Service{"a": o.Service, "b": second} {
		racing.Go(func() {
			for i := range each {
				if _, err := service.Propose(context.WithoutCancel(t.Context()), newDemand(fmt.Sprint(name, i), "acme/ana", "book a flight")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	racing.Wait()
	if got := o.get(t, first.TicketID).Count; got != 1+2*each {
		t.Errorf("got a count of %d, want %d", got, 1+2*each)
	}
}

func TestPropose_WhenTooManyAreOpen(t *testing.T) {
	o := newServiceFixture(t)
	o.SetMaxOpen(2)
	gone := o.propose(t, newDemand("r1", "acme/ana", "book a flight"))
	kept := o.propose(t, newDemand("r2", "acme/ana", "translate the menu"))
	p := o.propose(t, newDemand("r3", "acme/ana", "water the plants"))
	if p.TicketID != "" || p.SuggestedYAML == "" || !strings.Contains(p.Detail, "not on record") {
		t.Errorf("got %+v, want a proposal without a ticket", p)
	}
	if p := o.propose(t, newDemand("r4", "acme/ana", "translate the menu")); p.TicketID != kept.TicketID {
		t.Errorf("got %+v, want requests to join as before", p)
	}
	// Simulate that the bucket has dropped the ticket because of its age.
	if err := o.bucket.Delete(t.Context(), tickets.Key(gone.TicketID)); err != nil {
		t.Fatal(err)
	}
	if p := o.propose(t, newDemand("r5", "acme/ana", "water the plants")); p.TicketID == "" {
		t.Errorf("got %+v, want a new ticket, because another one was deleted", p)
	}
}

// The service detects a ticket that was deleted or closed by another process.
func TestPropose_WhenNearestTicketIsDeleted(t *testing.T) {
	o := newServiceFixture(t)
	first := o.propose(t, newDemand("r1", "acme/ana", "book a flight"))
	if err := o.bucket.Delete(t.Context(), tickets.Key(first.TicketID)); err != nil {
		t.Fatal(err)
	}
	second := o.propose(t, newDemand("r2", "acme/ana", "book a flight"))
	if second.Joined || second.TicketID == first.TicketID {
		t.Errorf("got %+v, want a new ticket", second)
	}
	other, err := tickets.Open(t.Context(), o.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Close(t.Context(), second.TicketID, ""); err != nil {
		t.Fatal(err)
	}
	if third := o.propose(t, newDemand("r3", "acme/ana", "book a flight")); third.Joined {
		t.Errorf("got %+v, want a new ticket", third)
	}
}

func TestPropose_ReturnsStoreErrors(t *testing.T) {
	o := newServiceFixture(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := o.Propose(ended, newDemand("r1", "acme/ana", "book a flight")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	for name, cfg := range map[string]tickets.Config{
		"no bucket": {NewID: o.cfg.NewID},
		"no ids":    {Bucket: o.bucket},
	} {
		if _, err := tickets.Open(t.Context(), cfg); err == nil {
			t.Errorf("%s: got no error, want one", name)
		}
	}
	if _, err := o.Get(t.Context(), "id-404"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v, want %v", err, store.ErrNotFound)
	}
}

// Texts and lists are bounded.
func TestAddRequest_BoundsTicket(t *testing.T) {
	o := newServiceFixture(t)
	var id string
	for i := range 130 {
		d := newDemand(fmt.Sprint("r", i), fmt.Sprint("acme/u", i), fmt.Sprintf("book a flight number %d %s", i, strings.Repeat("é", 600)))
		d.Locale = fmt.Sprintf("x%d", i)
		id = o.propose(t, d).TicketID
	}
	got := o.get(t, id)
	if got.Count != 130 || got.Callers != 100 || len(got.Examples) != 20 || len(got.Locales) != 20 || len([]rune(got.Title)) > 80 {
		t.Errorf("got count %d, callers %d, %d examples, %d locales, a title of %d; want 130, 100, 20, 20, ≤ 80",
			got.Count, got.Callers, len(got.Examples), len(got.Locales), len([]rune(got.Title)))
	}
	for _, e := range got.Examples {
		if len(e.Prompt) > 500 || strings.HasSuffix(e.Prompt, "\xc3") {
			t.Errorf("got an example of %d bytes: %q", len(e.Prompt), e.Prompt)
		}
	}
}
