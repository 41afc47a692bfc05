package history_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/store"
)

const auditedRequest = "01980c1a-7c00-7a3e-9d41-5f2b6c7d8e90"

// auditRecords returns records of all kinds, oldest first. Each has a name as its trace id.
func auditRecords() []audit.Record {
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	record := func(name string, kind audit.Kind, tenant, subject string, change func(*audit.Record)) audit.Record {
		rec := audit.Record{Kind: kind, At: at, TraceID: name, Tenant: tenant, Subject: subject}
		if change != nil {
			change(&rec)
		}
		return rec
	}
	agents := func(ids ...string) func(*audit.Record) { return func(rec *audit.Record) { rec.Agents = ids } }
	event := func(event audit.Event) func(*audit.Record) {
		return func(rec *audit.Record) { rec.Event, rec.Agents, rec.Note = event, []string{"payer"}, "one" }
	}
	call := func(tool string, agents ...string) func(*audit.Record) {
		return func(rec *audit.Record) { rec.Action, rec.Agents, rec.RequestID = tool, agents, auditedRequest }
	}
	return []audit.Record{
		record("start", audit.KindAdmin, "", "", func(rec *audit.Record) { rec.Event = audit.EventStart }),
		record("evict", audit.KindAdmin, "acme", "", func(rec *audit.Record) {
			rec.Event, rec.Chain, rec.UpTo = audit.EventEvict, "other", &audit.ChainPosition{Record: 7}
		}),
		record("decision", audit.KindDecision, "acme", "ana", agents("payer")),
		record("payer", audit.KindOutcome, "acme", "ana", agents("payer")),
		record("two agents", audit.KindOutcome, "acme", "ana", agents("payer", "second")),
		record("no agent", audit.KindOutcome, "acme", "ana", nil),
		record("other tenant", audit.KindOutcome, "evil", "ana", agents("payer")),
		record("other issuer", audit.KindOutcome, "acme", "ana", func(rec *audit.Record) { rec.Issuer, rec.Agents = "idp", []string{"second"} }),
		record("tool", audit.KindToolCall, "acme", "ana", call("files.read")),
		record("tool of an agent", audit.KindToolCall, "acme", "ana", call("files.read", "second")),
		record("run", audit.KindRun, "acme", "ana", func(rec *audit.Record) {
			rec.RequestID, rec.OrchestrationID, rec.Note, rec.Action = auditedRequest, "run-1", "policy_allow read only", "files.read"
		}),
		record("feedback", audit.KindFeedback, "acme", "ana", func(rec *audit.Record) {
			rec.Note, rec.Agents = string(contract.VerdictMisroute), []string{"payer", "second"}
		}),
		record("disable", audit.KindAdmin, "acme", "ana", event(audit.EventDisable)),
		record("disable by another tenant", audit.KindAdmin, "ops", "olga", event(audit.EventDisable)),
	}
}

// listAudit returns the names of the entries for the caller, oldest first.
func listAudit(t *testing.T, q contract.AuditQuery, caller *contract.Caller) (names []string) {
	t.Helper()
	f := newFixture(t)
	f.log.records = auditRecords()
	page, err := f.AuditEntries(t.Context(), q, caller)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range slices.Backward(page.Entries) {
		names = append(names, e.TraceID)
	}
	return names
}

func TestAuditEntries_AreLimitedToTheCaller(t *testing.T) {
	var all []string
	for _, rec := range auditRecords() {
		all = append(all, rec.TraceID)
	}
	caller := func(tenant, subject string, scopes ...string) *contract.Caller {
		return &contract.Caller{Tenant: tenant, Subject: subject, Scopes: scopes}
	}
	everyAgent := caller("acme", "ben")
	everyAgent.AllAgents = true
	for _, tt := range []struct {
		name   string
		caller *contract.Caller
		want   []string
	}{
		{"administrator", caller("ops", "root", contract.ScopeAdmin), all},
		{"the actor, without agents", caller("acme", "ana"), []string{"decision", "payer", "two agents", "no agent", "tool", "tool of an agent", "run", "feedback", "disable"}},
		{"another caller of the tenant", caller("acme", "ben"), []string{"no agent"}},
		{"one that may use an agent", caller("acme", "ben", "agent:payer"), []string{"payer", "no agent"}},
		{"one that may use two agents", caller("acme", "ben", "agent:payer", "agent:second"), []string{"payer", "two agents", "no agent", "other issuer"}},
		{"one that may use every agent", everyAgent, []string{"decision", "payer", "two agents", "no agent", "other issuer"}},
		{"one that may call the tool", caller("acme", "ben", "mcp:invoke:files.read"), []string{"no agent", "tool"}},
		{"one that may call another tool", caller("acme", "ben", "mcp:invoke:files.write"), []string{"no agent"}},
		{"one that may approve", caller("acme", "ben", contract.ScopeApprove), []string{"no agent", "run"}},
		{"the same subject of another tenant", caller("evil", "ana"), []string{"other tenant"}},
		{"a third tenant", caller("none", "ana", "agent:payer", contract.ScopeApprove), nil},
		{"the administrator of another tenant, later without the scope", caller("ops", "olga"), []string{"disable by another tenant"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, listAudit(t, contract.AuditQuery{}, tt.caller)); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			// A filter reveals no more.
			for name, q := range map[string]contract.AuditQuery{
				"agent": {Agent: "second"}, "tool": {Tool: "files.read"}, "actor": {Actor: "ana"}, "request": {RequestID: auditedRequest},
				"kind": {Kinds: contract.AuditKinds()},
			} {
				for _, got := range listAudit(t, q, tt.caller) {
					if !slices.Contains(tt.want, got) {
						t.Errorf("%s: got %q, which the caller may not see", name, got)
					}
				}
			}
		})
	}
}

