package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/test/internal/process"
)

// subject is a server with one kind of request.
type subject struct {
	name     string
	proc     *process.Process
	url      string
	body     []byte
	token    string // of the caller, or ""
	want     []byte // text that a correct answer contains
	baseline int    // index of the baseline, −1 for a baseline itself
}

func baseURL(p *process.Process) string { return "http://" + p.Addr() }

// testbed contains the processes of a run.
type testbed struct {
	dir       string
	processes []*process.Process
	subjects  []subject
}

const (
	dryRun     = `{"content":{"prompt":"Please do a code review of this python module"},"options":{"dry_run":true}}`
	noDispatch = `{"content":{"prompt":"Please do a code review of this python module"}}`
	twoAgents  = `{"content":{"prompt":"Please do a code review of this python module. Then do a cost analysis of our azure bill."}}`
)

func startTestbed(ctx context.Context) (*testbed, error) {
	f := &testbed{}
	var err error
	if f.dir, err = os.MkdirTemp("", "caprouter-bench-"); err != nil {
		return f, err
	}
	var echo, agent, gateway, plain, guarded, relaxed, perTask, reused *process.Process
	for _, start := range []struct {
		proc **process.Process
		role func() string
	}{
		{&echo, func() string { return "echo" }},
		{&agent, func() string { return "agent" }},
		{&gateway, func() string { return "gateway=" + baseURL(agent) }},
		{&plain, func() string { return "router=" + f.writeConfig("plain", "", 0, "always") }},
		{&guarded, func() string { return "router=" + f.writeConfig("guarded", "", 0, "always", withTokens) }},
		{&relaxed, func() string { return "router=" + f.writeConfig("relaxed", "", 0, "100ms") }},
		{&perTask, func() string { return "router=" + f.writeConfig("per-task", baseURL(agent), 0, "always") }},
		{&reused, func() string { return "router=" + f.writeConfig("reused", baseURL(agent), 300, "100ms") }},
	} {
		p, err := startServer(ctx, start.role())
		if err != nil {
			return f, err
		}
		*start.proc = p
		f.processes = append(f.processes, p)
	}
	const route = "/api/v1/route"
	token, err := f.mintToken("guarded")
	if err != nil {
		return f, err
	}
	f.subjects = []subject{
		{name: "bare net/http JSON echo", proc: echo, url: baseURL(echo), body: []byte(dryRun), want: []byte(`"prompt"`), baseline: -1},
		{name: "decision path, dry run", proc: plain, url: baseURL(plain) + route, body: []byte(dryRun), want: []byte(`"chosen":["quality_agent"]`), baseline: 0},
		{name: "the same, with a token and a limit", proc: guarded, url: baseURL(guarded) + route, body: []byte(dryRun), token: token, want: []byte(`"chosen":["quality_agent"]`), baseline: 0},
		{name: "with log, metrics and audit (agent has no endpoint)", proc: plain, url: baseURL(plain) + route, body: []byte(noDispatch), want: []byte("names no endpoint"), baseline: 0},
		{name: "the same, store.sync 100ms", proc: relaxed, url: baseURL(relaxed) + route, body: []byte(noDispatch), want: []byte("names no endpoint"), baseline: 0},
		{name: "smallest gateway, one call", proc: gateway, url: baseURL(gateway), body: []byte(twoAgents), want: []byte(`"success"`), baseline: -1},
		{name: "route to two agents, token a task", proc: perTask, url: baseURL(perTask) + route, body: []byte(twoAgents), want: []byte(`"status":"completed"`), baseline: 5},
		{name: "the same, tokens reused, store.sync 100ms", proc: reused, url: baseURL(reused) + route, body: []byte(twoAgents), want: []byte(`"status":"completed"`), baseline: 5},
	}
	return f, nil
}

// withTokens enables authentication, and rate limits that are never reached.
const withTokens = "auth: { mode: jwt }\nlimits: { classify: { rps: 1000000, burst: 1000000 } }\n"

// withoutLimits disables the rate limit of the local caller.
const withoutLimits = "limits: { classify: { rps: 0 } }\n"

func (f *testbed) mintToken(name string) (string, error) {
	cfg, err := app.LoadConfig(filepath.Join(f.dir, name, "caprouter.yaml"), nil)
	if err != nil {
		return "", err
	}
	return app.MintCallerToken(cfg, app.TokenGrant{Subject: "bench", Scopes: []string{"route:submit", "agent:*"}, TTL: time.Hour})
}

// writeConfig writes the configuration of a router with three agents, and returns its
// directory. A failed write is reported by the process that reads it.
func (f *testbed) writeConfig(name, agentURL string, reuseSeconds int, sync string, more ...string) string {
	endpoint := ""
	if agentURL != "" {
		endpoint = fmt.Sprintf("\n    endpoint: { protocol: http, url: %q }", agentURL)
	}
	registry := fmt.Sprintf(`clients:
  quality_agent:
    match: { intent: [code_review, databricks_review, serverless_review], domains: [python, databricks, semaforo] }
    constraints: { max_tokens: 8000 }%[1]s
  rag_agent:
    match: { intent: [retrieval_qa, doc_answering], domains: [kb_internal, docs] }%[1]s
  billing_agent:
    match: { intent: [cost_analysis], domains: [azure, databricks] }%[1]s
`, endpoint)
	if len(more) == 0 {
		more = []string{withoutLimits}
	}
	config := fmt.Sprintf("listen: 127.0.0.1:0\ndata_dir: %[1]s/data\nregistry: { file: %[1]s/capabilities.yaml }\ndispatch: { token_reuse_s: %[2]d }\nstore: { sync: %[3]s }\n",
		filepath.Join(f.dir, name), reuseSeconds, sync) + strings.Join(more, "")
	dir := filepath.Join(f.dir, name)
	_, _ = process.WriteConfig(dir, config, registry)
	return dir
}

func (f *testbed) stopAll(ctx context.Context) {
	for _, p := range f.processes {
		_ = p.Stop(ctx)
	}
	if f.dir != "" {
		_ = os.RemoveAll(f.dir)
	}
}
