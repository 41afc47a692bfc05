package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/rest"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/fakellm"
)

const doerEntry = "clients:\n  doer: { match: { intent: [count_things], domains: [numbers] }, " +
	"examples: { count_things: [count the numbers, count these numbers please] }, endpoint: { protocol: orchestrator } }\n"

// newDoerServer starts a router with the agent doer, whose tasks are goals. The model plans and
// verifies them.
func newDoerServer(t *testing.T, model *modelServer, change ...func(*config.Config)) *runServer {
	t.Helper()
	lookup := func(name string) (string, bool) { return operatorsKey, name == "OPERATORS_KEY" }
	s := newRunServerIn(t, lookup, append([]func(*config.Config){func(c *config.Config) {
		c.Classifier.Mode = classifier.ModeLexical
		c.LLM.Provider, c.LLM.BaseURL, c.LLM.Model, c.LLM.APIKeyEnv = config.ProviderGemini, model.URL, model.Model, "OPERATORS_KEY"
		c.Orchestrator.Planner.Kind = config.ProviderGemini
	}}, change...)...)
	s.write(doerEntry)
	if err := s.reload(); err != nil {
		t.Fatal(err)
	}
	return s
}

// doerScopes are those of a caller who may use the agent doer, and pursue goals.
const doerScopes = runScopes + " route:submit route:read agent:doer"

func (s *runServer) of(subject, scopes string) string {
	return s.token(subject, scopes, map[string]any{"tenant": "acme"})
}

