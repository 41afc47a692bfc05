package router_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/testkit"
)

func TestRouter_CancelsRunningRequest(t *testing.T) {
	for name, does := range map[string]func(*agents) func(context.Context, dispatch.Call) dispatch.Outcome{
		"at work": func(a *agents) func(context.Context, dispatch.Call) dispatch.Outcome { return a.hangs },
		"waiting": func(a *agents) func(context.Context, dispatch.Call) dispatch.Outcome { return a.later },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.target.does("payer", does(h.target))
			id := h.submit().RequestID
			call := testkit.Receive(t, h.target.begun)
			if name == "waiting" {
				h.waits(id)
			}
			got, err := h.Cancel(t.Context(), id, alice)
			if err != nil || got.Status != contract.StatusCancelled {
				t.Fatalf("got %+v, %v, want it cancelled", got, err)
			}
			if name == "waiting" {
				if stopped := testkit.Receive(t, h.target.stops); stopped != call.Task.TaskID {
					t.Errorf("stopped %s, want %s", stopped, call.Task.TaskID)
				}
			}
			grant, res := byCallback(&call, "paid")
			if err := h.Callbacks().AcceptResult(t.Context(), grant, res); code(err) != contract.CodeConflict {
				t.Errorf("a result that comes then: got %v, want a conflict", err)
			}
			again, err := h.Cancel(t.Context(), id, alice)
			if err != nil || again.Status != contract.StatusCancelled {
				t.Errorf("cancelled again: got %+v, %v, want the same", again, err)
			}
			if final := h.final(id); final.Status != contract.StatusCancelled {
				t.Errorf("the final event says %s", final.Status)
			}
			h.restart()
			if got, err := h.Request(t.Context(), id, alice); err != nil || got.Status != contract.StatusCancelled {
				t.Errorf("after a restart: got %+v, %v, want it cancelled", got, err)
			}
			if page, err := h.Decisions(t.Context(), contract.DecisionQuery{}, alice); err != nil || len(page.Decisions) != 1 {
				t.Errorf("got decisions %+v, %v, want one end", page, err)
			}
		})
	}
}

// A request is cancelled as well if the revocation is noticed before its next send.
func TestRouter_CancelsRequestOfRevokedKeyBeforeNextSend(t *testing.T) {
	for name, handle := range map[string]func(*harness) *contract.Response{
		"synchronous": func(h *harness) *contract.Response {
			resp, err := h.Handle(t.Context(), newRequest(), alice)
			h.must(err)
			return resp
		},
		"asynchronous": func(h *harness) *contract.Response { return h.final(h.submit().RequestID) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.target.does("payer", func(context.Context, dispatch.Call) dispatch.Outcome {
				h.revoked.Store(true)
				return dispatch.Outcome{Attempts: 1, Err: &contract.TaskError{Code: contract.TaskAgentUnavailable, Detail: "payer is down"}}
			})
			resp := handle(h)
			if resp.Status != contract.StatusCancelled {
				t.Errorf("got %s with %+v, want cancelled", resp.Status, resp.Tasks)
			}
			if diff := cmp.Diff([]string{"payer"}, h.target.given()); diff != "" {
				t.Errorf("agents with a task (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRouter_RejectsCancellingEndedRequest(t *testing.T) {
	h := newHarness(t)
	id := h.submit().RequestID
	h.final(id)
	if _, err := h.Cancel(t.Context(), id, alice); code(err) != contract.CodeConflict {
		t.Errorf("got %v, want a conflict", err)
	}
}

// A synchronous request is cancelled by another call of its sender.
func TestRouter_CancelsSynchronousRequest(t *testing.T) {
	h := newHarness(t)
	h.target.does("payer", h.target.hangs)
	answers := make(chan *contract.Response)
	go func() {
		resp, _ := h.Handle(t.Context(), newRequest(), alice)
		answers <- resp
	}()
	call := testkit.Receive(t, h.target.begun)
	got, err := h.Cancel(t.Context(), call.Task.RequestID, alice)
	if err != nil || got.Status != contract.StatusCancelled {
		t.Errorf("got %+v, %v, want it cancelled", got, err)
	}
	if resp := testkit.Receive(t, answers); resp == nil || resp.Status != contract.StatusCancelled {
		t.Errorf("who waited got %+v, want cancelled", resp)
	}
}

// TestRouter_CancelKeepsDeliveredResults cancels a request after one of its two agents
// has delivered.
func TestRouter_CancelKeepsDeliveredResults(t *testing.T) {
	for _, mode := range []string{contract.ModeSync, contract.ModeAsync} {
		t.Run(mode, func(t *testing.T) {
			h := newHarness(t)
			h.classifier.proposal.Subtasks = []contract.Subtask{
				{Title: "count", Intent: "count", Domains: []string{"words"}}, {Title: "pay", Intent: "pay", Domains: []string{"bills"}},
			}
			h.target.does("counter", func(context.Context, dispatch.Call) dispatch.Outcome {
				return dispatch.Outcome{Result: success("12 words"), Attempts: 1}
			})
			h.target.does("payer", h.target.hangs)
			answers := make(chan *contract.Response, 1)
			if mode == contract.ModeAsync {
				h.submit()
			} else {
				go func() {
					resp, _ := h.Handle(t.Context(), newRequest(), alice)
					answers <- resp
				}()
			}
			id := testkit.Receive(t, h.target.begun).Task.RequestID
			testkit.Eventually(t, "the first agent has delivered", func() bool {
				resp, err := h.Request(t.Context(), id, alice)
				return mode == contract.ModeSync || err == nil && len(resp.Tasks) > 0 && resp.Tasks[0].Status == contract.TaskSuccess
			})
			got, err := h.Cancel(t.Context(), id, alice)
			if err != nil {
				t.Fatal(err)
			}
			if mode == contract.ModeSync {
				got = testkit.Receive(t, answers)
			}
			if got.Status != contract.StatusPartial || len(got.Tasks) != 2 || got.Tasks[1].Status != contract.TaskCancelled {
				t.Errorf("got %s with %+v, want partial with the second task cancelled", got.Status, got.Tasks)
			}
			if len(got.Data.Results) != 1 || got.Data.Results[0].AgentID != "counter" || got.Data.Answer == "" {
				t.Errorf("got results %+v and answer %q, want those of the first agent", got.Data.Results, got.Data.Answer)
			}
			if again, err := h.Request(t.Context(), id, alice); err != nil || again.Status != contract.StatusPartial || len(again.Data.Results) != 1 {
				t.Errorf("stored: got %+v, %v, want the same response", again, err)
			}
		})
	}
}
