package router_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/session"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/router"
)

// A request of another tenant is not_found for every operation.
func TestHistory_HidesRequestsOfOtherTenants(t *testing.T) {
	h := newHarness(t)
	sync, err := h.Handle(t.Context(), newRequest(), alice)
	if err != nil {
		t.Fatal(err)
	}
	async := h.submit().RequestID
	h.final(async)
	outsider := &contract.Caller{Subject: "alice", Tenant: "south", AllAgents: true}
	for _, id := range []string{sync.RequestID, async, router.NewID(), "nonsense", strings.ToUpper(async)} {
		ops := map[string]func() error{
			"read":   func() error { _, err := h.Request(t.Context(), id, outsider); return err },
			"cancel": func() error { _, err := h.Cancel(t.Context(), id, outsider); return err },
			"erase":  func() error { return h.Erase(t.Context(), id, outsider) },
			"events": func() error {
				return h.Events(t.Context(), id, outsider, 0, func(uint64, *contract.Event) error {
					t.Errorf("%s: got an event, want none", id)
					return nil
				})
			},
		}
		for name, op := range ops {
			if err := op(); code(err) != contract.CodeNotFound {
				t.Errorf("%s %s: got %v, want not_found", name, id, err)
			}
		}
	}
	if page, err := h.Decisions(t.Context(), contract.DecisionQuery{}, outsider); err != nil || len(page.Decisions) != 0 {
		t.Errorf("got %+v, %v, want no decisions", page, err)
	}
	admin := &contract.Caller{Subject: "root", Scopes: []string{"admin"}}
	if page, err := h.Decisions(t.Context(), contract.DecisionQuery{}, admin); err != nil || len(page.Decisions) != 2 {
		t.Errorf("administrator: got %+v, %v, want both decisions", page, err)
	}
}

func TestHistory_ErasesContentOfRequest(t *testing.T) {
	h := newHarness(t)
	const secret = "the boat on the lake"
	say := func(r *contract.Request) { r.Content.Prompt = "pay " + secret }
	sync, err := h.Handle(t.Context(), newRequest(say), alice)
	if err != nil {
		t.Fatal(err)
	}
	async := h.submit(say).RequestID
	h.final(async)
	h.classifier.proposal.Intent = "sing"
	proposed, err := h.Handle(t.Context(), newRequest(func(r *contract.Request) { r.Content.Prompt = "sing of " + secret }), alice)
	if err != nil || proposed.Status != contract.StatusProposed || proposed.Data.Proposal.TicketID == "" {
		t.Fatalf("got %+v, %v, want a ticket", proposed, err)
	}
	for _, id := range []string{sync.RequestID, async, proposed.RequestID} {
		if err := h.Erase(t.Context(), id, alice); err != nil {
			t.Fatal(err)
		}
		got, err := h.Request(t.Context(), id, alice)
		if err != nil || !got.Status.Terminal() || got.Decision != nil || len(got.Tasks) != 0 || got.Data.Answer != "" {
			t.Errorf("%s: got %+v, %v, want only its status", id, got, err)
		}
	}
	page, err := h.Decisions(t.Context(), contract.DecisionQuery{}, alice)
	if err != nil || len(page.Decisions) != 3 {
		t.Fatalf("got %+v, %v, want three entries", page, err)
	}
	for i := range page.Decisions {
		if e := &page.Decisions[i]; !e.Erased || e.Prompt != "" || e.Decision != nil {
			t.Errorf("got %+v, want it erased", e)
		}
	}
}

func TestHistory_DoesNotEraseRunningRequest(t *testing.T) {
	h := newHarness(t)
	h.target.setBehaviour("payer", h.target.acceptLater)
	id := h.submit().RequestID
	testkit.Receive(t, h.target.begun)
	if err := h.Erase(t.Context(), id, alice); code(err) != contract.CodeConflict {
		t.Errorf("got %v, want a conflict", err)
	}
}

