package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
)

// An agent answers 202, reports its progress and sends its result to the callback; the caller and
// the event stream receive both.
func TestServer_AcceptsCallbackResults(t *testing.T) {
	goOn := make(chan struct{})
	agent := startAgent(t, "slow", func(ctx context.Context, _ contract.Task) (contract.Result, error) {
		if !agentkit.AcceptAsync(ctx) {
			return agentkit.Failure("there is no callback"), nil
		}
		agentkit.Progress(ctx, "half of it", 50)
		<-goOn
		return agentkit.Answer("all of it"), nil
	})
	s := startServer(t, "clients:\n"+entry("slow", "count_words", "text", agent.url))
	agent.trust(s)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url("/api/v1/route"),
		strings.NewReader(`{"content":{"prompt":"count words of this text"}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var text strings.Builder
	buf, notified := make([]byte, 4096), false
	for err == nil {
		var n int
		n, err = resp.Body.Read(buf)
		text.Write(buf[:n])
		if !notified && strings.Contains(text.String(), "half of it") {
			close(goOn)
			notified = true
		}
	}
	for _, want := range []string{"event: decision", "event: task.started", "event: task.progress", "event: task.done", "event: final", `"all of it"`} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("got no %s in the events:\n%s", want, &text)
		}
	}
}

// An accepted request is executed by the next process if this one ends before.
func TestServer_ResumesAsyncRequestsAfterRestart(t *testing.T) {
	begun := make(chan struct{}, 8)
	goOn := make(chan struct{})
	agent := startAgent(t, "slow", func(ctx context.Context, _ contract.Task) (contract.Result, error) {
		agentkit.AcceptAsync(ctx)
		begun <- struct{}{}
		<-goOn
		return agentkit.Answer("all of it"), nil
	})
	registry := "clients:\n" + entry("slow", "count_words", "text", agent.url)
	dir, listen := t.TempDir(), fmt.Sprint("127.0.0.1:", testkit.FreePort(t))
	keep := func(c *config.Config) { c.DataDir, c.Listen = dir, listen }

	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	first := startOnce(ctx, t, registry, keep)
	agent.trust(first)
	status, body := first.post(t.Context(), `{"content":{"prompt":"count words of this text"},"options":{"mode":"async"}}`)
	if status != http.StatusAccepted {
		t.Fatalf("got %d: %s", status, body)
	}
	var accepted contract.Response
	if err := json.Unmarshal(body, &accepted); err != nil {
		t.Fatal(err)
	}
	testkit.Receive(t, begun)
	stop()
	if err := first.Wait(); err != nil {
		t.Fatal(err)
	}

	second := startServer(t, registry, keep)
	close(goOn)
	events := second.get("/api/v1/requests/" + accepted.RequestID + "/events")
	if !strings.Contains(events, `"all of it"`) || !strings.Contains(events, "event: final") {
		t.Errorf("got events\n%s\nwant the agent's answer", events)
	}
	signer, err := keyring.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	report, err := audit.Verify(t.Context(), audit.VerifyConfig{DataDir: dir, Signer: signer})
	if err != nil || !report.OK() {
		t.Errorf("audit log: got %+v, %v, want a valid chain", report, err)
	}
}

// startOnce starts a server that the test stops itself.
func startOnce(ctx context.Context, t *testing.T, registry string, change func(*config.Config)) *testServer {
	t.Helper()
	s := &testServer{t: t, registry: t.TempDir() + "/capabilities.yaml", log: &testkit.LogBuffer{}}
	s.write(registry)
	cfg := config.Default()
	cfg.Store.Sync, cfg.Listen, cfg.Registry.File = "10s", "127.0.0.1:0", s.registry
	change(&cfg)
	server, err := Start(ctx, cfg, Options{LogOutput: s.log, LookupEnv: noEnv})
	if err != nil {
		t.Fatal(err)
	}
	s.Server = server
	return s
}

// Two processes must not write to the same data directory.
func TestStart_RejectsLockedDataDir(t *testing.T) {
	dir := t.TempDir()
	startServer(t, "clients: {}\n", func(c *config.Config) { c.DataDir = dir })
	cfg := config.Default()
	cfg.DataDir, cfg.Listen = dir, "127.0.0.1:0"
	_, err := Start(t.Context(), cfg, Options{LogOutput: io.Discard, LookupEnv: noEnv})
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("got %v, want one line with the fix", err)
	}
}

// A cancelled request keeps the results that an agent had returned before, in the response to the
// cancellation and in the stored response.
func TestServer_CancelKeepsDeliveredResults(t *testing.T) {
	quality := startAgent(t, "quality_agent", answer("reviewed"))
	billing := startAgent(t, "billing_agent", func(ctx context.Context, _ contract.Task) (contract.Result, error) {
		<-ctx.Done()
		return contract.Result{}, ctx.Err()
	})
	s := startServer(t, "clients:\n"+
		entry("quality_agent", "code_review", "python", quality.url)+
		entry("billing_agent", "cost_analysis", "azure", billing.url))
	quality.trust(s)
	billing.trust(s)
	got := s.do(call{method: http.MethodPost, path: "/api/v1/route", body: strings.Replace(reviewAndCost, `"}}`, `"},"options":{"mode":"async"}}`, 1)})
	id := got.response(t).RequestID
	testkit.Eventually(t, "the first agent has returned its result", func() bool {
		tasks := s.state("", id).Tasks
		return len(tasks) == 2 && tasks[0].Status == contract.TaskSuccess && tasks[1].Status == contract.TaskRunning
	})
	cancelled := s.do(call{method: http.MethodPost, path: "/api/v1/requests/" + id + "/cancel"})
	if cancelled.status != http.StatusOK {
		t.Fatalf("cancel: got %d %s, want 200", cancelled.status, cancelled.body)
	}
	for name, resp := range map[string]*contract.Response{"cancel": cancelled.response(t), "stored": s.state("", id)} {
		if resp.Status != contract.StatusPartial || len(resp.Data.Results) != 1 || !strings.Contains(resp.Data.Answer, "reviewed") || resp.Tasks[1].Status != contract.TaskCancelled {
			t.Errorf("%s: got %s with %s and answer %q, want partial with the first result", name, resp.Status, encode(resp.Tasks), resp.Data.Answer)
		}
	}
}

func TestServer_CancelsRequestsOfDisconnectedCallers(t *testing.T) {
	t.Parallel()
	const callers = 200
	begun, notified := make(chan struct{}, callers), make(chan struct{}, callers)
	agent := startAgent(t, "slow", func(ctx context.Context, _ contract.Task) (contract.Result, error) {
		begun <- struct{}{}
		<-ctx.Done()
		notified <- struct{}{}
		return contract.Result{}, ctx.Err()
	})
	s := startServer(t, "clients:\n"+entry("slow", "count_words", "text", agent.url, ", max_in_flight: 1000"),
		func(c *config.Config) { c.Dispatch.MaxInFlight = 1000 })
	agent.trust(s)
	ctx, leave := context.WithTimeout(t.Context(), time.Minute)
	ended := make(chan struct{}, callers)
	for range callers {
		go func() {
			_, _ = s.post(ctx, `{"content":{"prompt":"count words of this text"}}`)
			ended <- struct{}{}
		}()
	}
	for range callers {
		testkit.Receive(t, begun)
	}
	leave()
	for range callers {
		testkit.Receive(t, ended)
	}
	for range callers {
		testkit.Receive(t, notified) // while the router is running, because it drops unsent cancellations when it stops
	}
	testkit.Eventually(t, "the agent has no task", func() bool {
		var agents struct {
			Agents []struct {
				InFlight int `json:"in_flight"`
			} `json:"agents"`
		}
		if err := json.Unmarshal([]byte(s.get("/api/v1/agents")), &agents); err != nil {
			t.Fatal(err)
		}
		return agents.Agents[0].InFlight == 0
	})
}
