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

// answersLeft is an AnswerLimit with a number of answers for each subject.
type answersLeft struct {
	mu   sync.Mutex
	left map[string]int
}

// reached is the state of an exhausted limit.
var reached = contract.Limit{Policy: "fallback_answer", Quota: 1, Window: time.Second, Reset: time.Second}

func (a *answersLeft) Take(caller *contract.Caller) (contract.Limit, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left[caller.Subject] == 0 {
		return reached, false
	}
	a.left[caller.Subject]--
	return contract.Limit{}, true
}

func (a *answersLeft) grant(subject string, answers int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left[subject] += answers
}

// answering is a model that counts its calls.
type answering struct {
	mu    sync.Mutex
	calls int
}

func (m *answering) Provider() string { return "scripted" }
func (m *answering) Model() string    { return "scripted-1" }

func (m *answering) Generate(context.Context, *llm.Request) (*llm.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	return &llm.Reply{Text: "It is sunny."}, nil
}

func (m *answering) asked() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

// newAnsweringHouse returns a harness with policy A and no eligible agent. Alice
// has one direct answer.
func newAnsweringHouse(t *testing.T) (*harness, *answering, *answersLeft) {
	h := newHarness(t)
	h.crash()
	m, limit := &answering{}, &answersLeft{left: map[string]int{"alice": 1}}
	h.model, h.answers = m, limit
	h.registry = strings.Replace(durableRegistry, "policy: C", "policy: A", 1)
	h.classifier.proposal = contract.Classification{Intent: contract.Unknown, Domains: []string{}, Confidence: 1, Source: contract.SourceLLM}
	h.open()
	return h, m, limit
}

// TestRouter_LimitsDirectAnswers: a synchronous request beyond the
// limit is rejected, and nothing of it is stored.
func TestRouter_LimitsDirectAnswers(t *testing.T) {
	h, m, limit := newAnsweringHouse(t)
	first, err := h.Handle(t.Context(), newRequest(), alice)
	if err != nil || first.Data.Degraded || m.asked() != 1 {
		t.Fatalf("got %+v, %v after %d calls, want an answer", first, err, m.asked())
	}
	req := newRequest(keyed("k"))
	_, err = h.Stream(t.Context(), req, alice, func(ev *contract.Event) { t.Errorf("got the event %s of a request that is refused", ev.Type) })
	e, ok := errors.AsType[*contract.Error](err)
	if !ok || e.Code != contract.CodeRateLimited || !strings.Contains(e.Message, "options.fallback B") {
		t.Fatalf("got %v, want %s and what to do", err, contract.CodeRateLimited)
	}
	if diff := cmp.Diff(&reached, e.Limit); diff != "" {
		t.Errorf("limit (-want +got):\n%s", diff)
	}
	if m.asked() != 1 {
		t.Errorf("the model was asked %d times, want once", m.asked())
	}
	if got, err := h.auditLog.Find(t.Context(), req.RequestID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the audit log has %+v, %v of a request that was refused", got, err)
	}
	if open, err := h.auditLog.Unfinished(t.Context()); err != nil || len(open) != 0 {
		t.Errorf("the audit log has open decisions: %+v, %v", open, err)
	}
	if _, err := h.Request(t.Context(), req.RequestID, alice); code(err) != contract.CodeNotFound {
		t.Errorf("asked for the refused request: got %v, want %s", err, contract.CodeNotFound)
	}
	limit.grant("alice", 1)
	again, err := h.Handle(t.Context(), newRequest(keyed("k")), alice)
	if err != nil || again.Replayed || again.Data.Degraded {
		t.Errorf("with the same key, later: got %+v, %v, want an answer", again, err)
	}
	limit.grant("bob", 1)
	if _, err := h.Handle(t.Context(), newRequest(), &contract.Caller{Subject: "bob", Tenant: "north", AllAgents: true}); err != nil {
		t.Errorf("another caller: got %v", err)
	}
}

// TestRouter_CountsOnlyDirectAnswers: only calls of the
// model count, not the other uses of a policy.
func TestRouter_CountsOnlyDirectAnswers(t *testing.T) {
	h, m, limit := newAnsweringHouse(t)
	limit.left = map[string]int{}
	b := capabilities.FallbackUnsupported
	for name, change := range map[string]func(*contract.Request){
		"a dry run": func(r *contract.Request) { r.Options.DryRun = true },
		"policy B":  func(r *contract.Request) { r.Options.Fallback = &b },
		"a request an agent has": func(*contract.Request) {
			h.classifier.proposal.Intent, h.classifier.proposal.Domains = "pay", []string{"bills"}
		},
		"a model the classifier found away":  func(*contract.Request) { h.classifier.proposal.Reason = llm.ReasonBudget },
		"a model that is away, asked for it": func(*contract.Request) { h.classifier.proposal.Reason = llm.ReasonTimeout },
	} {
		t.Run(name, func(t *testing.T) {
			says := h.classifier.proposal
			defer func() { h.classifier.proposal = says }()
			if got, err := h.Handle(t.Context(), newRequest(change), alice); err != nil || m.asked() != 0 {
				t.Errorf("got %+v, %v after %d calls, want it served without one", got, err, m.asked())
			}
		})
	}
}

// TestRouter_LimitsDirectAnswersOfAsynchronousRequests: an accepted request
// gets a response without an answer of the model.
func TestRouter_LimitsDirectAnswersOfAsynchronousRequests(t *testing.T) {
	h, m, limit := newAnsweringHouse(t)
	limit.left = map[string]int{}
	id := h.submit().RequestID
	got := h.final(id)
	if got.Status != contract.StatusCompleted || !got.Data.Degraded || got.Data.DegradedReason != fallback.ReasonLimited || got.Data.AnsweredBy != nil || m.asked() != 0 {
		t.Errorf("got %s, degraded by %q, answered by %+v after %d calls; want it completed, degraded by %s", got.Status, got.Data.DegradedReason, got.Data.AnsweredBy, m.asked(), fallback.ReasonLimited)
	}
	if !strings.Contains(got.Data.Answer, "as many direct answers as you may") || got.Data.Unsupported == nil {
		t.Errorf("got %q, want the reason, and the facts beside it", got.Data.Answer)
	}
	var found audit.RequestRecords
	h.eventually(func() bool { // it is written after the stored request has ended
		found, _ = h.auditLog.Find(t.Context(), id)
		return found.Outcome != nil
	})
	if found.Outcome.FallbackUsed != "A" {
		t.Errorf("the audit log has %+v, want policy A", found.Outcome)
	}
}
