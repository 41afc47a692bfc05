package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/caprouter/caprouter/internal/app"
)

// subject is one server under one kind of request.
type subject struct {
	name  string
	proc  *process
	url   string
	body  []byte
	token string // of a caller; "" = none
	want  []byte // what a right answer holds
	floor int    // index of the subject it is compared with; −1 for a floor
}

// fleet is every process of a run.
type fleet struct {
	dir       string
	processes []*process
	subjects  []subject
}

const (
	dryRun     = `{"content":{"prompt":"Please do a code review of this python module"},"options":{"dry_run":true}}`
	noDispatch = `{"content":{"prompt":"Please do a code review of this python module"}}`
	twoAgents  = `{"content":{"prompt":"Please do a code review of this python module. Then do a cost analysis of our azure bill."}}`
)

func startFleet(ctx context.Context) (*fleet, error) {
	f := &fleet{}
	var err error
	if f.dir, err = os.MkdirTemp("", "caprouter-bench-"); err != nil {
		return f, err
	}
	var echo, agent, gateway, plain, guarded, relaxed, perTask, reused *process
	for _, start := range []struct {
		proc **process
		role func() string
	}{
		{&echo, func() string { return "echo" }},
		{&agent, func() string { return "agent" }},
		{&gateway, func() string { return "gateway=" + agent.url }},
		{&plain, func() string { return "router=" + f.config("plain", "", 0, "always") }},
		{&guarded, func() string { return "router=" + f.config("guarded", "", 0, "always", withTokens) }},
		{&relaxed, func() string { return "router=" + f.config("relaxed", "", 0, "100ms") }},
		{&perTask, func() string { return "router=" + f.config("per-task", agent.url, 0, "always") }},
		{&reused, func() string { return "router=" + f.config("reused", agent.url, 300, "100ms") }},
	} {
		p, err := startProcess(ctx, start.role())
		if err != nil {
			return f, err
		}
		*start.proc = p
		f.processes = append(f.processes, p)
	}
	const route = "/api/v1/route"
	token, err := f.token("guarded")
	if err != nil {
		return f, err
	}
	f.subjects = []subject{
		{name: "bare net/http JSON echo", proc: echo, url: echo.url, body: []byte(dryRun), want: []byte(`"prompt"`), floor: -1},
		{name: "decision path, dry run", proc: plain, url: plain.url + route, body: []byte(dryRun), want: []byte(`"chosen":["quality_agent"]`), floor: 0},
		{name: "the same, with a token and a limit", proc: guarded, url: guarded.url + route, body: []byte(dryRun), token: token, want: []byte(`"chosen":["quality_agent"]`), floor: 0},
		{name: "with log, metrics and audit (agent has no endpoint)", proc: plain, url: plain.url + route, body: []byte(noDispatch), want: []byte("names no endpoint"), floor: 0},
		{name: "the same, store.sync 100ms", proc: relaxed, url: relaxed.url + route, body: []byte(noDispatch), want: []byte("names no endpoint"), floor: 0},
		{name: "smallest gateway, one call", proc: gateway, url: gateway.url, body: []byte(twoAgents), want: []byte(`"success"`), floor: -1},
		{name: "route to two agents, token a task", proc: perTask, url: perTask.url + route, body: []byte(twoAgents), want: []byte(`"status":"completed"`), floor: 5},
		{name: "the same, tokens reused, store.sync 100ms", proc: reused, url: reused.url + route, body: []byte(twoAgents), want: []byte(`"status":"completed"`), floor: 5},
	}
	return f, nil
}

// withTokens makes a router verify callers, and limit them without ever saying
// no.
const withTokens = "auth: { mode: jwt }\nlimits: { classify: { rps: 1000000, burst: 1000000 } }\n"

// token makes one for a caller of the router with the name.
func (f *fleet) token(name string) (string, error) {
	cfg, err := app.LoadConfig(filepath.Join(f.dir, name, "caprouter.yaml"), nil)
	if err != nil {
		return "", err
	}
	return app.MintCallerToken(cfg, app.TokenGrant{Subject: "bench", Scopes: []string{"route:submit", "agent:*"}, TTL: time.Hour})
}

// config writes a registry with the source document's three agents and returns
// the directory. Errors show when the process reads it.
func (f *fleet) config(name, agentURL string, reuseSeconds int, sync string, more ...string) string {
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
	config := fmt.Sprintf("listen: 127.0.0.1:0\ndata_dir: %[1]s/data\nregistry: { file: %[1]s/capabilities.yaml }\ndispatch: { token_reuse_s: %[2]d }\nstore: { sync: %[3]s }\n",
		filepath.Join(f.dir, name), reuseSeconds, sync) + strings.Join(more, "")
	dir := filepath.Join(f.dir, name)
	for path, content := range map[string]string{"capabilities.yaml": registry, "caprouter.yaml": config} {
		if err := os.MkdirAll(dir, 0o700); err == nil {
			_ = os.WriteFile(filepath.Join(dir, path), []byte(content), 0o600)
		}
	}
	return dir
}

func (f *fleet) stop() {
	for _, p := range f.processes {
		p.stop()
	}
	if f.dir != "" {
		_ = os.RemoveAll(f.dir)
	}
}
