package history_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/feedback"
	"github.com/caprouter/caprouter/internal/inflight"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

var operator = &contract.Caller{Subject: "root", Scopes: []string{contract.ScopeAdmin, contract.ScopeRouteSubmit}}

// withFeedback stores feedback in a real store.
func withFeedback(t *testing.T) func(*fixture) {
	return func(f *fixture) {
		b, err := teststore.Open(t).Bucket(t.Context(), store.BucketConfig{Name: "FEEDBACK", Keys: teststore.Keys()})
		if err != nil {
			t.Fatal(err)
		}
		f.feedback = feedback.NewStore(b, quota.Unlimited(), slog.New(slog.DiscardHandler))
	}
}

func agentWith(id, intent string) *contract.RegistryEntry {
	return &contract.RegistryEntry{ID: id, Match: contract.Match{Intent: []string{intent}}}
}

func misroute(comment string, expected ...string) *contract.FeedbackRequest {
	return &contract.FeedbackRequest{Verdict: contract.VerdictMisroute, ExpectedAgents: expected, Comment: comment}
}

func expectIntent(agent, intent string) *contract.FeedbackRequest {
	return &contract.FeedbackRequest{Verdict: contract.VerdictMisroute, ExpectedAgents: []string{agent}, ExpectedIntent: intent}
}

func correct() *contract.FeedbackRequest {
	return &contract.FeedbackRequest{Verdict: contract.VerdictCorrect}
}

func (f *fixture) give(t *testing.T, id string, req *contract.FeedbackRequest, caller *contract.Caller) *contract.Feedback {
	t.Helper()
	got, err := f.AddFeedback(t.Context(), id, req, caller)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// checkFeedback checks what a caller sees, without the times.
func (f *fixture) checkFeedback(t *testing.T, id string, caller *contract.Caller, want ...contract.Feedback) {
	t.Helper()
	resp, err := f.Request(t.Context(), id, caller)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, resp.Feedback, cmpopts.IgnoreFields(contract.Feedback{}, "At")); diff != "" {
		t.Errorf("feedback of the request for %s (-want +got):\n%s", caller.Subject, diff)
	}
}

