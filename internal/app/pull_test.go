package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/rest"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// pullRegistry declares an agent that pulls its tasks.
func pullRegistry(idempotent bool, more ...string) string {
	return fmt.Sprintf("clients:\n  puller: { match: { intent: [count_words], domains: [prose] }, endpoint: { protocol: pull, idempotent: %v }, priority: 1 }\n",
		idempotent) + strings.Join(more, "")
}

// An operator sees whether a worker of an agent polls, because the agent is active without
// one, too.
func TestServe_ShowsPollsOfAgent(t *testing.T) {
	s := startServer(t, pullRegistry(false, "  pushed: { match: { intent: [count_words], domains: [prose] } }"))
	polling := func(id string) *rest.Polling {
		t.Helper()
		var agent rest.Agent
		if err := json.Unmarshal([]byte(s.get("/api/v1/agents/"+id)), &agent); err != nil {
			t.Fatal(err)
		}
		return agent.Polling
	}
	if got := polling("puller"); got == nil || got.Polls != 0 || got.LastPollAt != nil {
		t.Errorf("before a poll: got %+v, want none", got)
	}
	if leased := s.pull("puller", `{"wait_s":0}`); leased != nil {
		t.Fatalf("got a task %+v, want none", leased)
	}
	if got := polling("puller"); got == nil || got.Polls != 0 || got.LastPollAt == nil || time.Since(*got.LastPollAt) > time.Minute {
		t.Errorf("after a poll: got %+v, want its time", got)
	}
	if got := polling("pushed"); got != nil {
		t.Errorf("an agent that does not pull: got %+v, want no polls", got)
	}
}

// pull leases a task of the agent; nil = none.
func (s *testServer) pull(agentID, body string) *contract.LeasedTask {
	s.t.Helper()
	got := s.do(call{method: "POST", path: "/api/v1/agents/" + agentID + "/lease", body: body})
	if got.status == http.StatusNoContent {
		return nil
	}
	var leased contract.LeasedTask
	if err := json.Unmarshal(got.body, &leased); err != nil || got.status != http.StatusOK {
		s.t.Fatalf("lease: %d %s", got.status, got.body)
	}
	return &leased
}

// report posts to the task's callback, and returns the response.
func (s *testServer) report(leased *contract.LeasedTask, what, body string) apiResponse {
	s.t.Helper()
	return s.do(call{
		method: "POST", path: "/api/v1/tasks/" + leased.Task.TaskID + "/" + what, token: leased.Task.Callback.Token, body: body,
	})
}

// leaseState renews the lease and returns its state.
func (s *testServer) leaseState(leased *contract.LeasedTask) contract.LeaseState {
	s.t.Helper()
	got := s.report(leased, "heartbeat", "")
	var lease contract.TaskLease
	if err := json.Unmarshal(got.body, &lease); err != nil || got.status != http.StatusOK {
		s.t.Fatalf("heartbeat: %d %s", got.status, got.body)
	}
	return lease.State
}

func resultOf(leased *contract.LeasedTask) string {
	return fmt.Sprintf(`{"task_id":%q,"status":"success","data":{"answer":"6 words, attempt %d"}}`, leased.Task.TaskID, leased.Task.Attempt)
}

// submitProse submits an asynchronous request and returns its id.
func (s *testServer) submitProse() string {
	s.t.Helper()
	got := s.do(call{method: "POST", path: "/api/v1/route", body: fmt.Sprintf(`{"content":{"prompt":%q},"options":{"mode":"async"}}`, countProse)})
	var resp contract.Response
	if err := json.Unmarshal(got.body, &resp); err != nil || got.status != http.StatusAccepted {
		s.t.Fatalf("submit: %d %s", got.status, got.body)
	}
	return resp.RequestID
}

