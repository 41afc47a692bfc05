package router_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/testkit"
)

func TestRouter_CancelsRunningRequest(t *testing.T) {
	for name, behaviour := range map[string]func(*agents) func(context.Context, dispatch.Call) dispatch.Outcome{
		"agent executing":      func(a *agents) func(context.Context, dispatch.Call) dispatch.Outcome { return a.hang },
		"waiting for callback": func(a *agents) func(context.Context, dispatch.Call) dispatch.Outcome { return a.acceptLater },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.target.setBehaviour("payer", behaviour(h.target))
			id := h.submit().RequestID
			call := testkit.Receive(t, h.target.begun)
			if name == "waiting" {
				h.waitForCallback(id)
			}
			got, err := h.Cancel(t.Context(), id, alice)
			if err != nil || got.Status != contract.StatusCancelled {
				t.Fatalf("got %+v, %v, want cancelled", got, err)
			}
			if name == "waiting" {
				if stopped := testkit.Receive(t, h.target.stops); stopped != call.Task.TaskID {
					t.Errorf("got cancelled task %s, want %s", stopped, call.Task.TaskID)
				}
			}
			grant, res := callbackResult(&call, "paid")
			if err := h.Callbacks().AcceptResult(t.Context(), grant, res); code(err) != contract.CodeConflict {
				t.Errorf("result after the cancellation: got %v, want a conflict", err)
			}
			again, err := h.Cancel(t.Context(), id, alice)
			if err != nil || again.Status != contract.StatusCancelled {
				t.Errorf("second cancellation: got %+v, %v, want the same response", again, err)
			}
			if final := h.final(id); final.Status != contract.StatusCancelled {
				t.Errorf("got final event with status %s, want cancelled", final.Status)
			}
			h.restart()
			if got, err := h.Request(t.Context(), id, alice); err != nil || got.Status != contract.StatusCancelled {
				t.Errorf("after a restart: got %+v, %v, want cancelled", got, err)
			}
			if page, err := h.Decisions(t.Context(), contract.DecisionQuery{}, alice); err != nil || len(page.Decisions) != 1 {
				t.Errorf("got decisions %+v, %v, want one with an outcome", page, err)
			}
		})
	}
}

// A revoked key cancels its request even if the revocation is noticed only before the next send.
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
			h.target.setBehaviour("payer", func(context.Context, dispatch.Call) dispatch.Outcome {
				h.revoked.Store(true)
				return dispatch.Outcome{Attempts: 1, Err: &contract.TaskError{Code: contract.TaskAgentUnavailable, Detail: "payer is down"}}
			})
			resp := handle(h)
			if resp.Status != contract.StatusCancelled {
				t.Errorf("got %s with tasks %+v, want cancelled", resp.Status, resp.Tasks)
			}
			if diff := cmp.Diff([]string{"payer"}, h.target.dispatchedTo()); diff != "" {
				t.Errorf("agents that got a task (-want +got):\n%s", diff)
			}
		})
	}
}

// A request that is not stored ends without an error in the log.
func TestRouter_StopRevokedEndsSynchronousRequest(t *testing.T) {
	h := newHarness(t)
	h.target.setBehaviour("payer", h.target.hang)
	answers := h.handle(t.Context())
	testkit.Receive(t, h.target.begun)
	h.revoked.Store(true)
	h.StopRevoked(t.Context())
	if got := testkit.Receive(t, answers); got.err != nil || got.resp.Status != contract.StatusCancelled {
		t.Errorf("got %+v, %v, want cancelled", got.resp, got.err)
	}
	if log := h.log.String(); strings.Contains(log, `"level":"ERROR"`) {
		t.Errorf("got the log\n%s\nwant no error", log)
	}
}

// A stored request goes on as long as its end cannot be recorded, and is ended by a later attempt.
func TestRouter_StopRevokedRecordsEndFirst(t *testing.T) {
	h := newHarness(t)
	executing := make(chan context.Context, 1)
	h.target.setBehaviour("payer", func(ctx context.Context, c dispatch.Call) dispatch.Outcome {
		executing <- ctx
		<-ctx.Done()
		return dispatch.Outcome{Attempts: 1, MayHaveExecuted: true, Err: &contract.TaskError{Code: contract.TaskWasCancelled, Detail: "the caller disconnected"}}
	})
	id := h.submit().RequestID
	task := testkit.Receive(t, executing)
	h.revoked.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the store cannot be written with it
	h.StopRevoked(ctx)
	if err := task.Err(); err != nil {
		t.Fatalf("got the task ended with %v before the end of the request was recorded", context.Cause(task))
	}
	h.StopRevoked(t.Context())
	if got := h.final(id); got.Status != contract.StatusCancelled {
		t.Errorf("got %s, want cancelled", got.Status)
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

// The caller cancels its synchronous request by a second API call.
func TestRouter_CancelsSynchronousRequest(t *testing.T) {
	h := newHarness(t)
	h.target.setBehaviour("payer", h.target.hang)
	answers := make(chan *contract.Response)
	go func() {
		resp, _ := h.Handle(t.Context(), newRequest(), alice)
		answers <- resp
	}()
	call := testkit.Receive(t, h.target.begun)
	got, err := h.Cancel(t.Context(), call.Task.RequestID, alice)
	if err != nil || got.Status != contract.StatusCancelled {
		t.Errorf("got %+v, %v, want cancelled", got, err)
	}
	if resp := testkit.Receive(t, answers); resp == nil || resp.Status != contract.StatusCancelled {
		t.Errorf("synchronous response: got %+v, want cancelled", resp)
	}
}

// TestRouter_CancelKeepsDeliveredResults cancels a request after one of its two agents has returned
// its result.
func TestRouter_CancelKeepsDeliveredResults(t *testing.T) {
	for _, mode := range []string{contract.ModeSync, contract.ModeAsync} {
		t.Run(mode, func(t *testing.T) {
			h := newHarness(t)
			h.classifier.proposal.Subtasks = []contract.Subtask{
				{Title: "count", Intent: "count", Domains: []string{"words"}}, {Title: "pay", Intent: "pay", Domains: []string{"bills"}},
			}
			counted := make(chan bool, 1)
			h.target.setBehaviour("counter", func(context.Context, dispatch.Call) dispatch.Outcome {
				defer func() { counted <- true }()
				return dispatch.Outcome{Result: success("12 words"), Attempts: 1}
			})
			h.target.setBehaviour("payer", h.target.hang)
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
			testkit.Receive(t, counted)
			testkit.Eventually(t, "the result of the first agent is stored", func() bool {
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
				t.Errorf("got %s with tasks %+v, want partial with the second task cancelled", got.Status, got.Tasks)
			}
			if len(got.Data.Results) != 1 || got.Data.Results[0].AgentID != "counter" || got.Data.Answer == "" {
				t.Errorf("got results %+v and answer %q, want those of the first agent", got.Data.Results, got.Data.Answer)
			}
			if again, err := h.Request(t.Context(), id, alice); err != nil || again.Status != contract.StatusPartial || len(again.Data.Results) != 1 {
				t.Errorf("stored response: got %+v, %v, want the same", again, err)
			}
		})
	}
}