func TestService_StoresAndReplacesFeedback(t *testing.T) {
	f := newFixture(t, withFeedback(t))
	id := f.record(t, alice, "payer")
	f.checkFeedback(t, id, alice)
	first := f.give(t, id, correct(), alice)
	if first.Verdict != contract.VerdictCorrect || first.Subject != "alice" || first.Tenant != "north" || first.At.IsZero() {
		t.Errorf("got %+v, want the verdict of alice", first)
	}
	second := f.give(t, id, misroute("ask ana@example.com", "second"), alice)
	want := contract.Feedback{
		Verdict: contract.VerdictMisroute, ExpectedAgents: []string{"second"}, Comment: "ask [EMAIL]", Tenant: "north", Subject: "alice",
	}
	f.checkFeedback(t, id, alice, want)
	if again := f.give(t, id, misroute("ask ana@example.com", "second"), alice); !again.At.Equal(second.At) {
		t.Errorf("same feedback again: got time %s, want that of the first, %s", again.At, second.At)
	}
	f.give(t, id, misroute("", "payer"), alice) // the verdict is the same
	f.give(t, id, misroute(""), alice)
	f.give(t, id, &contract.FeedbackRequest{Verdict: contract.VerdictMisroute, ExpectedNone: true}, alice)
	f.checkFeedback(t, id, alice, contract.Feedback{
		Verdict: contract.VerdictMisroute, ExpectedAgents: []string{}, ExpectedNone: true, Tenant: "north", Subject: "alice",
	})

	if diff := cmp.Diff([]contract.Verdict{contract.VerdictCorrect, contract.VerdictMisroute}, f.verdicts); diff != "" {
		t.Errorf("counted verdicts (-want +got):\n%s", diff)
	}
	var recorded []audit.Record
	for _, rec := range f.log.records {
		if rec.Kind == audit.KindFeedback {
			recorded = append(recorded, rec)
		}
	}
	wantRecord := audit.Record{Kind: audit.KindFeedback, RequestID: id, Tenant: "north", Subject: "alice"}
	wantRecords := []audit.Record{wantRecord, wantRecord, wantRecord, wantRecord, wantRecord}
	wantRecords[0].Note = "correct"
	wantRecords[1].Note, wantRecords[1].Agents = "misroute", []string{"second"}
	wantRecords[2].Note, wantRecords[2].Agents = "misroute", []string{"payer"}
	wantRecords[3].Note, wantRecords[4].Note = "misroute", "misroute none"
	if diff := cmp.Diff(wantRecords, recorded, cmpopts.IgnoreFields(audit.Record{}, "At"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("audit records (-want +got):\n%s", diff)
	}
	page, err := f.AuditEntries(t.Context(), contract.AuditQuery{Kinds: []contract.AuditKind{contract.AuditFeedback}}, alice)
	if err != nil || len(page.Entries) == 0 || page.Entries[0].Verdict != contract.VerdictMisroute || page.Entries[0].Detail != "no agent is expected" {
		t.Errorf("got %+v, error %v, want an entry of a misroute without an expected agent", page, err)
	}
}

func TestService_RejectsFeedback(t *testing.T) {
	f := newFixture(t, withFeedback(t))
	id := f.record(t, alice, "payer", "second")
	reader := &contract.Caller{Subject: "root", Scopes: []string{contract.ScopeAdmin}}
	restricted := &contract.Caller{Subject: "eve", Tenant: "north", Scopes: []string{"agent:payer"}}
	own := f.record(t, restricted, "payer")
	undecided, erased := newID(t), f.record(t, alice, "payer")
	f.inflight.Add(inflight.NewRequest(undecided, "", alice, func(error) {}))
	if err := f.Erase(t.Context(), erased, alice); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		id      string
		req     *contract.FeedbackRequest
		caller  *contract.Caller
		want    contract.Code
		pointer string
	}{
		{"unknown request", newID(t), correct(), alice, contract.CodeNotFound, ""},
		{"another tenant", id, correct(), foreign, contract.CodeNotFound, ""},
		{"hidden request", id, correct(), limited, contract.CodeNotFound, ""},
		{"a colleague", id, correct(), bob, contract.CodeForbidden, ""},
		{"an operator that only reads", id, correct(), reader, contract.CodeForbidden, ""},
		{"unknown agent", id, misroute("", "payer", "no_such_agent"), alice, contract.CodeInvalidRequest, "/expected_agents/1"},
		{"hidden agent", own, misroute("", "second"), restricted, contract.CodeInvalidRequest, "/expected_agents/0"},
		{"agent given twice", id, misroute("", "payer", "payer"), alice, contract.CodeInvalidRequest, "/expected_agents/1"},
		{"expected agent of a correct decision", id, &contract.FeedbackRequest{Verdict: contract.VerdictCorrect, ExpectedAgents: []string{"payer"}}, alice, contract.CodeInvalidRequest, "/expected_agents"},
		{"no agent of a correct decision", id, &contract.FeedbackRequest{Verdict: contract.VerdictCorrect, ExpectedNone: true}, alice, contract.CodeInvalidRequest, "/expected_none"},
		{"no agent and an agent", id, &contract.FeedbackRequest{Verdict: contract.VerdictMisroute, ExpectedNone: true, ExpectedAgents: []string{"payer"}}, alice, contract.CodeInvalidRequest, "/expected_none"},
		{"intent of another agent", id, expectIntent("second", "pay"), alice, contract.CodeInvalidRequest, "/expected_intent"},
		{"intent without an agent", id, &contract.FeedbackRequest{Verdict: contract.VerdictMisroute, ExpectedIntent: "pay"}, alice, contract.CodeInvalidRequest, "/expected_intent"},
		{"intent of two agents", id, &contract.FeedbackRequest{Verdict: contract.VerdictMisroute, ExpectedAgents: []string{"payer", "second"}, ExpectedIntent: "pay"}, alice, contract.CodeInvalidRequest, "/expected_intent"},
		{"not decided", undecided, correct(), alice, contract.CodeConflict, ""},
		{"erased", erased, misroute("a comment"), alice, contract.CodeConflict, ""},
	} {
		_, err := f.AddFeedback(t.Context(), tt.id, tt.req, tt.caller)
		if errorCode(err) != tt.want {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
			continue
		}
		e, _ := errors.AsType[*contract.Error](err)
		pointer := ""
		if len(e.Details) > 0 {
			pointer = e.Details[0].Pointer
		}
		if pointer != tt.pointer {
			t.Errorf("%s: got pointer %q, want %q", tt.name, pointer, tt.pointer)
		}
	}
	f.checkFeedback(t, id, alice)
	if len(f.verdicts) != 0 || slices.ContainsFunc(f.log.records, func(r audit.Record) bool { return r.Kind == audit.KindFeedback }) {
		t.Errorf("got rejected feedback counted (%v) or recorded", f.verdicts)
	}
}

