package orchestrations

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/pagination"
	"github.com/caprouter/caprouter/orchestrator"
)

// storeRuns stores a run of ana, of bob and of a caller of another tenant in each status, without
// a process that continues them, and returns a function that names them.
func storeRuns(t *testing.T, s *Service) (nameOf func(*contract.RunPage) string) {
	t.Helper()
	names := map[string]string{}
	at := time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC)
	for i, state := range []string{"running", "waiting", "done"} {
		for k, caller := range []contract.Caller{{Subject: "ana", Tenant: "acme"}, {Subject: "bob", Tenant: "acme"}, {Subject: "ana", Tenant: "rival"}} {
			sub := newSubmission()
			sub.Caller, sub.ID = &caller, fmt.Sprintf("%s%d%d", sub.ID[:len(sub.ID)-2], i, k)
			rec := newStoredRecord(sub)
			rec.CreatedAt = at.Add(time.Duration(3*i+k) * time.Minute)
			rec.State = orchestrator.StateExecute
			switch state {
			case "waiting":
				rec.Owner, rec.ParkedAt = "", at
				rec.Plan = &contract.Plan{Steps: []contract.PlanStep{{ID: "a", Action: "x.y"}}}
				rec.Steps = []orchestrator.Step{{State: orchestrator.StepGated, Gate: 2}}
				rec.Gates = []contract.ApprovalGate{
					{StepID: "a", Decision: contract.GateExpired}, {StepID: "a", Action: "x.y", ExpiresAt: time.Now().Add(time.Hour)},
				}
			case "done":
				rec.State, rec.EndedAt = orchestrator.StateDone, at
			default:
				rec.Owner = "another process"
			}
			if err := s.store.create(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
			if state == "done" {
				if err := s.store.close(t.Context(), rec.ID); err != nil {
					t.Fatal(err)
				}
			}
			names[rec.ID] = fmt.Sprintf("%s/%s/%s", caller.Tenant, caller.Subject, state)
		}
	}
	return func(page *contract.RunPage) string {
		var list []string
		for i := range page.Orchestrations {
			list = append(list, names[page.Orchestrations[i].OrchestrationID])
		}
		return strings.Join(list, " ")
	}
}

// The list contains the runs that Get returns, newest first.
func TestService_ListsVisibleRuns(t *testing.T) {
	s, _ := openService(t, &serviceConfig{servers: noServers{}, live: true})
	nameOf := storeRuns(t, s)
	ana := &contract.Caller{Subject: "ana", Tenant: "acme", Scopes: []string{contract.ScopeOrchestrate}}
	approver := &contract.Caller{Subject: "carol", Tenant: "acme", Scopes: []string{contract.ScopeApprove}}
	for _, tt := range []struct {
		name   string
		caller *contract.Caller
		query  contract.RunQuery
		want   string
	}{
		{"own", ana, contract.RunQuery{}, "acme/ana/done acme/ana/waiting acme/ana/running"},
		{"another caller", &contract.Caller{Subject: "carol", Tenant: "acme", Scopes: []string{contract.ScopeOrchestrate}}, contract.RunQuery{}, ""},
		{"approver", approver, contract.RunQuery{Status: contract.OrchestrationWaiting}, "acme/bob/waiting acme/ana/waiting"},
		{"approver of another tenant", &contract.Caller{Subject: "ana", Tenant: "rival", Scopes: []string{contract.ScopeApprove}}, contract.RunQuery{Status: contract.OrchestrationRunning}, "rival/ana/running"},
		{"operator", &contract.Caller{Subject: "root", Scopes: []string{contract.ScopeAdmin}}, contract.RunQuery{Status: contract.OrchestrationDone}, "rival/ana/done acme/bob/done acme/ana/done"},
		{"none in the status", ana, contract.RunQuery{Status: contract.OrchestrationFailed}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			page, err := s.List(t.Context(), tt.query, tt.caller)
			if err != nil {
				t.Fatal(err)
			}
			if got := nameOf(page); got != tt.want || page.NextCursor != "" {
				t.Errorf("got %q and cursor %q, want %q and none", got, page.NextCursor, tt.want)
			}
		})
	}
}

// Pages of any size contain each run once, in the same order.
func TestService_ListsPages(t *testing.T) {
	s, _ := openService(t, &serviceConfig{servers: noServers{}, live: true})
	nameOf := storeRuns(t, s)
	for _, status := range []contract.OrchestrationStatus{"", contract.OrchestrationWaiting} {
		all, err := s.List(t.Context(), contract.RunQuery{Status: status}, &contract.Caller{AllScopes: true})
		if err != nil {
			t.Fatal(err)
		}
		for limit := 1; limit <= len(all.Orchestrations); limit++ {
			var joined contract.RunPage
			for cursor, pages := "", 0; pages == 0 || cursor != "" && pages < 10; pages++ {
				page, err := s.List(t.Context(), contract.RunQuery{Status: status, Limit: limit, Cursor: cursor}, &contract.Caller{AllScopes: true})
				if err != nil {
					t.Fatal(err)
				}
				if len(page.Orchestrations) > limit {
					t.Errorf("got %d runs in a page of %d", len(page.Orchestrations), limit)
				}
				joined.Orchestrations = append(joined.Orchestrations, page.Orchestrations...)
				cursor = page.NextCursor
			}
			if got, want := nameOf(&joined), nameOf(all); got != want {
				t.Errorf("pages of %d: got %q, want %q", limit, got, want)
			}
		}
	}
}

func TestService_ListRejectsInvalidQueries(t *testing.T) {
	s, _ := openService(t, &serviceConfig{servers: noServers{}})
	for _, q := range []contract.RunQuery{{Limit: -1}, {Limit: pagination.MaxSize + 1}, {Cursor: "a"}} {
		if _, err := s.List(t.Context(), q, &contract.Caller{AllScopes: true}); err == nil {
			t.Errorf("%+v: got no error", q)
		}
	}
}

// A list contains the gates that wait, and the beginning of a long goal.
func TestSummarize(t *testing.T) {
	rec := newStoredRecord(newSubmission())
	rec.Goal.Goal = strings.Repeat("é", maxListedGoal+1)
	rec.Gates = []contract.ApprovalGate{{StepID: "a", Decision: contract.GateApprove}, {StepID: "b"}}
	got := summarize(rec)
	if want := strings.Repeat("é", maxListedGoal) + "…"; got.Goal != want {
		t.Errorf("got goal %q, want %q", got.Goal, want)
	}
	if diff := cmp.Diff([]contract.ApprovalGate{{StepID: "b"}}, got.Gates); diff != "" {
		t.Errorf("gates (-want +got):\n%s", diff)
	}
	rec.State = orchestrator.StateFailed
	if got := summarize(rec); got.Gates != nil {
		t.Errorf("got gates %v of a run that has ended, want none", got.Gates)
	}
}
