package router_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/testkit"
)

// A result by callback also completes a synchronous request.
func TestCallbacks_AcceptFirstResultOnly(t *testing.T) {
	h := newHarness(t)
	h.target.does("payer", h.target.later)
	answers := make(chan *contract.Response)
	go func() {
		resp, _ := h.Handle(t.Context(), newRequest(), alice)
		answers <- resp
	}()
	call := testkit.Receive(t, h.target.begun)
	grant, res := byCallback(&call, "paid")
	other := grant
	other.AgentID = "second"
	if err := h.Callbacks().AcceptResult(t.Context(), other, res); code(err) != contract.CodeNotFound {
		t.Errorf("another agent: got %v, want not_found", err)
	}
	wrong := *res
	wrong.TaskID = "another"
	if err := h.Callbacks().AcceptResult(t.Context(), grant, &wrong); code(err) != contract.CodeInvalidRequest {
		t.Errorf("another task's result: got %v, want invalid_request", err)
	}
	if err := h.Callbacks().AcceptResult(t.Context(), grant, res); err != nil {
		t.Fatal(err)
	}
	resp := testkit.Receive(t, answers)
	if resp.Status != contract.StatusCompleted || resp.Data.Answer != "paid" {
		t.Errorf("got %s with %q, want it completed", resp.Status, resp.Data.Answer)
	}
	if err := h.Callbacks().AcceptResult(t.Context(), grant, res); err != nil {
		t.Errorf("the same once more: got %v, want it taken", err)
	}
	_, different := byCallback(&call, "paid twice")
	if err := h.Callbacks().AcceptResult(t.Context(), grant, different); code(err) != contract.CodeConflict {
		t.Errorf("another result: got %v, want a conflict", err)
	}
}

func TestCallbacks_EmitProgress(t *testing.T) {
	h := newHarness(t)
	h.target.does("payer", h.target.later)
	var seen []string
	var started, progressOf contract.TaskReport
	type end struct {
		resp *contract.Response
		err  error
	}
	answers, told := make(chan end), make(chan struct{})
	go func() {
		resp, err := h.Stream(t.Context(), newRequest(), alice, func(ev *contract.Event) {
			seen = append(seen, string(ev.Type))
			switch ev.Type {
			case contract.EventTaskStarted:
				started = *ev.Task
			case contract.EventTaskProgress:
				seen = append(seen, ev.Progress.Message)
				progressOf = *ev.Task
				close(told)
			}
		})
		answers <- end{resp, err}
	}()
	call := testkit.Receive(t, h.target.begun)
	grant, res := byCallback(&call, "paid")
	if err := h.Callbacks().AcceptProgress(t.Context(), grant, &contract.Progress{Message: "half"}); err != nil {
		t.Fatal(err)
	}
	testkit.WaitClosed(t, told)
	if err := h.Callbacks().AcceptResult(t.Context(), grant, res); err != nil {
		t.Fatal(err)
	}
	if e := testkit.Receive(t, answers); e.err != nil || e.resp.Status != contract.StatusCompleted {
		t.Fatalf("got %+v", e)
	}
	want := []string{"decision", "task.started", "task.progress", "half", "task.done"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(started, progressOf); diff != "" || started.SubtaskTitle == "" || started.Attempts == 0 {
		t.Errorf("task of the progress, which is that of task.started (-want +got):\n%s", diff)
	}
	if err := h.Callbacks().AcceptProgress(t.Context(), grant, &contract.Progress{Message: "late"}); code(err) != contract.CodeConflict {
		t.Errorf("after the end: got %v, want a conflict", err)
	}
}

// An asynchronous request offers its part again to an agent at its limit.
func TestExecution_OffersPartAgainIfAgentIsBusy(t *testing.T) {
	h := newHarness(t)
	h.classifier.proposal.Intent, h.classifier.proposal.Domains = "count", []string{"words"}
	h.target.does("counter", h.target.later)
	const most = contract.DefaultMaxInFlight
	ids := make([]string, most+3)
	for i := range ids {
		ids[i] = h.submit().RequestID
	}
	for range ids {
		call := testkit.Receive(t, h.target.begun)
		grant, res := byCallback(&call, "counted")
		if err := h.Callbacks().AcceptResult(t.Context(), grant, res); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range ids {
		if got := h.final(id); got.Status != contract.StatusCompleted {
			t.Errorf("got %s with %+v, want every one completed", got.Status, got.Tasks)
		}
	}
}
