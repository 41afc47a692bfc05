package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway/subprocess"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/mcpsample"
	"github.com/caprouter/caprouter/internal/testkit"
)

// TestMain makes the test binary act as the supervisor and as the sample MCP servers.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "supervise":
			os.Exit(subprocess.Supervise(context.Background(), os.Args[2:]))
		case routerRole:
			os.Exit(runRouter(os.Args[2]))
		case "sample":
			if err := mcpsample.Serve(context.Background(), os.Args[2], "test"); err != nil {
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	testkit.RaiseParallel()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		http.DefaultClient.CloseIdleConnections()
		os.Exit(code)
	}))
}

const reviewAndCost = `{"content":{"prompt":"Review this python code and do a cost analysis of our azure bill."}}`

func TestServer_CombinesAnswersOfTwoAgents(t *testing.T) {
	quality := startAgent(t, "quality_agent", answer("reviewed"))
	billing := startAgent(t, "billing_agent", answer("counted"))
	s := startServer(t, "clients:\n"+
		entry("quality_agent", "code_review", "python", quality.url)+
		entry("billing_agent", "cost_analysis", "azure", billing.url))
	quality.trust(s)
	billing.trust(s)

	resp := s.route(reviewAndCost)
	if resp.Status != contract.StatusCompleted || len(resp.Tasks) != 2 {
		t.Fatalf("got status %s and tasks %+v, want two completed", resp.Status, resp.Tasks)
	}
	for _, want := range []string{"reviewed: Review this python code", "counted: do a cost analysis"} {
		if !strings.Contains(resp.Data.Answer, want) {
			t.Errorf("got answer %q, want %q in it", resp.Data.Answer, want)
		}
	}
}

func TestServer_RoutesWithSourceDocumentRegistry(t *testing.T) {
	source, err := os.ReadFile("../../capabilities/testdata/source.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, string(source))

	resp := s.route(`{"content":{"prompt":"Please do a code review of this python module"},"options":{"dry_run":true}}`)
	if resp.Status != contract.StatusAccepted || !resp.Data.DryRun || len(resp.Decision.Chosen) != 1 || resp.Decision.Chosen[0] != "quality_agent" {
		t.Errorf("dry run: got %s %v, want quality_agent accepted", resp.Status, resp.Decision.Chosen)
	}
	if c := resp.Decision.Candidates[0]; c.Score != 0.8 || c.Parts != (contract.ScoreParts{Intent: 0.5, Domains: 0.3}) {
		t.Errorf("dry run: got score %v of %+v, want 0.8 of 0.5 and 0.3", c.Score, c.Parts)
	}

	resp = s.route(`{"content":{"prompt":"Please do a code review of this python module"}}`)
	if resp.Status != contract.StatusFailed || len(resp.Tasks) != 1 || resp.Tasks[0].Error == nil {
		t.Fatalf("got %s %+v, want one failed task", resp.Status, resp.Tasks)
	}
	if e := resp.Tasks[0].Error; e.Code != contract.TaskAgentUnavailable || !strings.Contains(e.Detail, "quality_agent names no endpoint") {
		t.Errorf("got %+v, want agent_unavailable because of the missing endpoint", e)
	}
}

func TestServer_FailsOverToStandby(t *testing.T) {
	alive := startAgent(t, "b_agent", answer("done"))
	s := startServer(t, "clients:\n"+
		entry("a_agent", "code_review", "python", refusing)+
		entry("b_agent", "code_review", "python", alive.url))
	alive.trust(s)

	// More requests than needed to open the breaker: each one is answered.
	for range 12 {
		resp := s.route(`{"content":{"prompt":"code review of python"}}`)
		if resp.Status != contract.StatusCompleted || resp.Tasks[0].AgentID != "b_agent" {
			t.Fatalf("got %s %+v, want b_agent to complete it", resp.Status, resp.Tasks)
		}
	}
	if got := s.get("/metrics"); !strings.Contains(got, "caprouter_breakers_open 1") {
		t.Errorf("got no open breaker in the metrics")
	}
	if got := s.get("/api/v1/agents/a_agent"); !strings.Contains(got, `"reasons":["breaker_open"]`) {
		t.Errorf("got agent %s, want its breaker open", got)
	}
}

func TestServer_ReportsFailureIfAllAgentsFail(t *testing.T) {
	t.Parallel()
	s := startServer(t, "clients:\n"+
		entry("a_agent", "code_review", "python", refusing)+
		entry("b_agent", "code_review", "python", refusing))
	// The response stays the same after the breakers have opened.
	for i := range 12 {
		resp := s.route(`{"content":{"prompt":"code review of python"}}`)
		if resp.Status != contract.StatusFailed || resp.Decision.FallbackUsed != nil {
			t.Fatalf("request %d: got %s, fallback %v, want failed without one", i, resp.Status, resp.Decision.FallbackUsed)
		}
		if e := resp.Tasks[0].Error; e == nil || e.Code != contract.TaskAgentUnavailable || e.Detail == "" {
			t.Fatalf("request %d: got %+v, want agent_unavailable with a reason", i, e)
		}
	}
}

func TestServer_CancelsTaskWhenCallerDisconnects(t *testing.T) {
	working, ended := make(chan struct{}), make(chan error, 1)
	slow := startAgent(t, "slow_agent", func(ctx context.Context, _ contract.Task) (contract.Result, error) {
		close(working)
		<-ctx.Done()
		ended <- ctx.Err()
		return contract.Result{}, ctx.Err()
	})
	s := startServer(t, "clients:\n"+entry("slow_agent", "code_review", "python", slow.url))
	slow.trust(s)

	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		s.post(ctx, `{"content":{"prompt":"code review of python"}}`)
	}()
	testkit.WaitClosed(t, working)
	leave()
	testkit.WaitClosed(t, gone)
	if err := testkit.Receive(t, ended); !errors.Is(err, context.Canceled) {
		t.Errorf("got the agent's work ended with %v, want cancelled", err)
	}
}

