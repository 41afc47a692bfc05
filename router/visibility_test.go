package router_test

import (
	"context"
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/router"
)

func caller(subject string, scopes ...string) *contract.Caller {
	return &contract.Caller{Subject: subject, Tenant: "north", Scopes: scopes}
}

// A colleague's request is visible if the caller may see every agent that executes or executed it.
func TestHistory_ShowsRequestIfCallerMaySeeItsAgents(t *testing.T) {
	h := newHarness(t)
	h.target.setBehaviour("payer", func(context.Context, dispatch.Call) dispatch.Outcome {
		return dispatch.Outcome{Attempts: 1, Err: &contract.TaskError{Code: contract.TaskAgentUnavailable, Detail: "down"}}
	})
	failedOver, err := h.Handle(t.Context(), newRequest(), alice)
	h.must(err)
	if len(failedOver.Tasks) != 1 || failedOver.Tasks[0].AgentID != "second" || failedOver.Tasks[0].Status != contract.TaskSuccess {
		t.Fatalf("got tasks %+v, want the standby's", failedOver.Tasks)
	}
	h.target.setBehaviour("payer", nil)
	done, err := h.Handle(t.Context(), newRequest(), alice)
	h.must(err)
	async := h.submit().RequestID
	h.final(async)
	h.classifier.proposal.Intent = "sing"
	unserved, err := h.Handle(t.Context(), newRequest(), alice)
	h.must(err)
	ids := map[string]string{"failed over": failedOver.RequestID, "done": done.RequestID, "async": async, "nobody": unserved.RequestID}

	tests := []struct {
		name   string
		caller *contract.Caller
		want   []string
	}{
		{"both agents", caller("bob", "agent:payer", "agent:second"), []string{"failed over", "done", "async", "nobody"}},
		{"the chosen agent", caller("bob", "agent:payer"), []string{"done", "async", "nobody"}},
		{"the standby", caller("bob", "agent:second"), []string{"nobody"}},
		{"no agent", caller("bob"), []string{"nobody"}},
		{"all agents", &contract.Caller{Subject: "bob", Tenant: "north", AllAgents: true}, []string{"failed over", "done", "async", "nobody"}},
		{"owner without scopes", caller("alice"), []string{"failed over", "done", "async", "nobody"}},
		{"same subject, other issuer", &contract.Caller{Subject: "alice", Tenant: "north", Issuer: "https://other.example"}, []string{"nobody"}},
		{"another tenant", &contract.Caller{Subject: "alice", AllAgents: true}, nil},
		{"administrator", &contract.Caller{Subject: "root", Scopes: []string{"admin"}}, []string{"failed over", "done", "async", "nobody"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			page, err := h.Decisions(t.Context(), contract.DecisionQuery{}, tt.caller)
			if err != nil {
				t.Fatal(err)
			}
			listed := map[string]bool{}
			for i := range page.Decisions {
				listed[page.Decisions[i].RequestID] = true
			}
			var got []string
			for _, name := range []string{"failed over", "done", "async", "nobody"} {
				id := ids[name]
				_, err := h.Request(t.Context(), id, tt.caller)
				if err == nil {
					got = append(got, name)
				} else if code(err) != contract.CodeNotFound {
					t.Errorf("%s: got %v, want not_found", name, err)
				}
				if listed[id] != (err == nil) {
					t.Errorf("%s: got listed in the decision log %t, found by id %t, want both equal", name, listed[id], err == nil)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("visible (-want +got):\n%s", diff)
			}
		})
	}
}

// The decision of a colleague's request contains only agents of the caller.
func TestHistory_FiltersDecisionOfColleague(t *testing.T) {
	h := newHarness(t)
	done, err := h.Handle(t.Context(), newRequest(), alice)
	h.must(err)
	if d := done.Decision; len(d.Standby) != 1 || d.TieBreak == nil || len(d.Candidates) != 2 {
		t.Fatalf("got %+v, want a standby with the same score", d)
	}
	got, err := h.Request(t.Context(), done.RequestID, caller("bob", "agent:payer"))
	h.must(err)
	if d := got.Decision; len(d.Standby) != 0 || d.TieBreak != nil || len(d.Candidates) != 1 || d.CandidatesTotal != 1 || len(d.Chosen) != 1 {
		t.Errorf("got %+v, want payer only", d)
	}
	if got.Data.Answer != done.Data.Answer || len(got.Data.Results) != 1 {
		t.Errorf("got %+v, want the whole answer", got.Data)
	}
	again, err := h.Request(t.Context(), done.RequestID, alice)
	if err != nil || len(again.Decision.Standby) != 1 {
		t.Errorf("got %+v, %v, want the stored request unchanged by a filtered view", again, err)
	}
}

// A running request is hidden from a caller that may not see one of the agents that may still get
// it.
func TestHistory_HidesRunningRequestWithHiddenStandby(t *testing.T) {
	h := newHarness(t)
	h.target.setBehaviour("payer", h.target.acceptLater)
	id := h.submit().RequestID
	c := testkit.Receive(t, h.target.begun)
	some, all := caller("bob", "agent:payer"), caller("bob", "agent:payer", "agent:second")
	if _, err := h.Request(t.Context(), id, some); code(err) != contract.CodeNotFound {
		t.Errorf("caller without the standby: got %v, want not_found", err)
	}
	if _, err := h.Cancel(t.Context(), id, some); code(err) != contract.CodeNotFound {
		t.Errorf("caller without the standby cancels: got %v, want not_found", err)
	}
	if got, err := h.Request(t.Context(), id, all); err != nil || got.Status != contract.StatusRunning {
		t.Errorf("caller with both agents: got %+v, %v, want running", got, err)
	}
	grant, res := callbackResult(&c, "paid")
	h.must(h.Callbacks().AcceptResult(t.Context(), grant, res))
	h.final(id)
	if _, err := h.Request(t.Context(), id, some); err != nil {
		t.Errorf("after the end: got %v, want the request", err)
	}
}

func TestHistory_HidesErasedRequestOfColleague(t *testing.T) {
	h := newHarness(t)
	done, err := h.Handle(t.Context(), newRequest(), alice)
	h.must(err)
	h.must(h.Erase(t.Context(), done.RequestID, alice))
	if _, err := h.Request(t.Context(), done.RequestID, caller("bob", "agent:second")); code(err) != contract.CodeNotFound {
		t.Errorf("got %v, want not_found", err)
	}
	if _, err := h.Request(t.Context(), done.RequestID, caller("bob", "agent:payer")); err != nil {
		t.Errorf("owner: got error %v, want its status", err)
	}
}

// Idempotency keys, sessions and clarifications of callers with the same subject and tenant are
// separate if their issuers differ.
func TestRouter_SeparatesPrincipalsByIssuer(t *testing.T) {
	h := newHarness(t)
	other := &contract.Caller{Subject: alice.Subject, Tenant: alice.Tenant, Issuer: "https://other.example", AllAgents: true}
	once := func(r *contract.Request) {
		r.Idempotency = &contract.Idempotency{Key: "k", Body: sha256.Sum256([]byte("body"))}
	}
	mine, err := h.Handle(t.Context(), newRequest(once), alice)
	h.must(err)
	theirs, err := h.Handle(t.Context(), newRequest(once), other)
	if err != nil || theirs.Replayed || theirs.RequestID == mine.RequestID {
		t.Errorf("same key, other issuer: got %+v, %v, want a separate request", theirs, err)
	}

	h.classifier.proposal = contract.Classification{
		Intent: "count", Domains: []string{"words"}, Confidence: 0.6, Source: contract.SourceLexical,
		Alternatives: []contract.IntentScore{{Intent: "pay", Confidence: 0.59}},
	}
	in := func(r *contract.Request) { r.SessionID = "s" }
	asked, err := h.Handle(t.Context(), newRequest(in), alice)
	h.must(err)
	again, err := h.Handle(t.Context(), newRequest(in), other)
	if err != nil || asked.Status != contract.StatusClarify || again.Status != contract.StatusClarify {
		t.Errorf("same session id, other issuer: got %+v, %v, want a question", again, err)
	}
	choose := func(r *contract.Request) {
		r.Clarification = &contract.ClarificationChoice{RequestID: asked.RequestID, OptionID: "1"}
	}
	_, forbidden := h.Handle(t.Context(), newRequest(choose), other)
	_, unknown := h.Handle(t.Context(), newRequest(func(r *contract.Request) {
		r.Clarification = &contract.ClarificationChoice{RequestID: router.NewID(), OptionID: "1"}
	}), other)
	if code(forbidden) != contract.CodeInvalidRequest || forbidden.Error() != unknown.Error() {
		t.Errorf("clarification of another principal: got %v, want %v as for an unknown one", forbidden, unknown)
	}
	if got, err := h.Handle(t.Context(), newRequest(choose), alice); err != nil || got.Status != contract.StatusCompleted {
		t.Errorf("clarification of the same principal: got %+v, %v, want completed", got, err)
	}
}

// The responses to a forbidden and to an unknown agent are equal, in the decision log as well.
func TestRouter_TreatsForbiddenAgentLikeUnknown(t *testing.T) {
	h := newHarness(t)
	c := caller("bob", "agent:counter")
	for name, policy := range map[string]string{"policy of the registry": "", "policy B": "B"} {
		answer := func(agent string) string {
			resp, err := h.Handle(t.Context(), newRequest(func(r *contract.Request) {
				r.AgentID, r.Options.DryRun = &agent, true
				if policy != "" {
					r.Options.Fallback = &policy
				}
			}), c)
			if code(err) != contract.CodeInvalidRequest {
				t.Fatalf("%s: agent %s: got %+v, %v, want invalid_request", name, agent, resp, err)
			}
			return strings.ReplaceAll(err.Error(), agent, "AGENT")
		}
		if diff := cmp.Diff(answer("nosuch"), answer("payer")); diff != "" {
			t.Errorf("%s: responses differ (-unknown +forbidden):\n%s", name, diff)
		}
	}
	if _, err := h.Handle(t.Context(), newRequest(), &contract.Caller{Subject: "bob", Tenant: "north", AllAgents: true}); err != nil {
		t.Fatal(err)
	}
	for _, agent := range []string{"nosuch", "payer"} { // payer was chosen, but bob may not use it
		page, err := h.Decisions(t.Context(), contract.DecisionQuery{Agent: agent}, c)
		if err != nil || len(page.Decisions) != 0 {
			t.Errorf("decisions on %s: got %+v, %v, want none", agent, page, err)
		}
	}
}

// The errors for a forbidden and for an unknown request are equal for every operation.
func TestHistory_TreatsForbiddenRequestLikeUnknown(t *testing.T) {
	h := newHarness(t)
	done, err := h.Handle(t.Context(), newRequest(), alice)
	h.must(err)
	async := h.submit().RequestID
	h.final(async)
	outsider := caller("bob", "agent:second")
	ops := map[string]func(id string) error{
		"read":   func(id string) error { _, err := h.Request(t.Context(), id, outsider); return err },
		"cancel": func(id string) error { _, err := h.Cancel(t.Context(), id, outsider); return err },
		"erase":  func(id string) error { return h.Erase(t.Context(), id, outsider) },
		"events": func(id string) error { return h.Events(t.Context(), id, outsider, 0, nil) },
	}
	for name, op := range ops {
		want := op(router.NewID())
		if code(want) != contract.CodeNotFound {
			t.Errorf("%s: got %v, want not_found", name, want)
		}
		for _, id := range []string{done.RequestID, async, "nonsense", strings.ToUpper(async)} {
			if diff := cmp.Diff(want, op(id)); diff != "" {
				t.Errorf("%s %s (-unknown +forbidden):\n%s", name, id, diff)
			}
		}
	}
}

// A decision is found by the agent that served as standby, too.
func TestHistory_FindsDecisionsByStandby(t *testing.T) {
	h := newHarness(t)
	h.target.setBehaviour("payer", func(context.Context, dispatch.Call) dispatch.Outcome {
		return dispatch.Outcome{Attempts: 1, Err: &contract.TaskError{Code: contract.TaskAgentUnavailable, Detail: "down"}}
	})
	if _, err := h.Handle(t.Context(), newRequest(), alice); err != nil {
		t.Fatal(err)
	}
	for _, agent := range []string{"payer", "second"} {
		page, err := h.Decisions(t.Context(), contract.DecisionQuery{Agent: agent}, alice)
		if err != nil || len(page.Decisions) != 1 {
			t.Errorf("by %s: got %+v, %v, want the one request", agent, page, err)
		}
	}
}
