package app

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
)

const dryReview = `{"content":{"prompt":"code review of python"},"options":{"dry_run":true}}`

func TestReload_ServesDuringThousandReloads(t *testing.T) {
	agent := startAgent(t, "live_agent", answer("done"))
	registry := func(i int) string {
		return "clients:\n" + entry("live_agent", "code_review", "python", agent.url) +
			entry("extra_agent", "cost_analysis", fmt.Sprintf("domain%d", i), "")
	}
	s := startServer(t, registry(0))
	agent.trust(s)

	stop := make(chan struct{})
	var asked atomic.Int64
	bodies := []string{dryReview, `{"content":{"prompt":"code review of python"}}`}
	done := make(chan struct{})
	for c := range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			for i := c; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				status, data := s.post(t.Context(), bodies[i%len(bodies)])
				if status != http.StatusOK || strings.Contains(string(data), `"status":"failed"`) {
					t.Errorf("got status %d during a reload: %s", status, data)
					return
				}
				asked.Add(1)
			}
		}()
	}
	for i := range 1000 {
		s.write(registry(i + 1))
		if err := s.core.file.Reload(); err != nil {
			t.Fatalf("reload %d: %v", i, err)
		}
	}
	if err := s.reload(); err != nil {
		t.Fatal(err)
	}
	close(stop)
	for range 4 {
		testkit.Receive(t, done)
	}
	if asked.Load() == 0 {
		t.Error("got no request during the reloads, want some")
	}
	if got := s.get("/api/v1/registry"); !strings.Contains(got, `"domain1000"`) {
		t.Errorf("got another registry in use than the last of 1,000")
	}
}

func TestReload_KeepsLastValidRegistry(t *testing.T) {
	s := startServer(t, "clients:\n"+entry("a_agent", "code_review", "python", ""))
	before := s.route(dryReview).Decision.RegistryVersion

	s.write("clients:\n  a_agent:\n    matsch: {}\n")
	if err := s.reload(); err == nil {
		t.Fatal("got no error from the reload of a broken registry, want one")
	}
	resp := s.route(dryReview)
	if resp.Status != contract.StatusAccepted || resp.Decision.RegistryVersion != before {
		t.Errorf("got %s on registry %s, want the last good one, %s", resp.Status, resp.Decision.RegistryVersion, before)
	}
	ready := s.get("/readyz")
	for _, want := range []string{`"status":"degraded"`, `"stale":true`, "capabilities.yaml:3:5", before} {
		if !strings.Contains(ready, want) {
			t.Errorf("got /readyz %s, want %s in it", ready, want)
		}
	}
	metrics := s.get("/metrics")
	for _, want := range []string{"\ncaprouter_registry_stale 1\n", "\ncaprouter_registry_reloads_total{result=\"failed\"} 1\n"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("got no %s in the metrics", want)
		}
	}
	if log := s.log.String(); !strings.Contains(log, "capabilities.yaml:3:5") {
		t.Errorf("got no line number in the log: %s", log)
	}

	s.write("clients:\n" + entry("b_agent", "code_review", "python", ""))
	if err := s.reload(); err != nil {
		t.Fatal(err)
	}
	if resp := s.route(dryReview); resp.Decision.Chosen[0] != "b_agent" {
		t.Errorf("got %v, want b_agent of the corrected registry", resp.Decision.Chosen)
	}
	if metrics := s.get("/metrics"); !strings.Contains(metrics, "\ncaprouter_registry_stale 0\n") {
		t.Error("got the corrected registry reported as stale")
	}
}

// TestReload_FollowsFileChanges changes the file without a signal.
func TestReload_FollowsFileChanges(t *testing.T) {
	s := startServer(t, "clients:\n"+entry("a_agent", "code_review", "python", ""))
	s.write("clients:\n" + entry("b_agent", "code_review", "python", ""))
	testkit.Eventually(t, "b_agent is in use", func() bool {
		return s.route(dryReview).Decision.Chosen[0] == "b_agent"
	})
}

