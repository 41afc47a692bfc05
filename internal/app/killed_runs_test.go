package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/fakellm"
)

// doerProcess is a router with the agent doer in its own process.
type doerProcess struct {
	killableReplica
	tokenIssuer
	dataDir string
	model   *modelServer
	calls   atomic.Int64
}

// startDoerProcess starts the router. Its registry contains the entry.
func startDoerProcess(t *testing.T, entry string) *doerProcess {
	t.Helper()
	p := &doerProcess{tokenIssuer: newTokenIssuer(), dataDir: filepath.Join(t.TempDir(), "data"), model: startModel(t, config.ProviderGemini, "")}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, p.secret, 0o600); err != nil {
		t.Fatal(err)
	}
	p.config = writeFile(t, "caprouter.yaml", fmt.Sprintf(`listen: 127.0.0.1:0
data_dir: %s
registry: { file: %s }
store: { sync: 10s }
classifier: { mode: lexical }
llm: { provider: gemini, base_url: %q, model: %q, api_key_env: "" }
orchestrator: { planner: { kind: gemini }, policy_file: %s }
mcp: { file: %s }
auth: { mode: jwt, keys: [{ kid: tests, alg: HS256, secret_file: %s }] }
`, p.dataDir, writeFile(t, "capabilities.yaml", entry), p.model.URL, p.model.Model, writeFile(t, "policy.yaml", runPolicy), startCounter(t, &p.calls), secret))
	p.start(t)
	return p
}

// restart kills the process, and starts a router with its data.
func (p *doerProcess) restart(t *testing.T, entry string, change ...func(*config.Config)) *runServer {
	t.Helper()
	p.kill()
	_, _ = p.process.Wait()
	return newDoerServer(t, p.model, append([]func(*config.Config){func(c *config.Config) {
		c.DataDir, c.LLM.APIKeyEnv, c.Registry.File = p.dataDir, "", writeFile(t, "capabilities.yaml", entry)
	}}, change...)...)
}

// do sends a request and decodes the response into out. It reports whether the status is 2xx.
func (p *doerProcess) do(t *testing.T, method, path, token, body string, out any) (ok bool) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, p.url(path), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusMultipleChoices {
		return false
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return true
}