// awaitEnd waits for the end of a request.
func (s *testServer) awaitEnd(id string) *contract.Response {
	s.t.Helper()
	var resp contract.Response
	testkit.Eventually(s.t, "the request has ended", func() bool {
		got := s.do(call{method: "GET", path: "/api/v1/requests/" + id})
		return json.Unmarshal(got.body, &resp) == nil && resp.Status.Terminal()
	})
	return &resp
}

func TestPull_ServesSynchronousRequest(t *testing.T) {
	s := startServer(t, pullRegistry(false))
	if leased := s.pull("puller", ""); leased != nil {
		t.Fatalf("got %+v without a request, want none", leased)
	}
	answers := make(chan *contract.Response, 1)
	g := run.New(t.Context())
	g.Go("caller", func(context.Context) error { answers <- s.routeProse(); return nil })
	leased := s.pull("puller", `{"wait_s":20}`)
	if leased == nil || leased.Task.Attempt != 1 || string(leased.Task.Inputs["prompt"]) != encode(countProse) || leased.Token == "" {
		t.Fatalf("got %+v, want the task", leased)
	}
	// It was stored before it was leased.
	rec, err := s.core.persistence.requests.Get(t.Context(), leased.Task.RequestID)
	if err != nil || rec.FindTask(leased.Task.TaskID) == nil {
		t.Errorf("got record %+v, %v, want one with the task", rec, err)
	}
	if again := s.pull("puller", ""); again != nil {
		t.Errorf("got the task leased again: %+v", again)
	}
	if got := s.report(leased, "progress", `{"message":"half","percent":50}`); got.status != http.StatusOK || s.leaseState(leased) != contract.LeaseHeld {
		t.Errorf("progress: got %d %s", got.status, got.body)
	}
	for range 2 { // an agent may repeat its result
		if got := s.report(leased, "result", resultOf(leased)); got.status != http.StatusOK {
			t.Errorf("result: got %d %s", got.status, got.body)
		}
	}
	resp := testkit.Receive(t, answers)
	if resp.Status != contract.StatusCompleted || resp.Tasks[0].Attempts != 1 || !strings.Contains(resp.Data.Answer, "6 words") {
		t.Errorf("got %+v", resp)
	}
	if got := s.leaseState(leased); got != contract.LeaseCancelled {
		t.Errorf("heartbeat after the result: got %s, want cancelled", got)
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

func TestPull_RedeliversToIdempotentAgent(t *testing.T) {
	t.Parallel()
	s := startServer(t, pullRegistry(true))
	id := s.submitProse()
	first := s.pull("puller", `{"wait_s":20,"lease_ttl_s":2}`)
	if first == nil {
		t.Fatal("got no task")
	}
	second := s.pull("puller", `{"wait_s":20}`)
	if second == nil || second.Task.TaskID != first.Task.TaskID || second.Task.Attempt != 2 {
		t.Fatalf("got %+v, want attempt 2 of the task, because its lease expired", second)
	}
	if got := s.leaseState(first); got != contract.LeaseCancelled {
		t.Errorf("first worker: got %s, want cancelled", got)
	}
	if got := s.report(second, "result", resultOf(second)); got.status != http.StatusOK {
		t.Errorf("result: got %d %s", got.status, got.body)
	}
	if resp := s.awaitEnd(id); resp.Status != contract.StatusCompleted || resp.Tasks[0].Attempts != 2 {
		t.Errorf("got %+v", resp)
	}
}

func TestPull_OutcomeIsUnknownAfterLease(t *testing.T) {
	t.Parallel()
	url, calls := countingAgent(t)
	s := startServer(t, pullRegistry(false, entry("standby", "count_words", "prose", url)))
	id := s.submitProse()
	leased := s.pull("puller", `{"wait_s":20,"lease_ttl_s":2}`)
	if leased == nil {
		t.Fatal("got no task")
	}
	resp := s.awaitEnd(id)
	if resp.Status != contract.StatusFailed || resp.Tasks[0].Error == nil || resp.Tasks[0].Error.Code != contract.TaskOutcomeUnknown || calls.Load() != 0 {
		t.Errorf("got %+v and %d calls of the standby, want outcome_unknown and none", resp.Tasks, calls.Load())
	}
	s.checkNotDone("puller", contract.TaskOutcomeUnknown)
	if got := s.report(leased, "result", resultOf(leased)); got.status != http.StatusConflict {
		t.Errorf("result after the end: got %d %s, want 409", got.status, got.body)
	}
}

// checkNotDone checks that the log contains why a task of the agent has no result: in a line of the
// task, and in that of the decision.
func (s *testServer) checkNotDone(agentID string, code contract.TaskCode) {
	s.t.Helper()
	testkit.Eventually(s.t, "the decision is logged", func() bool {
		return strings.Contains(s.log.String(), fmt.Sprintf(`"failed":["%s:%s"]`, agentID, code))
	})
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, `"level":"WARN","msg":"task not done","agent":"`+agentID+`"`) && strings.Contains(line, `"code":"`+string(code)+`"`) {
			return
		}
	}
	s.t.Errorf("got log %s, want a warning that the task of %s was not done: %s", s.log, agentID, code)
}

