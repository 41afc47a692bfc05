package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
)

// noEnv is an environment without variables.
func noEnv(string) (string, bool) { return "", false }

// writeFile writes a file in a directory of its own, and returns its path.
func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// testServer is a running router with its own registry file.
type testServer struct {
	*Server
	t        *testing.T
	registry string // path
	log      *testkit.LogBuffer
}

// startServer runs a router on loopback until the test ends, and fails the test if it does not stop
// cleanly.
func startServer(t *testing.T, registry string, change ...func(*config.Config)) *testServer {
	t.Helper()
	return startServerIn(t, noEnv, registry, change...)
}

// startServerIn starts a router with these environment variables.
func startServerIn(t *testing.T, lookup func(string) (string, bool), registry string, change ...func(*config.Config)) *testServer {
	t.Helper()
	dir := t.TempDir()
	s := &testServer{t: t, registry: filepath.Join(dir, "capabilities.yaml"), log: &testkit.LogBuffer{}}
	s.write(registry)
	cfg := config.Default()
	cfg.Store.Sync = "10s" // no test simulates a power failure
	cfg.Listen = "127.0.0.1:0"
	cfg.DataDir = filepath.Join(dir, "data")
	cfg.Registry.File = s.registry
	cfg.Limits.Classify.RPS, cfg.Limits.Read.RPS = "0", "0"
	for _, c := range change {
		c(&cfg)
	}
	// t.Context() would end before the cleanup, and the drain is part of the test.
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	server, err := Start(ctx, cfg, Options{LogOutput: s.log, LookupEnv: lookup, Supervisor: []string{os.Args[0], "supervise"}})
	if err != nil {
		stop()
		t.Fatal(err)
	}
	s.Server = server
	t.Cleanup(func() {
		stop()
		if err := s.Wait(); err != nil {
			t.Errorf("got the server stopped with %v, want no error", err)
		}
	})
	return s
}

// Wait closes the idle connections of the test's client, and waits until the server has stopped. The
// client may have opened a connection and sent no request, for which a server waits five seconds.
func (s *testServer) Wait() error {
	http.DefaultClient.CloseIdleConnections()
	return s.Server.Wait()
}

// write replaces the registry file atomically.
func (s *testServer) write(registry string) {
	s.t.Helper()
	next := s.registry + ".next"
	if err := os.WriteFile(next, []byte(registry), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(next, s.registry); err != nil {
		s.t.Fatal(err)
	}
}

// reload reloads the registry file as SIGHUP does, and waits until its catalogue and fleet are in
// use. It returns the errors of the file.
func (s *testServer) reload() error {
	s.t.Helper()
	if err := s.core.file.Reload(); err != nil {
		return err
	}
	want := s.core.registry.Current()
	testkit.Eventually(s.t, "the registry is in use", func() bool {
		got := s.core.snapshot()
		return got.Catalogue.Version == want.Catalogue.Version && got.Fleet.Revision == want.Fleet.Revision
	})
	return nil
}

func (s *testServer) url(path string) string { return "http://" + s.Addr() + path }

func (s *testServer) get(path string) string {
	s.t.Helper()
	resp, err := http.Get(s.url(path))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

// route posts a request and decodes the response, which must be a 200.
func (s *testServer) route(body string) *contract.Response {
	s.t.Helper()
	status, data := s.post(s.t.Context(), body)
	if status != http.StatusOK {
		s.t.Fatalf("got status %d: %s", status, data)
	}
	var resp contract.Response
	if err := json.Unmarshal(data, &resp); err != nil {
		s.t.Fatal(err)
	}
	return &resp
}

func (s *testServer) post(ctx context.Context, body string) (int, []byte) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url("/api/v1/route"), strings.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return 0, nil
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, []byte(err.Error())
	}
	return resp.StatusCode, data
}

// startAgent serves an agent based on agentkit that verifies its tokens with the router's keys. The
// router's address is not known before the agent's.
func startAgent(t *testing.T, id string, work func(context.Context, contract.Task) (contract.Result, error)) *testAgent {
	t.Helper()
	a := &testAgent{id: id, work: work}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.handler().ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	a.url = server.URL
	return a
}

type testAgent struct {
	id, url string
	work    func(context.Context, contract.Task) (contract.Result, error)

	mu   sync.Mutex
	http http.Handler
}

func (a *testAgent) trust(s *testServer) {
	s.t.Helper()
	h, err := agentkit.New(agentkit.Config{AgentID: a.id, JWKSURL: s.url("/.well-known/jwks.json")}, a.work)
	if err != nil {
		s.t.Fatal(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.http = h
}

func (a *testAgent) handler() http.Handler {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.http == nil {
		return http.NotFoundHandler()
	}
	return a.http
}

func answer(text string) func(context.Context, contract.Task) (contract.Result, error) {
	return func(_ context.Context, task contract.Task) (contract.Result, error) {
		raw, err := json.Marshal(text + ": " + task.SubtaskTitle)
		return contract.Result{Status: contract.ResultSuccess, Data: map[string]json.RawMessage{"answer": raw}}, err
	}
}

// entry returns one agent of a registry.
func entry(id, intent, domain, url string, more ...string) string {
	endpoint := ""
	if url != "" {
		endpoint = fmt.Sprintf(", endpoint: { protocol: http, url: %q }", url)
	}
	return fmt.Sprintf("  %s: { match: { intent: [%s], domains: [%s] }%s%s }\n", id, intent, domain, endpoint, strings.Join(more, ""))
}

// refusing is the URL of an agent that refuses connections.
const refusing = "http://" + testkit.RefusingAddress