func TestAuditEntries_Filters(t *testing.T) {
	for _, tt := range []struct {
		name  string
		query contract.AuditQuery
		want  []string
	}{
		{"kind", contract.AuditQuery{Kinds: []contract.AuditKind{contract.AuditToolCall}}, []string{"tool", "tool of an agent"}},
		{"kinds", contract.AuditQuery{Kinds: []contract.AuditKind{contract.AuditFeedback, contract.AuditRun}}, []string{"run", "feedback"}},
		{"actor", contract.AuditQuery{Actor: "olga"}, []string{"disable by another tenant"}},
		{"agent", contract.AuditQuery{Agent: "second"}, []string{"two agents", "other issuer", "tool of an agent", "feedback"}},
		{"tool", contract.AuditQuery{Tool: "files.read"}, []string{"tool", "tool of an agent", "run"}},
		{"request", contract.AuditQuery{RequestID: auditedRequest}, []string{"tool", "tool of an agent", "run"}},
		{"orchestration", contract.AuditQuery{RequestID: "run-1"}, []string{"run"}},
		{"several", contract.AuditQuery{RequestID: auditedRequest, Agent: "second", Actor: "ana"}, []string{"tool of an agent"}},
		{"none", contract.AuditQuery{Actor: "nina"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, listAudit(t, tt.query, &contract.Caller{AllScopes: true})); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
		})
	}
}

// A caller that may not see an agent any more does not see it in its own feedback.
func TestAuditEntries_HideExpectedAgents(t *testing.T) {
	f := newFixture(t)
	f.log.records = auditRecords()
	caller := &contract.Caller{Tenant: "acme", Subject: "ana", Scopes: []string{"agent:payer"}}
	page, err := f.AuditEntries(t.Context(), contract.AuditQuery{Kinds: []contract.AuditKind{contract.AuditFeedback}}, caller)
	if err != nil || len(page.Entries) != 1 {
		t.Fatalf("got %+v, error %v, want one entry", page, err)
	}
	if diff := cmp.Diff([]string{"payer"}, page.Entries[0].Agents); diff != "" {
		t.Errorf("agents (-want +got):\n%s", diff)
	}
	if got := listAudit(t, contract.AuditQuery{Kinds: []contract.AuditKind{contract.AuditFeedback}, Agent: "second"}, caller); got != nil {
		t.Errorf("got %v for a hidden agent, want nothing", got)
	}
}

func TestAuditEntries_ContainFacts(t *testing.T) {
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	caller := &contract.Caller{AllScopes: true}
	want := map[string]contract.AuditEntry{
		"evict": {
			ID: "main-2", Time: at, Kind: contract.AuditAdmin, Event: "evict", Tenant: "acme", Detail: "up to record 7 of chain other",
		},
		"tool": {
			ID: "main-9", Time: at, Kind: contract.AuditToolCall, RequestID: auditedRequest, Tenant: "acme", Actor: "ana", Tool: "files.read",
		},
		"run": {
			ID: "main-11", Time: at, Kind: contract.AuditRun, Event: "policy_allow", RequestID: auditedRequest, OrchestrationID: "run-1",
			Tenant: "acme", Actor: "ana", Tool: "files.read", Rule: "read only",
		},
		"feedback": {
			ID: "main-12", Time: at, Kind: contract.AuditFeedback, Tenant: "acme", Actor: "ana", Verdict: contract.VerdictMisroute,
			Agents: []string{"payer", "second"},
		},
		"disable": {
			ID: "main-13", Time: at, Kind: contract.AuditAdmin, Event: "disable", Tenant: "acme", Actor: "ana", Agents: []string{"payer"}, Instance: "one",
		},
		"other issuer": {
			ID: "main-8", Time: at, Kind: contract.AuditOutcome, Tenant: "acme", Actor: "ana", Issuer: "idp", Agents: []string{"second"},
		},
	}
	f := newFixture(t)
	f.log.records = auditRecords()
	page, err := history.ReadAuditEntries(t.Context(), &f.log, contract.AuditQuery{})
	if err != nil {
		t.Fatal(err)
	}
	if online, err := f.AuditEntries(t.Context(), contract.AuditQuery{}, caller); err != nil || !cmp.Equal(page, online) {
		t.Errorf("got other entries from the files, error %v:\n%s", err, cmp.Diff(page, online))
	}
	for i := range page.Entries {
		got := page.Entries[i]
		expected, ok := want[got.TraceID]
		if expected.TraceID = got.TraceID; !ok {
			continue
		}
		if diff := cmp.Diff(expected, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", got.TraceID, diff)
		}
		delete(want, got.TraceID)
	}
	if len(want) > 0 {
		t.Errorf("got no entries %v", want)
	}
}

func TestAuditEntries_Errors(t *testing.T) {
	f := newFixture(t)
	caller := &contract.Caller{AllScopes: true}
	for _, tt := range []struct {
		err  error
		want contract.Code
	}{
		{contract.InvalidRequest("/cursor", "is not a cursor"), contract.CodeInvalidRequest},
		{store.ErrUnavailable, contract.CodeOverloaded},
	} {
		f.log.err = tt.err
		_, err := f.AuditEntries(t.Context(), contract.AuditQuery{}, caller)
		if e, ok := errors.AsType[*contract.Error](err); !ok || e.Code != tt.want {
			t.Errorf("got error %v, want %s", err, tt.want)
		}
	}
}
