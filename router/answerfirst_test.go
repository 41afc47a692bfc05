package router_test

import (
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/testkit"
)

// newAnsweringHarness returns a router that answers first. It writes no response to the
// audit log until proceed is closed.
func newAnsweringHarness(t *testing.T) (h *harness, proceed chan struct{}) {
	h = newHarness(t)
	h.crash()
	h.answerFirst, proceed = true, make(chan struct{})
	h.onOutcome = func() { <-proceed }
	h.open()
	return h, proceed
}

func TestRouter_AnswersBeforeResponseIsRecorded(t *testing.T) {
	h, proceed := newAnsweringHarness(t)
	resp, err := h.Handle(t.Context(), newRequest(), alice) // while nothing can be written
	if err != nil || resp.Status != contract.StatusCompleted {
		t.Fatalf("got %+v, %v, want a completed request", resp, err)
	}
	close(proceed)
	got, err := h.Request(t.Context(), resp.RequestID, alice)
	if err != nil || got.Status != contract.StatusCompleted {
		t.Errorf("lookup: got %+v, %v, want the same response", got, err)
	}
	page, err := h.Decisions(t.Context(), contract.DecisionQuery{Limit: 1}, alice)
	if err != nil || len(page.Decisions) != 1 {
		t.Errorf("decision log: got %+v, %v, want the request", page, err)
	}
}

// If the process ends before the response is recorded, the next one records that the
// outcome is not known.
func TestRouter_RecordsUnknownOutcomeAfterAnswerAndCrash(t *testing.T) {
	h, proceed := newAnsweringHarness(t)
	resp, err := h.Handle(t.Context(), newRequest(), alice)
	if err != nil {
		t.Fatal(err)
	}
	h.must(h.store.Close()) // nothing is written any more
	close(proceed)
	h.restart()
	got, err := h.Request(t.Context(), resp.RequestID, alice)
	if err != nil || got.Status != contract.StatusFailed || len(got.Tasks) != 1 || got.Tasks[0].Error == nil || got.Tasks[0].Error.Code != contract.TaskOutcomeUnknown {
		t.Errorf("got %+v, %v, want a failed request whose outcome is unknown", got, err)
	}
}

// A response is recorded first if nothing else is on record of the request, or if the
// caller can send it again under its key.
func TestRouter_WaitsForRecordOfResponse(t *testing.T) {
	for name, tt := range map[string]struct {
		intent string
		change []func(*contract.Request)
	}{
		"with an idempotency key": {"pay", []func(*contract.Request){keyed("k")}},
		"without an agent":        {"fly", nil},
	} {
		t.Run(name, func(t *testing.T) {
			h, proceed := newAnsweringHarness(t)
			h.classifier.proposal.Intent = tt.intent
			writing := make(chan struct{}, 1)
			h.onOutcome = func() {
				writing <- struct{}{}
				<-proceed
			}
			response := make(chan error, 1)
			go func() {
				_, err := h.Handle(t.Context(), newRequest(tt.change...), alice)
				response <- err
			}()
			testkit.Receive(t, writing)
			select {
			case err := <-response:
				t.Errorf("got an answer (%v) before the record, want to wait", err)
			default:
			}
			close(proceed)
			if err := testkit.Receive(t, response); err != nil {
				t.Error(err)
			}
		})
	}
}

// The task and its token are made while the decision is being written, and sent afterwards.
func TestRouter_PreparesTaskWhileDecisionIsRecorded(t *testing.T) {
	for _, mode := range []string{contract.ModeSync, contract.ModeAsync} {
		t.Run(mode, func(t *testing.T) {
			h := newHarness(t)
			prepared := make(chan string, 1)
			h.beforeDecision = func() { prepared <- testkit.Receive(t, h.target.minted) }
			h.onDecision = func(string) {
				h.target.mu.Lock()
				defer h.target.mu.Unlock()
				if len(h.target.calls) != 0 {
					t.Error("got a task that was sent before the decision was written, want none")
				}
			}
			if mode == contract.ModeAsync {
				h.final(h.submit().RequestID)
			} else if resp, err := h.Handle(t.Context(), newRequest(), alice); err != nil || resp.Status != contract.StatusCompleted {
				t.Fatalf("got %+v, %v, want a completed request", resp, err)
			}
			taskID := testkit.Receive(t, prepared)
			h.target.mu.Lock()
			defer h.target.mu.Unlock()
			if len(h.target.calls) != 1 || h.target.calls[0].Task.TaskID != taskID || h.target.calls[0].Token.Value != taskID {
				t.Errorf("got calls %+v, want the prepared task %s with its token", h.target.calls, taskID)
			}
		})
	}
}
