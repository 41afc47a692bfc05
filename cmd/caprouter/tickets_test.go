package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/restclient"
	"github.com/caprouter/caprouter/internal/cli/ticketreport"
)

const suggested = `version: 1
clients:
  flight_agent:
    match: { intent: [book_flight], domains: [flight] }
`

// ticketServer answers like a router with these tickets, and stores the line and body of the last
// request.
type ticketServer struct {
	*httptest.Server
	tickets    []contract.Ticket
	line, body string
}

func newTicketServer(t *testing.T, tickets ...contract.Ticket) *ticketServer {
	t.Helper()
	s := &ticketServer{tickets: tickets}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	t.Setenv("CAPROUTER_URL", s.URL)
	return s
}

func (s *ticketServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.line, s.body = r.Method+" "+r.URL.RequestURI(), string(body)
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == restclient.TicketsPath {
		page := contract.TicketPage{}
		for i := range s.tickets { // one page for each
			if cursor := r.URL.Query().Get("cursor"); cursor == "" && i == 0 || cursor == fmt.Sprint(i) {
				page.Tickets = s.tickets[i : i+1]
				if i+1 < len(s.tickets) {
					page.NextCursor = fmt.Sprint(i + 1)
				}
			}
		}
		_ = json.NewEncoder(w).Encode(page)
		return
	}
	for i := range s.tickets {
		if strings.HasPrefix(r.URL.Path, ticketPath(s.tickets[i].TicketID)) {
			_ = json.NewEncoder(w).Encode(s.tickets[i])
			return
		}
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, `{"title":"Not found","status":404,"code":"not_found","detail":"there is no such ticket"}`)
}

// runTickets runs caprouter tickets ARGS… and returns its output.
func runTickets(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := newTicketsCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func sampleTickets() []contract.Ticket {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return []contract.Ticket{
		{
			TicketID: "t1", Tenant: "acme", Status: contract.TicketOpen, Title: "book a flight\x1b[31m", Count: 12, Callers: 100, CreatedAt: at, LastAt: at.Add(time.Hour),
			SuggestedYAML: suggested, Requirements: []string{"serve book_flight"}, Risks: []string{"few examples"},
			Examples: []contract.TicketExample{{Prompt: "book a flight\nto Lisbon"}},
			Nearest:  []contract.NearestMiss{{AgentID: "travel_agent", Score: 0.5, MissingScore: 0.15}},
		},
		{TicketID: "t2", Status: contract.TicketOpen, Title: "sing", Count: 1, Callers: 1, CreatedAt: at, LastAt: at, SuggestedYAML: "broken: ["},
	}
}

func TestTickets_List(t *testing.T) {
	s := newTicketServer(t, sampleTickets()...)
	got, err := runTickets(t, "list")
	if err != nil {
		t.Fatal(err)
	}
	want := `LAST (UTC)  TICKET  STATUS  REQUESTS  CALLERS
2026-01-02  t1      open          12  100+
            book_flight: book a flight�[31m
2026-01-02  t2      open           1  1
            sing
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if want := "GET /api/v1/tickets?cursor=1&limit=99&status=open"; s.line != want {
		t.Errorf("got last request %s, want %s", s.line, want)
	}
	if _, err := runTickets(t, "list", "--status", "all", "--limit", "1", "--json"); err != nil || s.line != "GET /api/v1/tickets?limit=1" {
		t.Errorf("got %s (%v), want one page of any status", s.line, err)
	}
}

func TestTickets_Show(t *testing.T) {
	newTicketServer(t, sampleTickets()...)
	got, err := runTickets(t, "show", "t1")
	if err != nil {
		t.Fatal(err)
	}
	want := `ticket    t1
status    open
tenant    acme
title     book a flight�[31m
requests  12, from 2026-01-02 03:04 UTC to 2026-01-02 04:04 UTC
callers   100+
nearest   travel_agent 0.50: 0.15 short

examples
  - book a flight; to Lisbon

requirements
  - serve book_flight

risks
  - few examples

suggested registry

` + suggested
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if got, err := runTickets(t, "show", "--yaml", "t1"); err != nil || got != suggested {
		t.Errorf("got %q (%v), want the registry only", got, err)
	}
	if _, err := runTickets(t, "show", "a/../b c"); err == nil || !strings.Contains(err.Error(), "not_found") {
		t.Errorf("got %v, want not_found", err)
	}
}

func TestTickets_Close(t *testing.T) {
	s := newTicketServer(t, sampleTickets()...)
	got, err := runTickets(t, "close", "t2", "--note", "it is there now")
	if err != nil || got != "closed t2, a ticket of 1 request: sing\n" {
		t.Errorf("got %q (%v)", got, err)
	}
	if s.line != "POST /api/v1/tickets/t2/close" || s.body != `{"note":"it is there now"}` {
		t.Errorf("got %s %s", s.line, s.body)
	}
}

// If no router is reachable, the error contains the address as entered.
func TestTickets_WithoutRouter(t *testing.T) {
	s := newTicketServer(t)
	s.Close()
	for _, args := range [][]string{{"list"}, {"demand"}, {"show", "t1"}} {
		if _, err := runTickets(t, args...); err == nil || !strings.Contains(err.Error(), "no router answers at "+s.URL+": ") {
			t.Errorf("%q: got %v, want the address %s only", args, err, s.URL)
		}
	}
}

func TestTickets_Usage(t *testing.T) {
	newTicketServer(t)
	for _, args := range [][]string{
		{"list", "x"},
		{"list", "--status", "new"},
		{"list", "--limit", "0"},
		{"show"},
		{"show", "a", "b"},
		{"close"},
		{"demand", "--limit", "0"},
		{"demand", "x"},
		{"other"},
	} {
		if _, err := runTickets(t, args...); err == nil {
			t.Errorf("%q: got no error, want one", args)
		}
	}
	for args, want := range map[string]string{"list": "no tickets\n", "demand": "no open tickets: "} {
		if got, err := runTickets(t, args); err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q (%v), want %q", args, got, err, want)
		}
	}
}

func TestTickets_Demand(t *testing.T) {
	list := sampleTickets()
	list[0].CreatedAt = time.Now()
	list[0].PerDay = []contract.DayCount{{Day: time.Now().UTC().Format(time.DateOnly), Count: 3}}
	newTicketServer(t, list...)
	got, err := runTickets(t, "demand")
	if err != nil {
		t.Fatal(err)
	}
	want := `#  LAST (UTC)  TICKET  COUNT  FROM  SHARE  TREND
1  2026-01-02  t1         12  100+  100 %  new +3
   book_flight: book a flight�[31m
   nearest agent travel_agent 0.50: 0.15 short
2  2026-01-02  t2          1     1    0 %  quiet
   sing
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	got, err = runTickets(t, "demand", "--limit", "1", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var ranking struct{ Demand []ticketreport.RankedTicket }
	if err := json.Unmarshal([]byte(got), &ranking); err != nil || len(ranking.Demand) != 1 || ranking.Demand[0].TicketID != "t1" {
		t.Errorf("got %s (%v), want t1 only", got, err)
	}
}
