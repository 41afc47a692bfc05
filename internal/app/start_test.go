package app

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
)

// TestStart_RejectsInvalidConfig checks that the error of each invalid configuration contains the
// position and the cause.
func TestStart_RejectsInvalidConfig(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	tests := []struct {
		name   string
		change func(t *testing.T, c *config.Config)
		want   string
	}{
		{"public listener without authentication", func(_ *testing.T, c *config.Config) { c.Listen = "0.0.0.0:0" }, "auth.mode is none"},
		{"port in use", func(_ *testing.T, c *config.Config) { c.Listen = taken.Addr().String() }, "is in use"},
		{"broken registry", func(t *testing.T, c *config.Config) {
			c.Registry.File = writeFile(t, "broken.yaml", "clients:\n  a: {}\n  a: {}\n")
		}, "broken.yaml:3:3"},
		{"named registry missing", func(t *testing.T, c *config.Config) { c.Registry.File = filepath.Join(t.TempDir(), "none.yaml") }, "none.yaml"},
		{"classifier not available", func(_ *testing.T, c *config.Config) { c.Classifier.Mode = "llm" }, "classifier.mode"},
		{"readable key", func(t *testing.T, c *config.Config) {
			signer, _, err := openSigningKeys(c.DataDir)
			if err != nil || signer == nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(c.DataDir, "agent-signing.key"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "agent-signing.key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := config.Default()
			cfg.Listen = "127.0.0.1:0"
			cfg.DataDir = filepath.Join(t.TempDir(), "data")
			cfg.Registry.File = "../../capabilities/testdata/source.yaml"
			tt.change(t, &cfg)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s, err := Start(ctx, cfg, Options{LogOutput: &testkit.LogBuffer{}, LookupEnv: noEnv})
			if err == nil {
				cancel()
				_ = s.Wait()
				t.Fatal("got a running server, want an error")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %q, want %q in it", err, tt.want)
			}
		})
	}
}

// TestServer_FinishesTasksDuringShutdown stops the server while an agent works: the request is
// still answered.
func TestServer_FinishesTasksDuringShutdown(t *testing.T) {
	working, release := make(chan struct{}), make(chan struct{})
	agent := startAgent(t, "slow_agent", func(ctx context.Context, task contract.Task) (contract.Result, error) {
		close(working)
		<-release
		return answer("done")(ctx, task)
	})
	dir := t.TempDir()
	cfg := config.Default()
	cfg.Listen = "127.0.0.1:0"
	cfg.DataDir = filepath.Join(dir, "data")
	cfg.Registry.File = writeFile(t, "capabilities.yaml", "clients:\n"+entry("slow_agent", "code_review", "python", agent.url))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	log := &testkit.LogBuffer{}
	server, err := Start(ctx, cfg, Options{LogOutput: log, LookupEnv: noEnv})
	if err != nil {
		t.Fatal(err)
	}
	s := &testServer{Server: server, t: t, log: log}
	agent.trust(s)

	answered := make(chan []byte, 1)
	go func() {
		_, data := s.post(t.Context(), `{"content":{"prompt":"code review of python"}}`)
		answered <- data
	}()
	testkit.WaitClosed(t, working)
	stop()
	testkit.Eventually(t, "the server refuses new connections", func() bool {
		c, err := net.Dial("tcp", server.Addr())
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	close(release)
	if got := string(testkit.Receive(t, answered)); !strings.Contains(got, `"status":"completed"`) {
		t.Errorf("got %s, want the answer of the running request", got)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("got the drain ended with %v", err)
	}
}

// TestServer_LogsAddress checks the log line that scripts parse.
func TestServer_LogsAddress(t *testing.T) {
	s := startServer(t, "clients: {}\n")
	log := s.log.String()
	at := strings.Index(log, "listening on ")
	if at < 0 || !strings.HasPrefix(log[at:], "listening on "+s.Addr()) {
		t.Fatalf("got log %q, want \"listening on %s\"", log, s.Addr())
	}
	if first := strings.Index(log, "127.0.0.1:"); first < at {
		t.Errorf("got another address before the listening one: %q", log)
	}
}

// A start with an unchanged registry uses its stored lexical model; if the file is damaged, the
// model is trained again.
func TestStart_UsesStoredModel(t *testing.T) {
	dir := t.TempDir()
	registry := "clients:\n" + entry("counter", "count_words", "text", refusing)
	var files []string
	for _, damage := range []bool{false, true, false} {
		if damage {
			if err := os.WriteFile(files[0], []byte("damaged"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
		t.Cleanup(stop)
		s := startOnce(ctx, t, registry, func(c *config.Config) { c.DataDir = dir })
		if status, body := s.post(t.Context(), `{"content":{"prompt":"count words of this text"},"options":{"dry_run":true}}`); status != http.StatusOK || !strings.Contains(string(body), "counter") {
			t.Errorf("got %d %s, want the agent counter", status, body)
		}
		stop()
		ended := make(chan error, 1)
		go func() { ended <- s.Wait() }()
		if err := testkit.Receive(t, ended); err != nil {
			t.Error(err)
		}
		if got := strings.Contains(s.log.String(), "trained again"); got != damage {
			t.Errorf("got a log line about the stored model %t, want %t:\n%s", got, damage, s.log)
		}
		var err error
		if files, err = filepath.Glob(filepath.Join(dir, "lexical", "*")); err != nil || len(files) != 1 {
			t.Fatalf("got files %v, %v, want one", files, err)
		}
	}
}