func TestHistory_PagesDecisions(t *testing.T) {
	h := newHarness(t)
	var ids []string
	for range 5 {
		resp, err := h.Handle(t.Context(), newRequest(), alice)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, resp.RequestID)
	}
	h.classifier.proposal.Intent = "sing"
	resp, err := h.Handle(t.Context(), newRequest(), alice)
	if err != nil {
		t.Fatal(err)
	}
	read := func(q contract.DecisionQuery) (got []string) {
		for {
			page, err := h.Decisions(t.Context(), q, alice)
			if err != nil {
				t.Fatal(err)
			}
			if len(page.Decisions) == 0 {
				return got
			}
			for i := range page.Decisions {
				got = append(got, page.Decisions[i].RequestID)
			}
			q.Cursor = page.NextCursor
		}
	}
	for name, tt := range map[string]struct {
		query contract.DecisionQuery
		want  []string
	}{
		"pages of two":               {contract.DecisionQuery{Limit: 2}, append(append([]string{}, ids...), resp.RequestID)},
		"filter by agent":            {contract.DecisionQuery{Agent: "payer"}, ids},
		"filter by intent, in pages": {contract.DecisionQuery{Intent: "pay", Limit: 2}, ids},
		"filter by another agent":    {contract.DecisionQuery{Agent: "counter"}, nil},
		"filter by outcome":          {contract.DecisionQuery{Outcome: contract.StatusProposed}, []string{resp.RequestID}},
	} {
		if diff := cmp.Diff(tt.want, read(tt.query)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := h.Decisions(t.Context(), contract.DecisionQuery{Cursor: "nonsense"}, alice); code(err) != contract.CodeInvalidRequest {
		t.Errorf("invalid cursor: got %v, want invalid_request", err)
	}
}

// Sessions and open clarifications are durable.
func TestRouter_LoadsSessionAfterRestart(t *testing.T) {
	h := newHarness(t)
	const id = "s"
	h.classifier.proposal = contract.Classification{
		Intent: "count", Domains: []string{"words"}, Confidence: 0.6, Source: contract.SourceLexical,
		Alternatives: []contract.IntentScore{{Intent: "pay", Confidence: 0.59}},
	}
	in := func(r *contract.Request) { r.SessionID = id }
	asked, err := h.Handle(t.Context(), newRequest(in), alice)
	if err != nil || asked.Status != contract.StatusClarify {
		t.Fatalf("got %+v, %v, want a question to the caller", asked, err)
	}
	h.restart()
	got, err := h.Handle(t.Context(), newRequest(in, func(r *contract.Request) {
		r.Clarification = &contract.ClarificationChoice{RequestID: asked.RequestID, OptionID: asked.Data.Options[0].ID}
	}), alice)
	if err != nil || got.Decision.Classification.Reason != session.ReasonClarified {
		t.Errorf("got %+v, %v, want the caller's choice applied", got, err)
	}
}

func TestHistory_ErasesTurnsOfSession(t *testing.T) {
	h := newHarness(t)
	in := func(prompt string) func(*contract.Request) {
		return func(r *contract.Request) { r.SessionID, r.Content.Prompt = "s", prompt }
	}
	first, err := h.Handle(t.Context(), newRequest(in("pay the secret bill")), alice)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Handle(t.Context(), newRequest(in("pay another one")), alice); err != nil {
		t.Fatal(err)
	}
	if err := h.Erase(t.Context(), first.RequestID, alice); err != nil {
		t.Fatal(err)
	}
	var stored string
	if err := h.bucket("SESSIONS").Scan(t.Context(), "", func(e store.Entry) error {
		stored += string(e.Value)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(stored, "secret") || !strings.Contains(stored, "another") {
		t.Errorf("got session %s, want only the turns of the other request", stored)
	}
}

// A request cannot be erased between its end and its audit record, because the record would be
// written after the erasure.
func TestHistory_DoesNotEraseEndingRequest(t *testing.T) {
	h := newHarness(t)
	at, resume := make(chan struct{}), make(chan struct{})
	h.onOutcome = func() { at <- struct{}{}; <-resume }
	id := h.submit().RequestID
	testkit.Receive(t, at)
	if err := h.Erase(t.Context(), id, alice); code(err) != contract.CodeConflict {
		t.Errorf("got %v, want a conflict", err)
	}
	close(resume)
	h.final(id)
	h.eventually(func() bool { return h.Erase(t.Context(), id, alice) == nil })
	if found, err := h.auditLog.Find(t.Context(), id); err != nil || found.Outcome.Content != nil {
		t.Errorf("audit log: got %+v, %v, want no content", found.Outcome, err)
	}
}

// A response that is too long for the audit log is recorded without its data. The record of an
// asynchronous request contains the whole response.
func TestHistory_ShortensResponseTooLongForAuditLog(t *testing.T) {
	h := newHarness(t)
	h.target.setBehaviour("payer", func(context.Context, dispatch.Call) dispatch.Outcome {
		return dispatch.Outcome{Result: success(strings.Repeat(". ", audit.MaxContentSize/4+1)), Attempts: 1, Health: dispatch.HealthGood}
	})
	sync, err := h.Handle(t.Context(), newRequest(), alice)
	if err != nil || sync.Status != contract.StatusCompleted || len(sync.Data.Answer) <= audit.MaxContentSize/2 {
		t.Fatalf("got %v, want the whole answer", err)
	}
	got, err := h.Request(t.Context(), sync.RequestID, alice)
	if err != nil || got.Status != contract.StatusCompleted || len(got.Tasks) != 1 || got.Data.Answer != "" {
		t.Errorf("got %s with %d tasks, %v, want the outcome without the data", got.Status, len(got.Tasks), err)
	}
	async := h.submit().RequestID
	h.final(async)
	h.restart()
	got, err = h.Request(t.Context(), async, alice)
	if err != nil || got.Status != contract.StatusCompleted || len(got.Data.Answer) != len(sync.Data.Answer) {
		t.Errorf("got %s with an answer of %d bytes, %v, want the whole answer", got.Status, len(got.Data.Answer), err)
	}
	if isOpen, err := h.requests.IsOpen(t.Context(), async); err != nil || isOpen {
		t.Errorf("got index of open requests %t, %v, want the request removed", isOpen, err)
	}
}