// routeTask routes a prompt to the agent doer with a timeout in milliseconds, 0 = that of the
// router, and returns the request when it has ended.
func (s *runServer) routeTask(t *testing.T, token, prompt, mode string, timeout int) *contract.Response {
	t.Helper()
	got := s.do(call{
		method: "POST", path: "/api/v1/route", token: token,
		body: fmt.Sprintf(`{"content":{"prompt":%q},"options":{"mode":%q,"timeout_ms":%d}}`, prompt, mode, timeout),
	})
	resp := new(contract.Response)
	if err := json.Unmarshal(got.body, resp); err != nil || got.status >= 300 {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	testkit.Eventually(t, "the request has ended", func() bool {
		got := s.do(call{method: "GET", path: "/api/v1/requests/" + resp.RequestID, token: token})
		return json.Unmarshal(got.body, resp) == nil && resp.Status.Terminal()
	})
	if len(resp.Tasks) != 1 || resp.Tasks[0].AgentID != "doer" {
		t.Fatalf("got tasks %+v, want one of doer", resp.Tasks)
	}
	return resp
}

// erase erases a request or an orchestration as soon as its end is recorded.
func (s *runServer) erase(t *testing.T, path, token string) {
	t.Helper()
	testkit.Eventually(t, "DELETE "+path, func() bool {
		got := s.do(call{method: "DELETE", path: path, token: token})
		if got.status != http.StatusNoContent && (got.status != http.StatusConflict || !strings.Contains(string(got.body), "is ending")) {
			t.Fatalf("DELETE %s: got %d %s, want 204", path, got.status, got.body)
		}
		return got.status == http.StatusNoContent
	})
}

// The erasure of a request, or of an orchestration, leaves no text of the orchestration in any
// file, and the audit log stays valid.
func TestErasure_ReachesOrchestrations(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	list := []*storedRequest{
		{name: "sync", mode: "sync"},
		{name: "async", mode: "async"},
		{name: "kept", mode: "sync"},
		{name: "direct"},
		{name: "asrequest"},
		{name: "goalkept"}, // goals without a request
	}
	t.Run("router", func(t *testing.T) {
		model := startModel(t, config.ProviderGemini, operatorsKey)
		s := newDoerServer(t, model, func(c *config.Config) { c.DataDir = dir })
		ana := s.of("ana", doerScopes)
		for _, r := range list {
			step := stepOf("a", "add", fmt.Sprintf(`{"n":1,"text":%q}`, r.canary()), "")
			model.setReplies(fakellm.Text(`{"steps":[` + step + `]}`))
			if r.mode == "" {
				status, run := s.send(t, "POST", "/api/v1/orchestrations", ana, fmt.Sprintf(`{"goal":"count the numbers %s"}`, r.canary()))
				if status != http.StatusOK || run.Status != contract.OrchestrationDone {
					t.Fatalf("%s: got %d and %s (%s), want DONE: %+v", r.name, status, run.Status, run.Reason, run.Errors)
				}
				r.id, r.run = run.OrchestrationID, run.OrchestrationID
				continue
			}
			resp := s.routeTask(t, ana, "count the numbers "+r.canary(), r.mode, 0)
			if resp.Status != contract.StatusCompleted {
				t.Fatalf("%s: got %s, want completed: %+v", r.name, resp.Status, resp.Tasks)
			}
			r.id, r.run = resp.RequestID, resp.Tasks[0].TaskID
		}
		found := decryptedCanaries(t, dir, list)
		for _, r := range list {
			for _, where := range []string{"ORCHESTRATIONS", "content tool_call"} {
				if !slices.ContainsFunc(found[r.name], func(at string) bool { return strings.Contains(at, where) }) {
					t.Errorf("%s: got the text in %q, want it in %s, because otherwise the test searches the wrong positions", r.name, found[r.name], where)
				}
			}
		}
		for _, r := range list {
			path := "/api/v1/requests/" + r.id
			switch r.name {
			case "kept", "goalkept":
				continue
			case "direct":
				path = "/api/v1/orchestrations/" + r.id
			}
			s.erase(t, path, ana)
			if got := s.do(call{method: "GET", path: "/api/v1/orchestrations/" + r.run, token: ana}); got.status != http.StatusNotFound {
				t.Errorf("%s: got %d %s, want no orchestration", r.name, got.status, got.body)
			}
			status := http.StatusOK
			if r.mode == "" { // no request
				status = http.StatusNotFound
			}
			if got := s.do(call{method: "GET", path: "/api/v1/requests/" + r.id, token: ana}); got.status != status || strings.Contains(string(got.body), r.canary()) {
				t.Errorf("%s: got %d %s, want %d and the status of the request alone", r.name, got.status, got.body, status)
			}
		}
		listed := string(s.do(call{method: "GET", path: "/api/v1/orchestrations", token: ana}).body)
		for _, r := range list {
			if kept := strings.Contains(r.name, "kept"); strings.Contains(listed, r.canary()) != kept {
				t.Errorf("%s: got the list %s, want the goal in it: %t", r.name, listed, kept)
			}
		}
	})
	found := decryptedCanaries(t, dir, list)
	for _, r := range list {
		if kept := strings.Contains(r.name, "kept"); kept != (len(found[r.name]) > 0) {
			t.Errorf("%s: got the text in %q, want some: %t", r.name, found[r.name], kept)
		}
	}
	verifyAudit(t, dir)
}

// An orchestration can be erased when it has ended, like a request, by its caller or an
// administrator. The one of a task is erased with its request only.
func TestErasure_OfOrchestrationsIsRestricted(t *testing.T) {
	t.Parallel()
	model := startModel(t, config.ProviderGemini, operatorsKey)
	s := newDoerServer(t, model)
	ana, root := s.of("ana", doerScopes), s.token("root", "admin route:submit", nil)
	body := `{"goal":"count","constraints":{` + planOf(stepOf("a", "ask", `{}`, "")) + `}}`
	_, run := s.send(t, "POST", "/api/v1/orchestrations", ana, body)
	own, request := "/api/v1/orchestrations/"+run.OrchestrationID, "/api/v1/requests/"+run.OrchestrationID
	want := func(name, path, token string, status int, text string) {
		t.Helper()
		if got := s.do(call{method: "DELETE", path: path, token: token}); got.status != status || !strings.Contains(string(got.body), text) {
			t.Errorf("%s: got %d %s, want %d with %q", name, got.status, got.body, status, text)
		}
	}
	want("it waits", own, ana, http.StatusConflict, "cancel it first")
	want("it waits, as a request", request, ana, http.StatusConflict, "cancel it first")
	s.send(t, "POST", own+"/cancel", ana, "")
	testkit.Eventually(t, "the run has ended", func() bool {
		_, run = s.send(t, "GET", own, ana, "")
		return run.Status.Terminal()
	})
	want("an approver", own, s.of("bob", "orchestrate:approve orchestrate"), http.StatusForbidden, "administrator")
	want("another tenant", own, s.token("ana", doerScopes, map[string]any{"tenant": "rival"}), http.StatusNotFound, "")
	want("without a scope", own, s.of("ana", "orchestrate:approve"), http.StatusForbidden, "orchestrate")
	s.erase(t, own, root)
	want("a second time", own, root, http.StatusNotFound, "")
	want("a second time, as a request", request, ana, http.StatusNoContent, "")

	model.setReplies(fakellm.Text(`{"steps":[` + stepOf("a", "add", `{"n":1}`, "") + `]}`))
	resp := s.routeTask(t, ana, "count the numbers", "sync", 0)
	want("a task", "/api/v1/orchestrations/"+resp.Tasks[0].TaskID, ana, http.StatusConflict, "request "+resp.RequestID)
	want("a task, as a request", "/api/v1/requests/"+resp.Tasks[0].TaskID, ana, http.StatusNotFound, "")
	s.erase(t, "/api/v1/requests/"+resp.RequestID, ana)
	want("its request, a second time", "/api/v1/requests/"+resp.RequestID, ana, http.StatusNoContent, "")
}

// After an orchestration is erased, its idempotency key still reports how it ended.
func TestErasure_OfOrchestrationKeepsOutcomeInKey(t *testing.T) {
	s := newRunServer(t)
	for _, tt := range []struct {
		name, plan string
		cancel     bool
		want       contract.Status
	}{
		{name: "done", plan: planOf(stepOf("a", "add", `{"n":1}`, "")), want: contract.StatusCompleted},
		{name: "blocked", plan: planOf(stepOf("a", "forbidden", `{}`, "")), want: contract.StatusFailed},
		{name: "cancelled", plan: planOf(stepOf("a", "ask", `{}`, "")), cancel: true, want: contract.StatusCancelled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			goal := call{
				method: "POST", path: "/api/v1/orchestrations", token: s.ana(), body: `{"goal":"count","constraints":{` + tt.plan + `}}`,
				header: http.Header{"Idempotency-Key": {tt.name}},
			}
			first, run := s.do(goal), contract.Orchestration{}
			if err := json.Unmarshal(first.body, &run); err != nil {
				t.Fatalf("got %d %s", first.status, first.body)
			}
			path := "/api/v1/orchestrations/" + run.OrchestrationID
			if tt.cancel {
				s.send(t, "POST", path+"/cancel", s.ana(), "")
			}
			s.erase(t, path, s.ana())
			calls := s.calls.Load()
			again := s.do(goal)
			var problem rest.ExpiredProblem
			if err := json.Unmarshal(again.body, &problem); err != nil || again.status != http.StatusGone {
				t.Fatalf("sent again: got %d %s, want 410", again.status, again.body)
			}
			if problem.Outcome != tt.want || problem.Data.RequestID != run.OrchestrationID || problem.Data.EndedAt.IsZero() || problem.Data.AnswerSHA256 != "" {
				t.Errorf("sent again: got %s, want the outcome %s of %s, its end, and no hash", again.body, tt.want, run.OrchestrationID)
			}
			if !strings.Contains(problem.Detail, "was executed before") || s.calls.Load() != calls {
				t.Errorf("sent again: got %q after %d calls, want that it was executed before, and %d calls", problem.Detail, s.calls.Load(), calls)
			}
		})
	}
}