// A task that the agent does not pull in its share of the time is sent to the standby.
func TestPull_FailsOverIfNotPulled(t *testing.T) {
	t.Parallel()
	url, calls := countingAgent(t)
	s := startServer(t, pullRegistry(false, entry("standby", "count_words", "prose", url)), func(c *config.Config) { c.Dispatch.TimeoutMS = 6000 })
	resp := s.routeProse()
	if resp.Status != contract.StatusCompleted || resp.Tasks[0].AgentID != "standby" || calls.Load() != 1 {
		t.Errorf("got %+v, want the answer of the standby", resp.Tasks)
	}
	if failed := resp.Tasks[0].FailedOver; len(failed) != 1 || failed[0].Attempts != 0 || !strings.Contains(failed[0].Error.Detail, "did not pull the task in time") {
		t.Errorf("got failed attempts %+v", failed)
	}
}

func TestPull_HeartbeatReportsCancellation(t *testing.T) {
	s := startServer(t, pullRegistry(false))
	id := s.submitProse()
	leased := s.pull("puller", `{"wait_s":20}`)
	if leased == nil || s.leaseState(leased) != contract.LeaseHeld {
		t.Fatalf("got %+v, want a task", leased)
	}
	if got := s.do(call{method: "POST", path: "/api/v1/requests/" + id + "/cancel"}); got.status != http.StatusOK {
		t.Fatalf("cancel: %d %s", got.status, got.body)
	}
	if got := s.leaseState(leased); got != contract.LeaseCancelled {
		t.Errorf("got %s, want cancelled", got)
	}
}

// A registered agent pulls as long as it is active.
func TestPull_FollowsRegistration(t *testing.T) {
	t.Parallel()
	s := startServer(t, guestGrants)
	lease := func() apiResponse {
		return s.do(call{method: "POST", path: "/api/v1/agents/guest/lease", body: `{"instance":"one"}`})
	}
	if got := lease(); got.status != http.StatusNotFound {
		t.Errorf("not registered: got %d %s, want 404", got.status, got.body)
	}
	pulls := func(r *contract.Registration) { r.Endpoint = contract.Endpoint{Protocol: contract.ProtocolPull} }
	s.register("guest", "one", "", pulls)
	if got := s.do(call{method: "PUT", path: "/api/v1/agents/guest", body: strings.Replace(guestRegistration, "{", `{"instance":"two",`, 1)}); got.status != http.StatusConflict {
		t.Errorf("instance with another protocol: got %d %s, want 409", got.status, got.body)
	}
	testkit.Eventually(t, "the agent gets a task", func() bool {
		s.submitProse()
		return s.pull("guest", `{"instance":"one","wait_s":1}`) != nil
	})
	if got := s.do(call{method: "POST", path: "/api/v1/agents/guest/drain", body: `{"instance":"one"}`}); got.status != http.StatusOK {
		t.Fatalf("drain: %d %s", got.status, got.body)
	}
	if got := lease(); got.status != http.StatusConflict || !strings.Contains(string(got.body), "draining") {
		t.Errorf("draining: got %d %s, want 409", got.status, got.body)
	}
}