func TestServer_KeepsDeadline(t *testing.T) {
	over := make(chan struct{})
	var called atomic.Bool
	silent := startAgent(t, "silent_agent", func(context.Context, contract.Task) (contract.Result, error) {
		called.Store(true)
		<-over // it ignores its deadline
		return contract.Result{Status: contract.ResultFailure}, nil
	})
	t.Cleanup(func() { close(over) })
	s := startServer(t, "clients:\n"+
		entry("silent_agent", "code_review", "python", silent.url)+
		entry("z_agent", "code_review", "python", refusing))
	silent.trust(s)

	var resp *contract.Response
	for timeout := 300; !called.Load() && timeout < 60_000; timeout *= 4 { // a slow machine calls the agent later
		resp = s.route(fmt.Sprintf(`{"content":{"prompt":"code review of python"},"options":{"timeout_ms":%d}}`, timeout))
		if resp.Status != contract.StatusFailed {
			t.Fatalf("got %s, want failed", resp.Status)
		}
	}
	// The agent is not idempotent and received the task, so it must not be sent to another one.
	task := resp.Tasks[0]
	if task.AgentID != "silent_agent" || task.Error == nil || task.Error.Code != contract.TaskOutcomeUnknown {
		t.Errorf("got %s %+v, want silent_agent with outcome_unknown", task.AgentID, task.Error)
	}
}

func TestRouteOnce_EndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cfg := config.Default()
	cfg.Registry.File = "../../capabilities/testdata/source.yaml"
	cfg.DataDir = t.TempDir() + "/data"
	req := &contract.Request{Content: contract.Content{Prompt: "Please do a code review"}, Options: contract.Options{DryRun: true}}
	resp, err := RouteOnce(ctx, cfg, Options{LogOutput: &testkit.LogBuffer{}, LookupEnv: noEnv}, req)
	if resp != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("got %+v, %v, want context.Canceled, because nothing was routed", resp, err)
	}
}

func TestRouteOnce_NeedsNoServer(t *testing.T) {
	dir := t.TempDir()
	cfg := config.Default()
	cfg.Registry.File = "../../capabilities/testdata/source.yaml"
	cfg.DataDir = dir + "/data"
	req := &contract.Request{
		Content: contract.Content{Prompt: "Please do a code review of this python module"},
		Options: contract.Options{DryRun: true},
	}
	resp, err := RouteOnce(t.Context(), cfg, Options{LogOutput: &testkit.LogBuffer{}, LookupEnv: noEnv}, req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Status != contract.StatusAccepted || resp.Decision.Chosen[0] != "quality_agent" {
		t.Errorf("got %s %v, want quality_agent accepted", resp.Status, resp.Decision.Chosen)
	}
	if _, err := os.Stat(cfg.DataDir); !os.IsNotExist(err) {
		t.Errorf("got a data directory after a dry run: %v", err)
	}
}
