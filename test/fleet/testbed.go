package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/test/internal/process"
)

const (
	intent, domain = "count_words", "prose"
	// heartbeatsPerLease is how often an agent renews its lease.
	heartbeatsPerLease = contract.HeartbeatsPerLease
	leaseSeconds       = contract.DefaultLeaseTTLS
)

// testbed is a router with its agents and its model.
type testbed struct {
	opts     options
	dir      string
	group    *run.Group
	agentURL string
	asked    atomic.Int64 // calls of the model
	router   *process.Process
	client   *http.Client
}

// newTestbed starts everything. close stops it.
func newTestbed(ctx context.Context, opts options, dir string) (*testbed, error) {
	t := &testbed{opts: opts, dir: dir, group: run.New(ctx), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: process.IOTimeout}}
	if err := t.start(ctx); err != nil {
		return nil, errors.Join(err, t.close(ctx))
	}
	return t, nil
}

func (t *testbed) start(ctx context.Context) (err error) {
	if t.agentURL, err = t.serve(ctx, "agent", answerTask); err != nil {
		return err
	}
	model, err := t.serve(ctx, "model", t.answerPrompt)
	if err != nil {
		return err
	}
	config, err := process.WriteConfig(t.dir, fmt.Sprintf(`listen: 127.0.0.1:0
data_dir: %s
registry: { file: %s }
classifier: { mode: llm, timeout_ms: 10000 }
llm: { provider: openai, model: test, base_url: "%s/v1", api_key_env: "" }
limits: { classify: { rps: 0 }, read: { rps: 0 }, register: { rps: 0 } }
store: { sync: 100ms }
`, filepath.Join(t.dir, "data"), t.registryPath(), model), t.registry(0))
	if err != nil {
		return err
	}
	t.router, err = process.StartRouter(ctx, t.opts.binary, config)
	return err
}

func (t *testbed) close(ctx context.Context) error {
	var err error
	if t.router != nil {
		err = t.router.Stop(ctx)
	}
	t.client.CloseIdleConnections()
	t.group.Stop(nil)
	return errors.Join(err, t.group.Wait())
}

// serve serves the handler until close, and returns its URL.
func (t *testbed) serve(ctx context.Context, name string, handler http.HandlerFunc) (string, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	t.group.Go(name, func(ctx context.Context) error { return process.ServeUntilDone(ctx, listener, handler) })
	return "http://" + listener.Addr().String(), nil
}

// answerTask is the agent.
func answerTask(w http.ResponseWriter, r *http.Request) {
	var task contract.Task
	if err := readJSON(r.Body, &task); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"task_id":%q,"status":"success","data":{"answer":"6 words"}}`, task.TaskID)
}

// answerPrompt is the model. Every prompt has the same classification.
func (t *testbed) answerPrompt(w http.ResponseWriter, _ *http.Request) {
	t.asked.Add(1)
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"choices":[{"message":{"content":%q},"finish_reason":"stop"}]}`,
		`{"intent":"`+intent+`","domains":["`+domain+`"],"subtasks":[],"confidence":0.95}`)
}

func (t *testbed) registryPath() string { return filepath.Join(t.dir, "capabilities.yaml") }

// registry returns a registry file with an agent that has the intent, and with the grants
// of the others. Versions differ in what the catalogue does not contain.
func (t *testbed) registry(version int) string {
	var text strings.Builder
	fmt.Fprintf(&text, `clients:
  counter:
    match: { intent: [%s], domains: [%s] }
    examples: { %[1]s: [how many words are in this text, count the words of this text] }
    endpoint: { protocol: http, url: "%[3]s", timeout_ms: %[4]d, idempotent: true }
    max_in_flight: 100000
grants:
`, intent, domain, t.agentURL, 60_000+version)
	for i := range t.opts.agents + t.opts.joining {
		fmt.Fprintf(&text, "  %s: { intents: [%s], domains: [%s] }\n", agentID(i), intent, domain)
	}
	return text.String()
}

// reload replaces the registry file in one step, as an editor does.
func (t *testbed) reload(version int) error {
	next := t.registryPath() + ".next"
	return errors.Join(os.WriteFile(next, []byte(t.registry(version)), 0o600), os.Rename(next, t.registryPath()))
}

func agentID(i int) string { return fmt.Sprintf("agent_%06d", i) }

// call sends a request to the router and decodes the answer if into is not nil. It
// returns an error if the answer has another status.
func (t *testbed) call(ctx context.Context, method, path, body string, into any, statuses ...int) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+t.router.Addr()+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := t.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if slices.Contains(statuses, resp.StatusCode) {
		return readJSON(resp.Body, into)
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
	return fmt.Errorf("%s %s was answered %d: %s", method, path, resp.StatusCode, text)
}

// register registers agent i, for the default time if it sends heartbeats, else for
// longer than the command runs.
func (t *testbed) register(ctx context.Context, i int) error {
	lease := leaseSeconds
	if i >= t.opts.agents {
		lease = contract.MaxLeaseTTLS
	}
	body := fmt.Sprintf(`{"match":{"intent":[%q],"domains":[%q]},"lease_ttl_s":%d,"endpoint":{"protocol":"http","url":%q,"idempotent":true}}`,
		intent, domain, lease, t.agentURL)
	return t.call(ctx, http.MethodPut, "/api/v1/agents/"+agentID(i), body, nil, http.StatusCreated, http.StatusOK)
}

// readJSON reads all of r, and decodes it if into is not nil.
func readJSON(r io.Reader, into any) error {
	data, err := io.ReadAll(r)
	if err != nil || into == nil {
		return err
	}
	return strictjson.UnmarshalAllowUnknown(data, into)
}