// A caller that waits gets the failure as soon as the last worker that could pull the task has
// expired. An asynchronous request waits for another worker.
func TestPull_WaitsForExpiredAgentOnlyIfAsynchronous(t *testing.T) {
	t.Parallel()
	s := startServer(t, guestGrants, func(c *config.Config) { c.Dispatch.TimeoutMS = 300_000 })
	register := func(ttl int) {
		s.register("guest", "one", "", func(r *contract.Registration) {
			r.Endpoint, r.LeaseTTLS = contract.Endpoint{Protocol: contract.ProtocolPull}, ttl
		})
	}
	register(60)
	testkit.Eventually(t, "the agent gets a task", func() bool {
		s.submitProse()
		return s.pull("guest", `{"instance":"one","wait_s":1}`) != nil
	})
	for s.pull("guest", `{"instance":"one","wait_s":0}`) != nil { // the others
	}
	register(2) // and the worker ends
	id := s.submitProse()
	resp := s.routeProse()
	if resp.Status != contract.StatusFailed || len(resp.Tasks) != 1 || resp.Tasks[0].Error == nil ||
		resp.Tasks[0].Error.Code != contract.TaskAgentUnavailable || !strings.Contains(resp.Tasks[0].Error.Detail, "guest has expired") {
		t.Fatalf("got %+v, want agent_unavailable, because guest has expired", resp.Tasks)
	}
	s.checkNotDone("guest", contract.TaskAgentUnavailable)
	register(60)
	leased := s.pull("guest", `{"instance":"one","wait_s":20}`)
	if leased == nil || leased.Task.RequestID != id {
		t.Fatalf("got task %+v, want that of the asynchronous request %s", leased, id)
	}
	if got := s.report(leased, "result", resultOf(leased)); got.status != http.StatusOK {
		t.Errorf("result: got %d %s", got.status, got.body)
	}
	if resp := s.awaitEnd(id); resp.Status != contract.StatusCompleted {
		t.Errorf("got %+v", resp)
	}
}

