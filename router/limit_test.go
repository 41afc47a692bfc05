package router_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/store"
)

// fakeAnswerLimit is an AnswerLimit with a number of answers for each subject.
type fakeAnswerLimit struct {
	mu   sync.Mutex
	left map[string]int
}

// reached is the state of an exhausted limit.
var reached = contract.Limit{Policy: "fallback_answer", Quota: 1, Window: time.Second, Reset: time.Second}

func (a *fakeAnswerLimit) Take(caller *contract.Caller) (contract.Limit, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left[caller.Subject] == 0 {
		return reached, false
	}
	a.left[caller.Subject]--
	return contract.Limit{}, true
}

func (a *fakeAnswerLimit) grant(subject string, answers int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left[subject] += answers
}

// countingModel is a model that counts its calls.
type countingModel struct {
	mu    sync.Mutex
	calls int
}

func (m *countingModel) Provider() string { return "scripted" }
func (m *countingModel) Model() string    { return "scripted-1" }

func (m *countingModel) Generate(context.Context, *llm.Request) (*llm.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	return &llm.Reply{Text: "It is sunny."}, nil
}

func (m *countingModel) callCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

// newFallbackHarness returns a harness with policy A and no eligible agent. Alice is limited to one
// direct answer.
func newFallbackHarness(t *testing.T) (*harness, *countingModel, *fakeAnswerLimit) {
	h := newHarness(t)
	h.crash()
	m, limit := &countingModel{}, &fakeAnswerLimit{left: map[string]int{"alice": 1}}
	h.model, h.answers = m, limit
	h.registry = strings.Replace(durableRegistry, "policy: C", "policy: A", 1)
	h.classifier.proposal = contract.Classification{Intent: contract.Unknown, Domains: []string{}, Confidence: 1, Source: contract.SourceLLM}
	h.open()
	return h, m, limit
}

// A synchronous request beyond the limit is rejected and not stored.
func TestRouter_LimitsDirectAnswers(t *testing.T) {
	h, m, limit := newFallbackHarness(t)
	first, err := h.Handle(t.Context(), newRequest(), alice)
	if err != nil || first.Data.Degraded || m.callCount() != 1 {
		t.Fatalf("got %+v, %v after %d calls, want an answer", first, err, m.callCount())
	}
	req := newRequest(keyed("k"))
	_, err = h.Stream(t.Context(), req, alice, func(ev *contract.Event) { t.Errorf("got event %s of a rejected request, want none", ev.Type) })
	e, ok := errors.AsType[*contract.Error](err)
	if !ok || e.Code != contract.CodeRateLimited || !strings.Contains(e.Message, "options.fallback B") {
		t.Fatalf("got %v, want %s with a retry hint", err, contract.CodeRateLimited)
	}
	if diff := cmp.Diff(&reached, e.Limit); diff != "" {
		t.Errorf("limit (-want +got):\n%s", diff)
	}
	if m.callCount() != 1 {
		t.Errorf("got %d calls of the model, want 1", m.callCount())
	}
	if got, err := h.auditLog.Find(t.Context(), req.RequestID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("audit log: got %+v, %v for a rejected request, want no record", got, err)
	}
	if open, err := h.auditLog.Unfinished(t.Context()); err != nil || len(open) != 0 {
		t.Errorf("audit log: got open decisions %+v, %v, want none", open, err)
	}
	if _, err := h.Request(t.Context(), req.RequestID, alice); code(err) != contract.CodeNotFound {
		t.Errorf("lookup of the rejected request: got %v, want %s", err, contract.CodeNotFound)
	}
	limit.grant("alice", 1)
	again, err := h.Handle(t.Context(), newRequest(keyed("k")), alice)
	if err != nil || again.Replayed || again.Data.Degraded {
		t.Errorf("same key after the limit was raised: got %+v, %v, want an answer", again, err)
	}
	limit.grant("bob", 1)
	if _, err := h.Handle(t.Context(), newRequest(), &contract.Caller{Subject: "bob", Tenant: "north", AllAgents: true}); err != nil {
		t.Errorf("another caller: got %v, want no error", err)
	}
}

// Only calls of the model count, not the other results of a policy.
func TestRouter_CountsOnlyDirectAnswers(t *testing.T) {
	h, m, limit := newFallbackHarness(t)
	limit.left = map[string]int{}
	b := capabilities.FallbackUnsupported
	for name, change := range map[string]func(*contract.Request){
		"dry run":  func(r *contract.Request) { r.Options.DryRun = true },
		"policy B": func(r *contract.Request) { r.Options.Fallback = &b },
		"request with an eligible agent": func(*contract.Request) {
			h.classifier.proposal.Intent, h.classifier.proposal.Domains = "pay", []string{"bills"}
		},
		"budget of the classifier exhausted": func(*contract.Request) { h.classifier.proposal.Reason = llm.ReasonBudget },
		"classifier timed out":               func(*contract.Request) { h.classifier.proposal.Reason = llm.ReasonTimeout },
	} {
		t.Run(name, func(t *testing.T) {
			explanation := h.classifier.proposal
			defer func() { h.classifier.proposal = explanation }()
			if got, err := h.Handle(t.Context(), newRequest(change), alice); err != nil || m.callCount() != 0 {
				t.Errorf("got %+v, %v after %d calls, want a response without a call", got, err, m.callCount())
			}
		})
	}
}

// An asynchronous request beyond the limit gets a response without an answer of the model.
func TestRouter_LimitsDirectAnswersOfAsynchronousRequests(t *testing.T) {
	h, m, limit := newFallbackHarness(t)
	limit.left = map[string]int{}
	id := h.submit().RequestID
	got := h.final(id)
	if got.Status != contract.StatusCompleted || !got.Data.Degraded || got.Data.DegradedReason != fallback.ReasonLimited || got.Data.AnsweredBy != nil || m.callCount() != 0 {
		t.Errorf("got %s, degraded by %q, answered by %+v after %d calls; want completed, degraded by %s", got.Status, got.Data.DegradedReason, got.Data.AnsweredBy, m.callCount(), fallback.ReasonLimited)
	}
	if !strings.Contains(got.Data.Answer, "as many direct answers as you may") || got.Data.Unsupported == nil {
		t.Errorf("got answer %q, want the reason and the other facts", got.Data.Answer)
	}
	var found audit.RequestRecords
	h.eventually(func() bool { // the record is written after the stored request has ended
		found, _ = h.auditLog.Find(t.Context(), id)
		return found.Outcome != nil
	})
	if found.Outcome.FallbackUsed != "A" {
		t.Errorf("audit log: got %+v, want policy A", found.Outcome)
	}
}
