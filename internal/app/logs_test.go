package app

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/testkit"
)

// Metrics of agents are always returned, their logs only on request; both are in the decision log.
func TestServer_ReturnsMetricsAndLogsOfAgents(t *testing.T) {
	agent := startAgent(t, "quality_agent", func(context.Context, contract.Task) (contract.Result, error) {
		return contract.Result{
			Status: contract.ResultSuccess, Data: map[string]json.RawMessage{"answer": json.RawMessage(`"fine"`)},
			Logs: []string{"read by ana@example.com"}, Metrics: map[string]float64{"tokens": 812},
		}, nil
	})
	s := startServer(t, "clients:\n"+entry("quality_agent", "code_review", "python", agent.url))
	agent.trust(s)
	const prompt = `{"content":{"prompt":"code review of python"}`
	wantLogs := func(where string, resp *contract.Response, want bool) {
		t.Helper()
		task := resp.Tasks[0]
		if got := len(task.Logs) == 1 && task.Logs[0] == "read by [EMAIL_1]"; got != want || task.Metrics["tokens"] != 812 {
			t.Errorf("%s: got logs %q and metrics %v, want the metrics, and masked logs: %v", where, task.Logs, task.Metrics, want)
		}
	}
	stored := func(id string) *contract.Response {
		var resp contract.Response
		if err := json.Unmarshal([]byte(s.get("/api/v1/requests/"+id)), &resp); err != nil {
			t.Fatal(err)
		}
		return &resp
	}
	for _, logs := range []bool{false, true} {
		options := `,"options":{"logs":` + map[bool]string{true: "true", false: "false"}[logs] + `}}`
		resp := s.route(prompt + options)
		wantLogs("response", resp, logs)
		wantLogs("stored response", stored(resp.RequestID), logs)

		status, body := s.post(t.Context(), prompt+strings.Replace(options, "}}", `,"mode":"async"}}`, 1))
		var accepted contract.Response
		if err := json.Unmarshal(body, &accepted); status != http.StatusAccepted || err != nil {
			t.Fatalf("got status %d: %s", status, body)
		}
		testkit.Eventually(t, "the asynchronous request has ended", func() bool { return stored(accepted.RequestID).Status.Terminal() })
		wantLogs("asynchronous response", stored(accepted.RequestID), logs)
	}
	// The outcome of an asynchronous request is recorded right after its end.
	testkit.Eventually(t, "four decisions have logs", func() bool {
		return strings.Count(s.get("/api/v1/decisions"), `"logs":["read by [EMAIL_1]"]`) == 4
	})
	testkit.Eventually(t, "the metrics count the tokens of agents", func() bool {
		return strings.Contains(s.get("/metrics"), `caprouter_agent_tokens_total{status="success"} 3248`)
	})
}

// Callers that disconnect, cancel a request or stop reading its events cause no warning.
func TestServer_LogsNoWarningsOfCancellations(t *testing.T) {
	working, ended := make(chan struct{}, 2), make(chan struct{}, 2)
	agent := startAgent(t, "slow", func(ctx context.Context, _ contract.Task) (contract.Result, error) {
		working <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return contract.Result{}, ctx.Err()
	})
	s := startServer(t, "clients:\n"+entry("slow", "count_words", "text", agent.url))
	agent.trust(s)
	const prompt = `{"content":{"prompt":"count words of this text"}`

	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = s.post(ctx, prompt+"}")
	}()
	testkit.Receive(t, working)
	leave()
	testkit.WaitClosed(t, left)
	testkit.Receive(t, ended)

	status, body := s.post(t.Context(), prompt+`,"options":{"mode":"async"}}`)
	var accepted contract.Response
	if err := json.Unmarshal(body, &accepted); status != http.StatusAccepted || err != nil {
		t.Fatalf("got status %d: %s", status, body)
	}
	testkit.Receive(t, working)
	path := "/api/v1/requests/" + accepted.RequestID
	reading, stop := context.WithCancel(t.Context())
	defer stop()
	req, err := http.NewRequestWithContext(reading, http.MethodGet, s.url(path+"/events"), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	events, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := events.Body.Read(make([]byte, 1)); err != nil {
		t.Fatalf("first event: %v", err)
	}
	stop()
	events.Body.Close()
	if got := s.do(call{method: http.MethodPost, path: path + "/cancel"}); got.status != http.StatusOK {
		t.Fatalf("cancel: got %d %s, want 200", got.status, got.body)
	}
	testkit.Receive(t, ended)
	testkit.Eventually(t, "both requests are recorded", func() bool {
		return strings.Count(s.get("/api/v1/decisions"), `"subject":"local","status":"cancelled"`) == 2
	})
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, "ERROR") || strings.Contains(line, "WARN") {
			t.Errorf("got log line %s, want no warning", line)
		}
	}
}
