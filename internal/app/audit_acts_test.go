package app

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/tickets"
	"github.com/caprouter/caprouter/router"
)

// acts returns the records of an event in the audit log, newest first.
func (s *testServer) acts(event string) (entries []contract.AuditEntry) {
	s.t.Helper()
	var page contract.AuditPage
	if err := json.Unmarshal([]byte(s.get("/api/v1/audit?kind=admin")), &page); err != nil {
		s.t.Fatal(err)
	}
	for _, e := range page.Entries {
		if e.Event == event {
			entries = append(entries, e)
		}
	}
	return entries
}

func TestAudit_RecordsClosingOfTickets(t *testing.T) {
	s := startServer(t, "clients:\n"+entry("counter", "count_words", "prose", refusing)+"fallback: { policy: C }\n")
	var resp contract.Response
	_, _, data := s.send(http.MethodPost, "/api/v1/route", "", `{"content":{"prompt":"book a table for two tonight"}}`)
	if err := json.Unmarshal(data, &resp); err != nil || resp.Data.Proposal == nil {
		t.Fatalf("got %s, error %v, want a ticket", data, err)
	}
	ticket := resp.Data.Proposal.TicketID
	for range 2 { // the second time changes nothing
		if status, _, data := s.send(http.MethodPost, "/api/v1/tickets/"+ticket+"/close", "", `{"note":"ask ana@example.com"}`); status != http.StatusOK {
			t.Fatalf("got %d %s", status, data)
		}
	}
	acts := s.acts("close_ticket")
	if len(acts) != 1 || acts[0].Actor != "local" || acts[0].Detail != "ticket "+ticket {
		t.Errorf("got %+v, want one act of the local caller on ticket %s", acts, ticket)
	}
}

// Of two calls that close a ticket at the same time, one is recorded.
func TestAudit_RecordsClosingOnce(t *testing.T) {
	s := startServer(t, "clients:\n"+entry("counter", "count_words", "prose", refusing)+"fallback: { policy: C }\n")
	var resp contract.Response
	_, _, data := s.send(http.MethodPost, "/api/v1/route", "", `{"content":{"prompt":"book a table for two tonight"}}`)
	if err := json.Unmarshal(data, &resp); err != nil || resp.Data.Proposal == nil {
		t.Fatalf("got %s, error %v, want a ticket", data, err)
	}
	p, reached := s.core.persistence, make(chan struct{}, 2)
	service, err := tickets.Open(t.Context(), tickets.Config{Bucket: p.buckets.tickets, NewID: router.NewID, MaskText: func(note string) string {
		reached <- struct{}{}
		testkit.Eventually(t, "both calls have found the ticket", func() bool { return len(reached) == 2 })
		return note
	}})
	if err != nil {
		t.Fatal(err)
	}
	audited := auditedTickets{service, actRecorder{p.auditLog, slog.New(slog.DiscardHandler)}}
	run.ForEach(t.Context(), 2, 2, func(ctx context.Context, _ int) {
		if _, err := audited.CloseTicket(ctx, resp.Data.Proposal.TicketID, "", &contract.Caller{Subject: "ana", Scopes: []string{contract.ScopeAdmin}}); err != nil {
			t.Error(err)
		}
	})
	if acts := s.acts("close_ticket"); len(acts) != 1 {
		t.Errorf("got %+v, want one act", acts)
	}
}

func TestAudit_RecordsChangesOfSigningKeys(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s := startServer(t, "clients: {}\n", func(c *config.Config) { c.DataDir = dir })
	first := s.core.keys.KeyID()
	for n, revoke := range []bool{false, true} {
		done, err := RotateKeys(config.Config{DataDir: dir}, revoke)
		if err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "the router records the rotation", func() bool { return len(s.acts("rotate_keys")) > n })
		got := s.acts("rotate_keys")[0]
		if !strings.HasPrefix(got.Detail, "added "+done.New.ID) || (strings.Contains(got.Detail, "; revoked ") && strings.Contains(got.Detail, first)) != revoke || got.Actor != "" {
			t.Errorf("got %+v, want the new key %s, and %s revoked: %t", got, done.New.ID, first, revoke)
		}
	}
}
