package router_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
	"github.com/caprouter/caprouter/router"
)

// recordOf returns a stored request that another process has accepted.
func (h *harness) recordOf(deadline time.Time) *requests.Record {
	h.t.Helper()
	rec := &requests.Record{
		ID: router.NewID(), TraceID: "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a", Caller: *alice, Request: *newRequest(asynchronous),
		CreatedAt: deadline.Add(-time.Minute), Deadline: deadline, State: requests.StateAccepted, Owner: "another", Epoch: 1,
	}
	h.must(h.requests.Create(context.Background(), rec))
	return rec
}

// A request whose deadline passed between two processes fails with that reason.
func TestRunner_EndsResumedRequestAfterDeadline(t *testing.T) {
	h := newHarness(t)
	id := h.recordOf(time.Now().Add(-time.Second)).ID
	if err := h.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := h.final(id)
	if got.Status != contract.StatusFailed || got.Decision == nil || len(got.Tasks) != 1 || got.Tasks[0].Error.Code != contract.TaskDeadlineExceeded {
		t.Errorf("got %s with tasks %+v, want failed because of the deadline", got.Status, got.Tasks)
	}
	if dispatched := h.target.dispatchedTo(); len(dispatched) != 0 {
		t.Errorf("got tasks sent to %v, want none", dispatched)
	}
	h.eventually(func() bool {
		found, err := h.auditLog.Find(t.Context(), id)
		return err == nil && found.Outcome != nil
	})
}

// A request that begins during a lookup is running, not interrupted.
func TestHistory_FindsRequestThatBeginsDuringLookup(t *testing.T) {
	h := newHarness(t)
	rec := h.recordOf(time.Now().Add(time.Minute))
	if err := h.requests.Delete(t.Context(), rec.ID); err != nil {
		t.Fatal(err)
	}
	h.onFind = func() {
		h.must(h.requests.Create(t.Context(), rec))
		h.must(h.auditLog.Append(t.Context(), audit.Record{
			Kind: audit.KindDecision, At: time.Now(), RequestID: rec.ID, Tenant: alice.Tenant, Agents: []string{"payer"}, Status: contract.StatusRunning,
		}))
	}
	got, err := h.Request(t.Context(), rec.ID, alice)
	if err != nil || got.Status != contract.StatusAccepted {
		t.Errorf("got %+v, %v, want accepted", got, err)
	}
}

// If an agent is at its limit when the request is resumed, it gets the same task as soon as it has
// capacity.
func TestRunner_ResendsWhenAgentHasCapacity(t *testing.T) {
	h := newHarness(t)
	h.registry = strings.Replace(durableRegistry, "domains: [words]}", "domains: [words]}, max_in_flight: 1", 1)
	h.classifier.proposal.Intent, h.classifier.proposal.Domains = "count", []string{"words"}
	h.target.setBehaviour("counter", h.target.hang)
	id := h.submit().RequestID
	first := testkit.Receive(t, h.target.begun)
	h.crash()
	h.open()
	release := make(chan struct{})
	h.target.setBehaviour("counter", func(_ context.Context, c dispatch.Call) dispatch.Outcome {
		if c.Task.RequestID != id {
			h.target.begun <- c
			<-release
		}
		return dispatch.Outcome{Result: success("counted"), Attempts: max(1, c.Task.Attempt), Health: dispatch.HealthGood}
	})
	other := h.submit().RequestID // it may be accepted before the other request is resumed
	testkit.Receive(t, h.target.begun)
	if err := h.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(release)
	h.final(other)
	got := h.final(id)
	if got.Status != contract.StatusCompleted || got.Tasks[0].TaskID != first.Task.TaskID {
		t.Errorf("got %s with tasks %+v, want the first task %s completed", got.Status, got.Tasks, first.Task.TaskID)
	}
}

// A task counts as idempotent only if the registry declared it when it was sent.
func TestRunner_ResumesAfterRegistryChange(t *testing.T) {
	h := newHarness(t)
	h.target.setBehaviour("payer", h.target.hang)
	id := h.submit().RequestID
	testkit.Receive(t, h.target.begun)
	h.registry = strings.ReplaceAll(durableRegistry, `endpoint: {protocol: http, url: "http://127.0.0.1:1/"}`, `endpoint: {protocol: http, url: "http://127.0.0.1:2/", idempotent: true}`)
	h.target.setBehaviour("payer", nil)
	h.restart()
	got := h.final(id)
	if got.Tasks[0].Error == nil || got.Tasks[0].Error.Code != contract.TaskOutcomeUnknown {
		t.Errorf("got tasks %+v, want an unknown outcome", got.Tasks)
	}
	if dispatched := h.target.dispatchedTo(); len(dispatched) != 1 {
		t.Errorf("got tasks sent to %v, want one task", dispatched)
	}
}

// A subtask fails if all of its agents have been removed from the registry.
func TestRunner_FailsSubtaskWithoutRegisteredAgents(t *testing.T) {
	h := newHarness(t)
	h.classifier.proposal.Intent, h.classifier.proposal.Domains = "count", []string{"words"}
	rec := h.recordOf(time.Now().Add(time.Minute))
	h.must(second(h.requests.Update(t.Context(), rec.ID, func(r *requests.Record) error {
		return r.Plan(&contract.Decision{DecisionID: router.NewID(), Chosen: []string{"gone"}},
			[]requests.Part{{Subtask: -1, Title: "pay", Intent: "pay", Domains: []string{"bills"}, Agents: []string{"gone"}}}, nil)
	})))
	if err := h.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := h.final(rec.ID)
	if got.Status != contract.StatusFailed || got.Tasks[0].AgentID != "gone" || got.Tasks[0].Error.Code != contract.TaskAgentUnavailable {
		t.Errorf("got %s with tasks %+v, want failed because no agent is left", got.Status, got.Tasks)
	}
}

// If a process is killed between the decision record and the start of the request, the next process
// resumes the request and does not write the decision again.
func TestRunner_RecordsDecisionOnceIfKilledAfterIt(t *testing.T) {
	h := newHarness(t)
	rec := h.recordOf(time.Now().Add(time.Minute))
	decision := &contract.Decision{DecisionID: router.NewID(), Chosen: []string{"payer"}}
	h.must(second(h.requests.Update(t.Context(), rec.ID, func(r *requests.Record) error {
		return r.Plan(decision, []requests.Part{{Subtask: -1, Title: "pay", Intent: "pay", Domains: []string{"bills"}, Confidence: 1, Agents: []string{"payer"}}}, nil)
	})))
	h.must(h.auditLog.Append(t.Context(), audit.Record{
		Kind: audit.KindDecision, At: time.Now(), RequestID: rec.ID, DecisionID: decision.DecisionID, Tenant: alice.Tenant, Agents: decision.Chosen, Status: contract.StatusRunning,
	}))
	h.restart()
	if got := h.final(rec.ID); got.Status != contract.StatusCompleted {
		t.Errorf("got %s, want completed", got.Status)
	}
	h.eventually(func() bool {
		found, err := h.auditLog.Find(t.Context(), rec.ID)
		return err == nil && found.Outcome != nil
	})
	copied, err := audit.OpenCopy(t.Context(), h.dir, teststore.Keys())
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	decisions := 0
	h.must(copied.Walk(t.Context(), func(r *audit.Record) {
		if r.Kind == audit.KindDecision {
			decisions++
		}
	}))
	if decisions != 1 {
		t.Errorf("got %d decision records, want 1", decisions)
	}
}

func second[T any](_ T, err error) error { return err }