// A caller sees the feedback of its tenant, without agents that are hidden from it.
func TestService_FiltersFeedback(t *testing.T) {
	f := newFixture(t, withFeedback(t))
	restricted := &contract.Caller{Subject: "eve", Tenant: "north", Scopes: []string{"agent:payer"}}
	id := f.record(t, restricted, "payer")
	f.give(t, id, correct(), restricted)
	f.give(t, id, misroute("wrong", "payer", "second"), operator)
	ofCaller := contract.Feedback{Verdict: contract.VerdictCorrect, ExpectedAgents: []string{}, Tenant: "north", Subject: "eve"}
	ofOperator := contract.Feedback{Verdict: contract.VerdictMisroute, ExpectedAgents: []string{"payer", "second"}, Comment: "wrong", Subject: "root"}
	f.checkFeedback(t, id, restricted, ofCaller)
	f.checkFeedback(t, id, operator, ofCaller, ofOperator)

	admin := &contract.Caller{Subject: "boss", Tenant: "north", Scopes: []string{contract.ScopeAdmin, contract.ScopeRouteSubmit}}
	f.give(t, id, misroute("", "payer", "second"), admin)
	ofAdmin := contract.Feedback{Verdict: contract.VerdictMisroute, ExpectedAgents: []string{"payer"}, Tenant: "north", Subject: "boss"}
	f.checkFeedback(t, id, restricted, ofCaller, ofAdmin)

	f.give(t, id, expectIntent("payer", "pay"), admin)
	ofAdmin.ExpectedIntent = "pay"
	f.checkFeedback(t, id, restricted, ofCaller, ofAdmin)
	f.give(t, id, expectIntent("second", "archive"), admin)
	ofAdmin.ExpectedAgents, ofAdmin.ExpectedIntent = []string{}, ""
	f.checkFeedback(t, id, restricted, ofCaller, ofAdmin)
}

