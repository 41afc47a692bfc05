package tickets_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
	"github.com/caprouter/caprouter/internal/tickets"
)

// topics returns prompts that are not similar to each other.
func topics(n int) []string {
	all := []string{"book a flight", "translate the menu", "water the plants", "repair my bicycle", "compose a song", "order some paint", "walk the dog", "measure the garden"}
	return all[:n]
}

func idsOf(page *contract.TicketPage) []string {
	ids := []string{}
	for i := range page.Tickets {
		ids = append(ids, page.Tickets[i].TicketID)
	}
	return ids
}

func TestList_ReturnsPagesNewestFirst(t *testing.T) {
	o := newServiceFixture(t)
	for i, prompt := range topics(6) {
		o.propose(t, newDemand(fmt.Sprint("r", i), []string{"acme/ana", "globex/bob", "/local"}[i%3], prompt))
	}
	if _, err := o.Close(t.Context(), "id-004", "done"); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		query tickets.ListQuery
		want  []string
	}{
		{"all", tickets.ListQuery{AllTenants: true}, []string{"id-006", "id-005", "id-004", "id-003", "id-002", "id-001"}},
		{"one tenant", tickets.ListQuery{Tenant: "acme"}, []string{"id-004", "id-001"}},
		{"without a tenant", tickets.ListQuery{}, []string{"id-006", "id-003"}},
		{"other tenant", tickets.ListQuery{Tenant: "nobody"}, []string{}},
		{"open", tickets.ListQuery{Tenant: "acme", Status: contract.TicketOpen}, []string{"id-001"}},
		{"closed", tickets.ListQuery{AllTenants: true, Status: contract.TicketClosed}, []string{"id-004"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for limit := range 4 {
				got, pages := []string{}, 0
				for q := tt.query; ; pages++ {
					q.Limit = limit
					page, err := o.List(t.Context(), q)
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, idsOf(page)...)
					if tt.query.Cursor, q.Cursor = "", page.NextCursor; q.Cursor == "" {
						break
					}
					tt.query.Cursor = q.Cursor
				}
				tt.query.Cursor = ""
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("pages of %d (-want +got):\n%s", limit, diff)
				}
			}
		})
	}
}

