package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/replay"
)

func TestHandleDiff_ReplaysDecisions(t *testing.T) {
	var queries []contract.DecisionQuery
	backend := &fakeBackend{}
	logged, _ := backend.Decisions(t.Context(), contract.DecisionQuery{}, nil)
	logged.Decisions[0].Prompt = "review this python code"
	backend.later.decisions = func(q contract.DecisionQuery) (*contract.DecisionPage, error) {
		queries = append(queries, q)
		return logged, nil
	}
	srv := startServer(t, httpserver.Config{}, backend)
	diff := func(path, body string) *replay.Report {
		t.Helper()
		var report replay.Report
		got := srv.do(t, http.MethodPost, path, body, "Content-Type", "application/yaml")
		if err := json.Unmarshal(got.body, &report); err != nil || got.StatusCode != http.StatusOK {
			t.Fatalf("got %d %s, want a report: %v", got.StatusCode, got.body, err)
		}
		return &report
	}
	got := diff("/api/v1/registry/diff", "clients: {}")
	if got.Replayed != 1 || got.Changed != 1 || len(got.Changes) != 1 || got.Changes[0].After.Outcome != replay.OutcomeFallback {
		t.Errorf("got %+v, want one request without an agent", got)
	}
	if diff := cmp.Diff([]replay.NotReplayable{{Reason: replay.ReasonErased, Count: 1}}, got.NotReplayable); diff != "" {
		t.Errorf("not replayable (-want +got):\n%s", diff)
	}
	if since := time.Since(queries[0].Since).Hours() / 24; since < 6.9 || since > 7.1 {
		t.Errorf("got decisions since %.2f days, want 7", since)
	}
	queries = nil
	diff("/api/v1/registry/diff?since=2026-01-02T15:04:05Z&limit=7&cursor=abc", "clients: {}")
	want := contract.DecisionQuery{Since: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC), Limit: 7, Cursor: "abc"}
	if diff := cmp.Diff(want, queries[0]); diff != "" {
		t.Errorf("query (-want +got):\n%s", diff)
	}
}

func TestHandleDiff_RejectsLargeRegistries(t *testing.T) {
	srv := startServer(t, httpserver.Config{}, &fakeBackend{})
	var b strings.Builder
	b.WriteString("clients:\n")
	for i := range maxLintAgents + 1 {
		fmt.Fprintf(&b, "  agent_%d: {match: {intent: [x], domains: []}, endpoint: {protocol: http, url: \"http://127.0.0.1:1/\"}}\n", i)
	}
	p := problemOf(t, srv.do(t, "POST", "/api/v1/registry/diff", b.String(), "Content-Type", "application/yaml"))
	if p.Status != 422 || p.Code != contract.CodeInvalidRequest || !strings.Contains(p.Detail, "too large") {
		t.Errorf("got %+v, want 422 for a registry above the limit", p)
	}
}

func TestRegisteredAgents(t *testing.T) {
	s := testSnapshot()
	if got := registeredAgents(s); len(got) != 0 {
		t.Errorf("got %v for a registry file, want none", got)
	}
	fleet := *s.Fleet
	fleet.Agents = append([]*contract.RegistryEntry{{ID: "guest", Origin: contract.OriginRegistration}}, fleet.Agents...)
	if diff := cmp.Diff(map[string]bool{"guest": true}, registeredAgents(&capabilities.Snapshot{Catalogue: s.Catalogue, Fleet: &fleet})); diff != "" {
		t.Errorf("registered agents (-want +got):\n%s", diff)
	}
}
