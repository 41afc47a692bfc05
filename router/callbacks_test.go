package router_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/testkit"
)

// A result posted by callback also completes a synchronous request.
func TestCallbacks_AcceptFirstResultOnly(t *testing.T) {
	h := newHarness(t)
	h.target.setBehaviour("payer", h.target.acceptLater)
	answers := make(chan *contract.Response)
	go func() {
		resp, _ := h.Handle(t.Context(), newRequest(), alice)
		answers <- resp
	}()
	call := testkit.Receive(t, h.target.begun)
	grant, res := callbackResult(&call, "paid")
	other := grant
	other.AgentID = "second"
	if err := h.Callbacks().AcceptResult(t.Context(), other, res); code(err) != contract.CodeNotFound {
		t.Errorf("result of another agent: got %v, want not_found", err)
	}
	wrong := *res
	wrong.TaskID = "another"
	if err := h.Callbacks().AcceptResult(t.Context(), grant, &wrong); code(err) != contract.CodeInvalidRequest {
		t.Errorf("result of another task: got %v, want invalid_request", err)
	}
	if err := h.Callbacks().AcceptResult(t.Context(), grant, res); err != nil {
		t.Fatal(err)
	}
	resp := testkit.Receive(t, answers)
	if resp.Status != contract.StatusCompleted || resp.Data.Answer != "paid" {
		t.Errorf("got %s with answer %q, want completed", resp.Status, resp.Data.Answer)
	}
	if err := h.Callbacks().AcceptResult(t.Context(), grant, res); err != nil {
		t.Errorf("repeated result: got %v, want no error", err)
	}
	_, different := callbackResult(&call, "paid twice")
	if err := h.Callbacks().AcceptResult(t.Context(), grant, different); code(err) != contract.CodeConflict {
		t.Errorf("different result: got %v, want a conflict", err)
	}
}

func TestCallbacks_EmitProgress(t *testing.T) {
	h := newHarness(t)
	h.target.setBehaviour("payer", h.target.acceptLater)
	var seen []string
	var started, progressOf contract.TaskReport
	type end struct {
		resp *contract.Response
		err  error
	}
	answers, reported := make(chan end), make(chan struct{})
	go func() {
		resp, err := h.Stream(t.Context(), newRequest(), alice, func(ev *contract.Event) {
			seen = append(seen, string(ev.Type))
			switch ev.Type {
			case contract.EventTaskStarted:
				started = *ev.Task
			case contract.EventTaskProgress:
				seen = append(seen, ev.Progress.Message)
				progressOf = *ev.Task
				close(reported)
			}
		})
		answers <- end{resp, err}
	}()
	call := testkit.Receive(t, h.target.begun)
	grant, res := callbackResult(&call, "paid")
	if err := h.Callbacks().AcceptProgress(t.Context(), grant, &contract.Progress{Message: "half"}); err != nil {
		t.Fatal(err)
	}
	testkit.WaitClosed(t, reported)
	if err := h.Callbacks().AcceptResult(t.Context(), grant, res); err != nil {
		t.Fatal(err)
	}
	if e := testkit.Receive(t, answers); e.err != nil || e.resp.Status != contract.StatusCompleted {
		t.Fatalf("got event %+v", e)
	}
	want := []string{"decision", "task.started", "task.progress", "half", "task.done"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(started, progressOf); diff != "" || started.SubtaskTitle == "" || started.Attempts == 0 {
		t.Errorf("task of the progress events and of task.started (-want +got):\n%s", diff)
	}
	if err := h.Callbacks().AcceptProgress(t.Context(), grant, &contract.Progress{Message: "late"}); code(err) != contract.CodeConflict {
		t.Errorf("progress after the end: got %v, want a conflict", err)
	}
}

// The subtask of an asynchronous request is sent again if its agent was at its limit.
func TestExecution_RetriesSubtaskIfAgentIsBusy(t *testing.T) {
	h := newHarness(t)
	h.classifier.proposal.Intent, h.classifier.proposal.Domains = "count", []string{"words"}
	h.target.setBehaviour("counter", h.target.acceptLater)
	const most = contract.DefaultMaxInFlight
	ids := make([]string, most+3)
	for i := range ids {
		ids[i] = h.submit().RequestID
	}
	for range ids {
		call := testkit.Receive(t, h.target.begun)
		grant, res := callbackResult(&call, "counted")
		if err := h.Callbacks().AcceptResult(t.Context(), grant, res); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range ids {
		if got := h.final(id); got.Status != contract.StatusCompleted {
			t.Errorf("got %s with tasks %+v, want all of them completed", got.Status, got.Tasks)
		}
	}
}