// A ticket that is opened between two pages does not move the others; a deleted one is omitted.
func TestList_WhileTicketsChange(t *testing.T) {
	o := newServiceFixture(t)
	for i, prompt := range topics(4) {
		o.propose(t, newDemand(fmt.Sprint("r", i), "acme/ana", prompt))
	}
	first, err := o.List(t.Context(), tickets.ListQuery{Tenant: "acme", Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	o.propose(t, newDemand("r9", "acme/ana", "measure the garden"))
	if err := o.bucket.Delete(t.Context(), tickets.Key("id-002")); err != nil {
		t.Fatal(err)
	}
	second, err := o.List(t.Context(), tickets.ListQuery{Tenant: "acme", Limit: 2, Cursor: first.NextCursor})
	if err != nil {
		t.Fatal(err)
	}
	if got := append(idsOf(first), idsOf(second)...); !cmp.Equal(got, []string{"id-004", "id-003", "id-001"}) {
		t.Errorf("got %v, want the remaining tickets", got)
	}
}

func TestList_RejectsInvalidQueries(t *testing.T) {
	o := newServiceFixture(t)
	for pointer, queries := range map[string][]tickets.ListQuery{
		"/limit":  {{Limit: -1}, {Limit: 1001}},
		"/status": {{Status: "other"}},
		"/cursor": {{Cursor: "x"}, {Cursor: "%%"}, {Cursor: "eCB5"}, {Cursor: strings.Repeat("A", 5000)}},
	} {
		for _, q := range queries {
			_, err := o.List(t.Context(), q)
			e, ok := errors.AsType[*contract.Error](err)
			if !ok || e.Code != contract.CodeInvalidRequest || e.Details[0].Pointer != pointer {
				t.Errorf("%+v: got %v, want invalid_request at %s", q, err, pointer)
			}
		}
	}
}

func TestClose_ClosesTicketOnce(t *testing.T) {
	o := newServiceFixture(t)
	p := o.propose(t, newDemand("r1", "acme/ana", "book a flight"))
	got, err := o.Close(t.Context(), p.TicketID, " flight_agent is there now \n")
	if err != nil || got.Status != contract.TicketClosed || got.ClosedAt == nil || got.Note != "flight_agent is there now" {
		t.Errorf("got %+v (%v), want it closed with the note", got, err)
	}
	again, err := o.Close(t.Context(), p.TicketID, "another note")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("closed twice (-once +twice):\n%s", diff)
	}
	if p := o.propose(t, newDemand("r2", "acme/ana", "book a flight")); p.Joined {
		t.Errorf("got %+v, want a new ticket", p)
	}
	if _, err := o.Close(t.Context(), p.TicketID, strings.Repeat("x", 1001)); err == nil {
		t.Error("got no error for a note that is too long")
	}
}

// Of calls at the same time, one closes the ticket.
func TestCloseTicket_ReportsWhichCallClosed(t *testing.T) {
	o := newServiceFixture(t)
	id := o.propose(t, newDemand("r1", "acme/ana", "book a flight")).TicketID
	var closings atomic.Int32
	run.ForEach(t.Context(), 8, 8, func(ctx context.Context, _ int) {
		got, closed, err := o.CloseTicket(ctx, id, "", reader("acme"))
		if err != nil || got.Status != contract.TicketClosed {
			t.Errorf("got %+v, %v, want it closed", got, err)
		}
		if closed {
			closings.Add(1)
		}
	})
	if n := closings.Load(); n != 1 {
		t.Errorf("got %d calls that closed the ticket, want 1", n)
	}
}

// A call that closes the ticket reports it, even if the store cannot be read afterwards.
func TestCloseTicket_DoesNotReadAfterwards(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var closing atomic.Bool
	bucket, err := teststore.Open(t).Bucket(t.Context(), store.BucketConfig{Name: "TICKETS", OnWrite: func(string, int) {
		if closing.Load() {
			cancel()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	o := newServiceFixture(t, func(c *tickets.Config) { c.Bucket = bucket })
	id := o.propose(t, newDemand("r1", "acme/ana", "book a flight")).TicketID
	closing.Store(true)
	got, closed, err := o.CloseTicket(ctx, id, "done", reader("acme"))
	if err != nil || !closed || got.Note != "done" || ctx.Err() == nil {
		t.Errorf("got %+v, closed %v, %v, want it closed", got, closed, err)
	}
}

// An invalid id is not found, even if it is a valid key of the bucket.
func TestGet_RejectsInvalidIDs(t *testing.T) {
	o := newServiceFixture(t)
	for _, id := range []string{"", "a.b", "*", ">", "a b", "../x", "é", strings.Repeat("x", 65), "id-404"} {
		if _, err := o.Get(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("Get(%q): got %v, want %v", id, err, store.ErrNotFound)
		}
		if _, err := o.Close(t.Context(), id, ""); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("Close(%q): got %v, want %v", id, err, store.ErrNotFound)
		}
	}
}

func TestEraseRequest_RemovesText(t *testing.T) {
	o := newServiceFixture(t)
	p := o.propose(t, newDemand("r1", "acme/ana", "book a flight to Wonderland"))
	o.propose(t, newDemand("r2", "acme/bob", "book a flight for Monday"))
	alone := o.propose(t, newDemand("r3", "acme/ana", "compose a lullaby"))

	if err := o.EraseRequest(t.Context(), "r1"); err != nil {
		t.Fatal(err)
	}
	got := o.get(t, p.TicketID)
	if got.Count != 2 || len(got.Examples) != 1 || got.Title != "book a flight for Monday" || len(got.Nearest) != 1 {
		t.Errorf("got %+v, want the counts and the words of the other requests", got)
	}
	e, err := o.bucket.Get(t.Context(), tickets.Key(p.TicketID))
	if err != nil || strings.Contains(strings.ToLower(string(e.Value)), "wonderland") || strings.Contains(string(e.Value), `"r1"`) {
		t.Errorf("got the erased text in the store (%v): %s", err, e.Value)
	}
	// A ticket is deleted with its only request.
	if err := o.EraseRequest(t.Context(), "r3"); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Get(t.Context(), alone.TicketID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v, want %v", err, store.ErrNotFound)
	}
	// The text is also removed from a closed ticket, by a process that has not seen the request; of
	// two requests only the count remains.
	if _, err := o.Close(t.Context(), p.TicketID, ""); err != nil {
		t.Fatal(err)
	}
	o.reopen(t)
	if err := o.EraseRequest(t.Context(), "r2"); err != nil {
		t.Fatal(err)
	}
	if got := o.get(t, p.TicketID); got.Count != 2 || len(got.Examples) != 0 || got.Title != "(erased)" || strings.Contains(got.SuggestedYAML, "Monday") {
		t.Errorf("got %+v, want counts only", got)
	}
	for _, id := range []string{"r1", "nobody's", ""} {
		if err := o.EraseRequest(t.Context(), id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
}
