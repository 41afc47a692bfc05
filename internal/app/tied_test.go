package app

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/testkit"
)

// startRecorder serves an agent that sends its tasks to the channel.
func startRecorder(t *testing.T, id string, result contract.Result) (*testAgent, chan contract.Task) {
	t.Helper()
	tasks := make(chan contract.Task, 10)
	return startAgent(t, id, func(_ context.Context, task contract.Task) (contract.Result, error) {
		tasks <- task
		return result, nil
	}), tasks
}

// ordersRegistry has an agent with two intents that share a word.
func ordersRegistry(url string) string {
	return "clients:\n  order_agent: { match: { intent: [cancel_order, track_order], domains: [shop] }, endpoint: { protocol: http, url: \"" + url + "\" } }\n" +
		"  account_agent: { match: { intent: [reset_password], domains: [accounts] } }\n"
}

func TestServer_LeavesTiedIntentsToAgent(t *testing.T) {
	agent, tasks := startRecorder(t, "order_agent", agentkit.Answer("on its way"))
	s := startServer(t, ordersRegistry(agent.url))
	agent.trust(s)

	resp := s.route(`{"content":{"prompt":"Where is my order?"},"metadata":{"locale":"en-GB"},"session_id":"s1"}`)
	if c := resp.Decision.Classification; resp.Status != contract.StatusCompleted || !c.Tied || c.Intent == contract.Unknown {
		t.Fatalf("got %s, classified %+v, want a completed tie with the likeliest intent", resp.Status, c)
	}
	task := testkit.Receive(t, tasks)
	if task.Intent != contract.Unknown || len(task.Alternatives) != 2 || task.Confidence < 0.5 || task.Locale != "en-GB" || task.SessionID != "s1" || task.History != nil {
		t.Errorf("got task %+v, want intent unknown with two alternatives, locale and session", task)
	}

	// The next turn of the session has a history, also in asynchronous mode.
	status, body := s.post(t.Context(), `{"content":{"prompt":"cancel my order"},"session_id":"s1","options":{"mode":"async"}}`)
	if status != http.StatusAccepted {
		t.Fatalf("got status %d: %s", status, body)
	}
	task = testkit.Receive(t, tasks)
	want := []contract.Turn{{Role: "user", Content: "Where is my order?"}, {Role: "assistant", Content: "on its way"}}
	if diff := cmp.Diff(want, task.History); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	if task.Intent != "cancel_order" || task.Alternatives != nil || task.Confidence == 0 {
		t.Errorf("got task %+v, want cancel_order without alternatives", task)
	}
}

func TestServer_AnswersQuestionOfAgentWithContext(t *testing.T) {
	question := contract.Result{Status: contract.ResultSuccess, Data: map[string]json.RawMessage{
		"answer": json.RawMessage(`"Which order?"`), "needs_input": json.RawMessage("true"),
	}}
	agent, tasks := startRecorder(t, "order_agent", question)
	s := startServer(t, strings.Replace(ordersRegistry(agent.url), "endpoint", "restore: none, endpoint", 1))
	agent.trust(s)

	s.route(`{"content":{"prompt":"Where is my order? ana@example.com"},"session_id":"s1"}`)
	first := testkit.Receive(t, tasks)
	resp := s.route(`{"content":{"prompt":"the one of monday"},"session_id":"s1"}`)
	if c := resp.Decision.Classification; c.Source != contract.SourcePinned {
		t.Fatalf("got source %s, want the turn pinned to the agent", c.Source)
	}
	second := testkit.Receive(t, tasks)
	if diff := cmp.Diff(first.Alternatives, second.Alternatives); diff != "" || second.Intent != contract.Unknown {
		t.Errorf("got intent %s, alternatives (-first +second):\n%s", second.Intent, diff)
	}
	if len(second.History) != 2 || second.History[1].Content != "Which order?" || strings.Contains(second.History[0].Content, "ana@") {
		t.Errorf("got history %+v, want both turns, masked for this agent", second.History)
	}
}
