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

// beginWaiting begins a synchronous request, and returns its id and that of its run when that
// waits for an approval.
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
		if _, run := s.send(t, "GET", w.run, observer, ""); run.Status != contract.OrchestrationWaiting {
			t.Fatalf("got the run %s (%s), want it waiting", run.Status, run.Reason)
		}
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