// beginWaiting begins a synchronous request, and returns its id and that of its run when that
// needs an approval.
func (p *doerProcess) beginWaiting(t *testing.T, token string) (request, run string) {
	t.Helper()
	p.model.setReplies(fakellm.Text(`{"steps":[` + stepOf("a", "ask", `{}`, "") + `]}`))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url("/api/v1/route"), strings.NewReader(`{"content":{"prompt":"count the numbers"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "text/event-stream"} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	for events := testkit.NewSSEReader(resp.Body); ; {
		next, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		var ev contract.Event
		if err := json.Unmarshal([]byte(next.Data), &ev); err != nil {
			t.Fatalf("%v in %s", err, next.Data)
		}
		if ev.Type == contract.EventTaskProgress {
			return resp.Header.Get("X-Request-Id"), ev.Task.TaskID
		}
	}
}

// beginAsync begins an asynchronous request, and returns it and the id of its run when that has
// made a call and waits for an approval of another one.
func (p *doerProcess) beginAsync(t *testing.T, token string) (resp *contract.Response, run string) {
	t.Helper()
	p.model.setReplies(fakellm.Text(`{"steps":[` + stepOf("b", "add", `{"n":1}`, "") + "," + stepOf("a", "ask", `{}`, `,"depends_on":["b"]`) + `]}`))
	resp = new(contract.Response)
	accepted := p.do(t, "POST", "/api/v1/route", token, `{"content":{"prompt":"count the numbers"},"options":{"mode":"async","timeout_ms":120000}}`, resp)
	if !accepted {
		t.Fatal("got the request rejected")
	}
	testkit.Eventually(t, "the run waits", func() bool {
		if !p.do(t, "GET", "/api/v1/requests/"+resp.RequestID, token, "", resp) || len(resp.Tasks) == 0 {
			return false
		}
		var state contract.Orchestration // the task is recorded first
		return p.do(t, "GET", "/api/v1/orchestrations/"+resp.Tasks[0].TaskID, token, "", &state) && state.Status == contract.OrchestrationWaiting
	})
	return resp, resp.Tasks[0].TaskID
}

// A synchronous request whose process was killed leaves a run that waits for an approval. The
// sender of the request can cancel it, or erase it, without the scope orchestrate.
func TestRequests_EndRunsOfKilledProcess(t *testing.T) {
	t.Parallel()
	p := startDoerProcess(t, doerEntry)
	ana := p.token("ana", doerScopes, map[string]any{"tenant": "acme"})
	type waiting struct{ request, run string }
	var list []waiting
	for range 2 {
		request, run := p.beginWaiting(t, ana)
		list = append(list, waiting{"/api/v1/requests/" + request, "/api/v1/orchestrations/" + run})
	}
	s := p.restart(t, doerEntry)
	ana = s.of("ana", "route:submit route:read agent:doer")
	observer := s.of("ana", doerScopes)
	for _, w := range list {
		testkit.Eventually(t, "the run waits", func() bool { // its process may have been killed before that
			_, run := s.send(t, "GET", w.run, observer, "")
			return run.Status == contract.OrchestrationWaiting
		})
	}
	cancelled, erased := list[0], list[1]

	for name, token := range map[string]string{"a colleague": s.of("bob", doerScopes), "an approver": s.of("bob", doerScopes+" orchestrate:approve")} {
		for _, c := range []call{{method: "POST", path: cancelled.request + "/cancel", token: token}, {method: "DELETE", path: cancelled.request, token: token}} {
			if got := s.do(c); got.status != http.StatusNotFound && got.status != http.StatusForbidden {
				t.Errorf("%s: %s: got %d %s, want it rejected", name, c.method, got.status, got.body)
			}
		}
	}
	if _, run := s.send(t, "GET", cancelled.run, observer, ""); run.Status != contract.OrchestrationWaiting {
		t.Errorf("got the run %s (%s), want it waiting after requests of others", run.Status, run.Reason)
	}

	var resp contract.Response
	got := s.do(call{method: "POST", path: cancelled.request + "/cancel", token: ana})
	if err := json.Unmarshal(got.body, &resp); err != nil || got.status != http.StatusOK || resp.Status != contract.StatusFailed {
		t.Errorf("cancel: got %d %s, want 200 and the status failed", got.status, got.body)
	}
	_, run := s.send(t, "GET", cancelled.run, observer, "")
	if run.Status != contract.OrchestrationFailed || run.Reason != contract.ReasonCancelled {
		t.Errorf("cancel: got the run %s (%s), want it cancelled", run.Status, run.Reason)
	}
	if got := s.do(call{method: "POST", path: cancelled.request + "/cancel", token: ana}); got.status != http.StatusConflict {
		t.Errorf("cancel again: got %d %s, want 409, because nothing is left", got.status, got.body)
	}
	for _, w := range []waiting{cancelled, erased} {
		s.erase(t, w.request, ana)
		if status, _ := s.send(t, "GET", w.run, observer, ""); status != http.StatusNotFound {
			t.Errorf("erased: got the run with status %d, want none", status)
		}
	}
	if n := p.calls.Load() + s.calls.Load(); n != 0 {
		t.Errorf("got %d calls, want none", n)
	}
}

// A run of a killed process whose call is in flight ends as by a cancellation of the run: the call
// is cancelled, and not repeated.
func TestRequests_EraseCancelsCallOfKilledProcess(t *testing.T) {
	t.Parallel()
	p := startDoerProcess(t, doerEntry)
	request, run := p.beginWaiting(t, p.token("ana", doerScopes, map[string]any{"tenant": "acme"}))
	calls := make(chan string, 8)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the end of the connection is noticed
		calls <- "begun"
		<-r.Context().Done()
		calls <- "cancelled"
	}))
	t.Cleanup(server.Close)
	s := p.restart(t, doerEntry, func(c *config.Config) {
		c.MCP.File = writeFile(t, "mcp.json", fmt.Sprintf(`{"plugins":[{"id":"counter","endpoint":%q,"actions":[{"name":"ask"}]}]}`, server.URL))
	})
	status, _ := s.send(t, "POST", "/api/v1/orchestrations/"+run+"/approve", s.of("bob", "orchestrate:approve"), `{"step":"a","decision":"approve"}`)
	if status != http.StatusOK {
		t.Fatalf("got %d, want the approval accepted", status)
	}
	if got := testkit.Receive(t, calls); got != "begun" {
		t.Fatalf("got the call %s, want it begun", got)
	}
	s.erase(t, "/api/v1/requests/"+request, s.of("ana", "route:submit"))
	if got := testkit.Receive(t, calls); got != "cancelled" || len(calls) > 0 {
		t.Errorf("got the call %s and %d more, want it cancelled and none repeated", got, len(calls))
	}
	if status, _ := s.send(t, "GET", "/api/v1/orchestrations/"+run, s.of("ana", doerScopes), ""); status != http.StatusNotFound {
		t.Errorf("got the run with status %d, want none", status)
	}
	if got := s.do(call{method: "GET", path: "/api/v1/requests/" + request, token: s.of("ana", doerScopes)}); got.status != http.StatusOK {
		t.Errorf("got %d %s, want the status of the request", got.status, got.body)
	}
}

// An asynchronous task whose process was killed waits for its run after the restart, although its
// agent is not idempotent: the run continues, and repeats no call.
func TestOrchestrations_TaskFindsRunOfKilledProcess(t *testing.T) {
	t.Parallel()
	for _, decision := range []string{"approve", "deny"} {
		t.Run(decision, func(t *testing.T) {
			t.Parallel()
			p := startDoerProcess(t, doerEntry)
			ana := p.token("ana", doerScopes, map[string]any{"tenant": "acme"})
			resp, run := p.beginAsync(t, ana)
			path := "/api/v1/requests/" + resp.RequestID
			s := p.restart(t, doerEntry)
			ana = s.of("ana", doerScopes)
			state := func() bool {
				got := s.do(call{method: "GET", path: path, token: ana})
				return json.Unmarshal(got.body, resp) == nil && resp.Status.Terminal()
			}
			if state() {
				t.Fatalf("got %s with tasks %+v after the restart, want the request running", resp.Status, resp.Tasks)
			}
			status, _ := s.send(t, "POST", "/api/v1/orchestrations/"+run+"/approve", s.of("bob", "orchestrate:approve"), fmt.Sprintf(`{"step":"a","decision":%q}`, decision))
			if status != http.StatusOK {
				t.Fatalf("got %d, want the decision accepted", status)
			}
			testkit.Eventually(t, "the request has ended", state)
			want, calls := contract.StatusCompleted, int64(2)
			if decision == "deny" {
				want, calls = contract.StatusFailed, 1
			}
			if n := p.calls.Load() + s.calls.Load(); resp.Status != want || n != calls || resp.Tasks[0].TaskID != run {
				t.Errorf("got %s after %d calls, want %s after %d: %+v", resp.Status, n, want, calls, resp.Tasks)
			}
		})
	}
}

// If the agent may not get the task any more, it is not known whether the run continues. No other
// agent gets the task.
func TestOrchestrations_TaskLosesRunOfKilledProcess(t *testing.T) {
	t.Parallel()
	p := startDoerProcess(t, doerEntry)
	resp, _ := p.beginAsync(t, p.token("ana", doerScopes, map[string]any{"tenant": "acme"}))
	other := strings.TrimPrefix(strings.Replace(doerEntry, "doer:", "other:", 1), "clients:\n")
	s := p.restart(t, strings.Replace(doerEntry, "endpoint:", "requires: { scopes: [more] }, endpoint:", 1)+other)
	testkit.Eventually(t, "the request has ended", func() bool {
		got := s.do(call{method: "GET", path: "/api/v1/requests/" + resp.RequestID, token: s.of("ana", doerScopes)})
		return json.Unmarshal(got.body, resp) == nil && resp.Status.Terminal()
	})
	if task := &resp.Tasks[0]; len(resp.Tasks) != 1 || task.AgentID != "doer" || task.Error == nil || task.Error.Code != contract.TaskOutcomeUnknown {
		t.Errorf("got %s with tasks %+v, want outcome_unknown of doer", resp.Status, resp.Tasks)
	}
	if n := p.calls.Load() + s.calls.Load(); n != 1 {
		t.Errorf("got %d calls, want 1", n)
	}
}