// A task can be pulled from, and reported to, any replica; only the agent itself may pull.
func TestPull_WorksOnAnyReplica(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	a, b := startReplica(t, srv, pullRegistry(false)), startReplica(t, srv, pullRegistry(false))
	a.awaitReplicas(2)
	b.awaitReplicas(2)
	answers := make(chan *contract.Response, 1)
	g := run.New(t.Context())
	g.Go("caller", func(context.Context) error { answers <- a.routeProse(); return nil })
	leased := b.pull("puller", `{"wait_s":20}`)
	if leased == nil || b.leaseState(leased) != contract.LeaseHeld || a.leaseState(leased) != contract.LeaseHeld {
		t.Fatalf("got %+v, want a task", leased)
	}
	if got := b.report(leased, "result", resultOf(leased)); got.status != http.StatusOK {
		t.Errorf("result: got %d %s", got.status, got.body)
	}
	if resp := testkit.Receive(t, answers); resp.Status != contract.StatusCompleted {
		t.Errorf("got %+v", resp)
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

func TestPull_AcceptsAgentOnly(t *testing.T) {
	m := newTokenIssuer()
	s := startGuarded(t, m, pullRegistry(false))
	ask := func(token string) int {
		return s.do(call{method: "POST", path: "/api/v1/agents/puller/lease", token: token}).status
	}
	for name, tc := range map[string]struct {
		token string
		want  int
	}{
		"no token":      {"", http.StatusUnauthorized},
		"no scope":      {m.token("puller", "agents:register route:submit", nil), http.StatusForbidden},
		"another agent": {m.token("another", "tasks:work", nil), http.StatusForbidden},
		"operator":      {m.token("root", "admin tasks:work", nil), http.StatusForbidden},
		"agent":         {m.token("puller", "tasks:work", nil), http.StatusNoContent},
		"not a token":   {"nonsense", http.StatusUnauthorized},
	} {
		if got := ask(tc.token); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}

// startPuller runs an agentkit agent that pulls, until the returned function is called.
func startPuller(t *testing.T, s *testServer, cfg agentkit.Config, work agentkit.Work) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cfg.RouterURL = s.url("")
	cfg.Registration.Endpoint.Protocol = contract.ProtocolPull
	ended := make(chan error, 1)
	g := run.New(ctx)
	g.Go("agent", func(ctx context.Context) error {
		ended <- agentkit.Run(ctx, cfg, work)
		return nil
	})
	return func() {
		t.Helper()
		cancel()
		if err := testkit.Receive(t, ended); err != nil {
			t.Errorf("got the agent stopped with %v", err)
		}
	}
}

// An agentkit agent that pulls: progress, the caller, cancellation and a graceful shutdown.
func TestPull_AgentkitExecutesTasks(t *testing.T) {
	t.Parallel()
	s := startServer(t, guestGrants)
	started, cancelled, release := make(chan string, 8), make(chan struct{}, 8), make(chan struct{})
	stop := startPuller(t, s, agentkit.Config{
		AgentID: "guest",
		Registration: contract.Registration{
			Instance: "one", Match: contract.Match{Intent: []string{"count_words"}, Domains: []string{"prose"}}, MaxInFlight: 2,
		},
	}, func(ctx context.Context, task contract.Task) (contract.Result, error) {
		agentkit.Progress(ctx, "counting", 50)
		started <- agentkit.Caller(ctx)
		select {
		case <-release:
			return agentkit.Answer("6 words"), nil
		case <-ctx.Done():
			cancelled <- struct{}{}
			return contract.Result{}, ctx.Err()
		}
	})
	testkit.Eventually(t, "the agent is registered", func() bool {
		return strings.Contains(s.get("/api/v1/agents"), `"guest"`)
	})
	first := s.submitProse()
	if caller := testkit.Receive(t, started); caller != "local" {
		t.Errorf("got work for %q, want local", caller)
	}
	second := s.submitProse()
	testkit.Receive(t, started)
	if got := s.do(call{method: "POST", path: "/api/v1/requests/" + second + "/cancel"}); got.status != http.StatusOK {
		t.Fatalf("cancel: %d %s", got.status, got.body)
	}
	testkit.Receive(t, cancelled)
	close(release)
	if resp := s.awaitEnd(first); resp.Status != contract.StatusCompleted || resp.Data.Answer != "6 words" {
		t.Errorf("got %+v", resp)
	}
	stop()
	testkit.Eventually(t, "the agent has deregistered", func() bool { return !strings.Contains(s.get("/api/v1/agents"), `"guest"`) })
}

// An agent of the file pulls without a registration.
func TestPull_AgentkitServesDeclaredAgent(t *testing.T) {
	t.Parallel()
	s := startServer(t, pullRegistry(false))
	agent, err := agentkit.New(agentkit.Config{AgentID: "puller", RouterURL: s.url("")},
		func(context.Context, contract.Task) (contract.Result, error) { return agentkit.Answer("6 words"), nil })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	g := run.New(ctx)
	g.Go("agent", func(ctx context.Context) error { ended <- agent.PullTasks(ctx); return nil })
	if resp := s.routeProse(); resp.Status != contract.StatusCompleted || resp.Data.Answer != "6 words" {
		t.Errorf("got %+v", resp)
	}
	cancel()
	if err := testkit.Receive(t, ended); err != nil {
		t.Error(err)
	}
}