// TestReload_ReportsRevertedRegistryAsValid reverts a broken edit: nothing new is applied, and the
// registry must no longer be reported as stale.
func TestReload_ReportsRevertedRegistryAsValid(t *testing.T) {
	good := "clients:\n" + entry("a_agent", "code_review", "python", "")
	s := startServer(t, good)
	s.write("clients: [\n")
	if err := s.reload(); err == nil {
		t.Fatal("got no error from the reload of a broken registry, want one")
	}
	s.write(good)
	if err := s.reload(); err != nil {
		t.Fatal(err)
	}
	if metrics := s.get("/metrics"); !strings.Contains(metrics, "\ncaprouter_registry_stale 0\n") {
		t.Error("got the corrected registry reported as stale")
	}
	if ready := s.get("/readyz"); !strings.Contains(ready, `"status":"ready"`) {
		t.Errorf("got /readyz %s, want ready", ready)
	}
}

// sendHUP sends SIGHUP to this process. It returns an error on systems without signals.
func sendHUP() error {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	return self.Signal(syscall.SIGHUP)
}

func TestReload_OnSIGHUP(t *testing.T) {
	s := startServer(t, "clients:\n"+entry("a_agent", "code_review", "python", ""), func(c *config.Config) { c.Registry.HotReload = false })
	s.write("clients:\n" + entry("b_agent", "code_review", "python", ""))
	if got := s.route(dryReview).Decision.Chosen[0]; got != "a_agent" {
		t.Fatalf("got %s before the signal, want a_agent, because hot_reload is off", got)
	}
	if err := sendHUP(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "b_agent is in use", func() bool {
		return s.route(dryReview).Decision.Chosen[0] == "b_agent"
	})
}

// A SIGHUP during the shutdown must not end the process, which is the default without a handler.
func TestReload_IgnoresSIGHUPDuringShutdown(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	agent := startAgent(t, "slow", func(context.Context, contract.Task) (contract.Result, error) {
		close(begun)
		<-goOn
		return agentkit.Answer("done"), nil
	})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	s := startOnce(ctx, t, "clients:\n"+entry("slow", "count_words", "text", agent.url), func(c *config.Config) { c.DataDir = t.TempDir() })
	agent.trust(s)
	answered := make(chan int, 1)
	go func() {
		status, _ := s.post(context.WithoutCancel(t.Context()), `{"content":{"prompt":"count words of this text"}}`)
		answered <- status
	}()
	testkit.WaitClosed(t, begun)
	stop()
	testkit.Eventually(t, "no request is accepted any more", func() bool {
		conn, err := net.Dial("tcp", s.Addr())
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	if err := sendHUP(); err != nil {
		t.Fatal(err)
	}
	// The system may deliver the signal later, and the end of the server removes the handler.
	testkit.Eventually(t, "the signal is delivered", func() bool { return len(s.hangup) > 0 })
	close(goOn)
	if err := s.Wait(); err != nil {
		t.Errorf("got the server stopped with %v", err)
	}
	if status := testkit.Receive(t, answered); status != http.StatusOK {
		t.Errorf("running request: got %d, want 200", status)
	}
}

// TestReload_LoadsRegistryCreatedLater starts without a file.
func TestReload_LoadsRegistryCreatedLater(t *testing.T) {
	t.Chdir(t.TempDir())
	s := startServer(t, "clients: {}\n", func(c *config.Config) { c.Registry.File = "" })
	if status, data := s.post(t.Context(), dryReview); !strings.Contains(string(data), `"status":"unsupported"`) {
		t.Fatalf("got %d %s, want unsupported, because no agent exists", status, data)
	}
	s.registry = config.DefaultRegistryFile
	s.write("clients:\n" + entry("a_agent", "code_review", "python", ""))
	if err := s.reload(); err != nil {
		t.Fatal(err)
	}
	if got := s.route(dryReview).Decision.Chosen; len(got) != 1 || got[0] != "a_agent" {
		t.Errorf("got %v, want a_agent of the created file", got)
	}
	// After the file has existed, a missing file is an error, and the last valid registry stays in
	// use.
	if err := os.Remove(config.DefaultRegistryFile); err != nil {
		t.Fatal(err)
	}
	if err := s.reload(); err == nil {
		t.Error("got no error for a removed registry, want one")
	}
	if got := s.route(dryReview).Decision.Chosen; len(got) != 1 {
		t.Errorf("got %v, want a_agent still", got)
	}
}
