package router_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/testkit"
)

// addConversation sets all the fields of the request that a task passes to its agent.
func addConversation(req *contract.Request) {
	req.Metadata.Locale, req.SessionID = "pt-BR", "s1"
	req.History = []contract.Turn{{Role: "user", Content: "I am ana@example.com"}, {Role: "assistant", Content: "hello"}}
}

// tiedClassification returns a classification with two equally likely intents.
func tiedClassification(first, second, domain string) contract.Classification {
	return contract.Classification{
		Intent: first, Domains: []string{domain}, Confidence: 0.5, Source: contract.SourceLexical,
		Alternatives: []contract.IntentScore{{Intent: second, Confidence: 0.45}},
	}
}

// checkSameTask compares the context of two tasks of a request.
func checkSameTask(t *testing.T, first, second *contract.Task) {
	t.Helper()
	differ := cmpopts.IgnoreFields(contract.Task{}, "TaskID", "Deadline", "Attempt", "Callback")
	if diff := cmp.Diff(first, second, differ); diff != "" {
		t.Errorf("tasks differ (-first +second):\n%s", diff)
	}
	if first.Intent != contract.Unknown || len(first.Alternatives) != 2 || first.Confidence != 0.95 ||
		first.Locale != "pt-BR" || first.SessionID != "s1" || len(first.History) != 2 {
		t.Errorf("got task %+v, want the tied intents and the conversation", first)
	}
}

func TestRouter_ResumesTaskWithSameContext(t *testing.T) {
	h := newHarness(t)
	h.registry = "clients:\n  counter: {match: {intent: [count, sum], domains: [words]}, endpoint: {protocol: http, url: \"http://127.0.0.1:1/\", idempotent: true}}\n"
	h.classifier.proposal = tiedClassification("count", "sum", "words")
	h.crash()
	h.open()
	h.target.setBehaviour("counter", h.target.hang)
	id := h.submit(addConversation).RequestID
	first := testkit.Receive(t, h.target.begun)
	h.target.setBehaviour("counter", nil)
	h.restart()
	h.final(id)
	calls := h.target.calls
	checkSameTask(t, &first.Task, &calls[len(calls)-1].Task)
}

func TestRouter_FailsOverWithSameContext(t *testing.T) {
	h := newHarness(t)
	h.registry = "clients:\n" +
		"  first: {match: {intent: [pay, refund], domains: [bills]}, endpoint: {protocol: http, url: \"http://127.0.0.1:1/\"}, priority: 1}\n" +
		"  second: {match: {intent: [pay, refund], domains: [bills]}, endpoint: {protocol: http, url: \"http://127.0.0.1:1/\"}}\n"
	h.classifier.proposal = tiedClassification("pay", "refund", "bills")
	h.crash()
	h.open()
	h.target.setBehaviour("first", func(context.Context, dispatch.Call) dispatch.Outcome {
		return dispatch.Outcome{Attempts: 1, Result: &contract.Result{Status: contract.ResultFailure}}
	})
	resp, err := h.Handle(t.Context(), newRequest(addConversation), alice)
	if err != nil || resp.Status != contract.StatusCompleted {
		t.Fatalf("got %+v, %v, want completed by the standby", resp, err)
	}
	checkSameTask(t, &h.target.calls[0].Task, &h.target.calls[1].Task)
}