func TestService_SelectsDecisionsByFeedback(t *testing.T) {
	f := newFixture(t, withFeedback(t))
	good, bad, none := f.record(t, alice, "payer"), f.record(t, alice, "payer"), f.record(t, alice, "payer")
	f.give(t, good, correct(), alice)
	f.give(t, bad, misroute("why", "second"), alice)
	f.give(t, none, misroute("seen by operators"), operator)
	for _, tt := range []struct {
		name   string
		query  contract.DecisionQuery
		caller *contract.Caller
		want   map[string]int // number of verdicts by request
	}{
		{"all", contract.DecisionQuery{}, alice, map[string]int{good: 1, bad: 1, none: 0}},
		{"misroute", contract.DecisionQuery{Feedback: contract.VerdictMisroute}, alice, map[string]int{bad: 1}},
		{"correct", contract.DecisionQuery{Feedback: contract.VerdictCorrect}, alice, map[string]int{good: 1}},
		{"misroute and agent", contract.DecisionQuery{Feedback: contract.VerdictMisroute, Agent: "second"}, alice, map[string]int{}},
		{"misroute, operator", contract.DecisionQuery{Feedback: contract.VerdictMisroute}, operator, map[string]int{bad: 1, none: 1}},
		{"another tenant", contract.DecisionQuery{Feedback: contract.VerdictMisroute}, foreign, map[string]int{}},
	} {
		page, err := f.Decisions(t.Context(), tt.query, tt.caller)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for i := range page.Decisions {
			got[page.Decisions[i].RequestID] = len(page.Decisions[i].Feedback)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestService_ErasesFeedback(t *testing.T) {
	f := newFixture(t, withFeedback(t))
	id := f.record(t, alice, "payer")
	f.give(t, id, misroute("a comment", "second"), alice)
	if err := f.Erase(t.Context(), id, alice); err != nil {
		t.Fatal(err)
	}
	f.checkFeedback(t, id, alice)
	if left, err := f.feedback.Of(t.Context(), id); err != nil || len(left) != 0 {
		t.Errorf("got feedback %+v, error %v, want none", left, err)
	}
}

// erasingStore erases the request before it stores the feedback.
type erasingStore struct {
	*feedback.Store
	erase func()
}

func (s *erasingStore) Put(ctx context.Context, id string, owner *contract.Caller, e feedback.Entry) (*contract.Feedback, error) {
	s.erase()
	return s.Store.Put(ctx, id, owner, e)
}

func TestService_ErasesFeedbackGivenDuringErasure(t *testing.T) {
	erasing := &erasingStore{}
	f := newFixture(t, withFeedback(t), func(f *fixture) {
		erasing.Store = f.feedback.(*feedback.Store)
		f.feedback = erasing
	})
	id := f.record(t, alice, "payer")
	erasing.erase = func() {
		if err := f.Erase(t.Context(), id, alice); err != nil {
			t.Error(err)
		}
	}
	if _, err := f.AddFeedback(t.Context(), id, misroute("a comment"), alice); errorCode(err) != contract.CodeConflict {
		t.Errorf("got %v, want conflict", err)
	}
	if left, err := f.feedback.Of(t.Context(), id); err != nil || len(left) != 0 {
		t.Errorf("got feedback %+v, error %v, want none", left, err)
	}
}

// unavailableStore cannot be read.
type unavailableStore struct{ *feedback.Store }

func (unavailableStore) Of(context.Context, string) ([]feedback.Entry, error) {
	return nil, store.ErrUnavailable
}

func (unavailableStore) All(context.Context) (map[string][]feedback.Entry, error) {
	return nil, store.ErrUnavailable
}

// Responses are returned although their feedback cannot be read.
func TestService_ReturnsRequestsWithoutReadableFeedback(t *testing.T) {
	f := newFixture(t, func(f *fixture) { f.feedback = unavailableStore{} })
	id := f.record(t, alice, "payer")
	f.checkFeedback(t, id, alice)
	if page, err := f.Decisions(t.Context(), contract.DecisionQuery{}, alice); err != nil || len(page.Decisions) != 1 {
		t.Errorf("got %+v, error %v, want one decision", page, err)
	}
	if _, err := f.Decisions(t.Context(), contract.DecisionQuery{Feedback: contract.VerdictCorrect}, alice); errorCode(err) != contract.CodeOverloaded {
		t.Errorf("by feedback: got %v, want overloaded", err)
	}
	if _, err := f.AddFeedback(t.Context(), id, correct(), alice); errorCode(err) != contract.CodeOverloaded {
		t.Errorf("new feedback: got %v, want overloaded", err)
	}
}
