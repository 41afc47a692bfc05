package history_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
)

func TestService_FiltersDecisions(t *testing.T) {
	f := newFixture(t)
	first, second := f.record(t, alice, "payer"), f.record(t, alice, "payer", "second")
	for _, tt := range []struct {
		name   string
		query  contract.DecisionQuery
		caller *contract.Caller
		want   []string
	}{
		{"owner", contract.DecisionQuery{}, alice, []string{first, second}},
		{"colleague with one agent", contract.DecisionQuery{}, limited, []string{first}},
		{"another tenant", contract.DecisionQuery{}, foreign, nil},
		{"by agent", contract.DecisionQuery{Agent: "second"}, alice, []string{second}},
		{"by hidden agent", contract.DecisionQuery{Agent: "second"}, limited, nil},
		{"by outcome", contract.DecisionQuery{Outcome: contract.StatusFailed}, alice, nil},
	} {
		page, err := f.Decisions(t.Context(), tt.query, tt.caller)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for i := range page.Decisions {
			ids = append(ids, page.Decisions[i].RequestID)
		}
		if diff := cmp.Diff(tt.want, ids); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	policy := "B"
	unsure := f.recordDecision(t, alice, &contract.Decision{FallbackUsed: &policy, Classification: contract.Classification{
		Intent: "pay", Confidence: 0.4, Source: contract.SourceLexical,
	}})
	sure := f.recordDecision(t, alice, &contract.Decision{Chosen: []string{"payer"}, Classification: contract.Classification{
		Intent: "pay", Confidence: 0.7, Source: contract.SourceLLM,
	}})
	f.log.records = append(f.log.records, audit.Record{Kind: audit.KindOutcome, RequestID: newID(t), Subject: alice.Subject, Tenant: alice.Tenant}) // erased
	for _, tt := range []struct {
		name  string
		query contract.DecisionQuery
		want  []string
	}{
		{"by intent", contract.DecisionQuery{Intent: "pay"}, []string{unsure, sure}},
		{"below", contract.DecisionQuery{Intent: "pay", Below: 0.7}, []string{unsure}},
		{"by source", contract.DecisionQuery{Source: contract.SourceLLM}, []string{sure}},
		{"by any fallback", contract.DecisionQuery{Fallback: contract.AnyFallback}, []string{unsure}},
		{"by policy", contract.DecisionQuery{Fallback: "B"}, []string{unsure}},
		{"by another policy", contract.DecisionQuery{Fallback: "C"}, nil},
		{"by request", contract.DecisionQuery{RequestID: sure}, []string{sure}},
		{"by unknown request", contract.DecisionQuery{RequestID: newID(t)}, nil},
	} {
		page, err := f.Decisions(t.Context(), tt.query, alice)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for i := range page.Decisions {
			ids = append(ids, page.Decisions[i].RequestID)
		}
		if diff := cmp.Diff(tt.want, ids); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	f.log.err = errors.New("broken")
	if _, err := f.Decisions(t.Context(), contract.DecisionQuery{}, alice); errorCode(err) != contract.CodeOverloaded {
		t.Errorf("got %v from a broken log, want overloaded", err)
	}
}
