package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/test/internal/process"
)

// testbed contains the servers of a run.
type testbed struct {
	dir      string
	agentURL string
	servers  []*server
	subjects []subject
}

// startTestbed starts an agent and the server of each scenario. If it returns an error,
// the testbed contains the servers that were started before.
func startTestbed(ctx context.Context, selected []scenario) (*testbed, error) {
	b := &testbed{}
	var err error
	if b.dir, err = os.MkdirTemp("", "caprouter-bench-"); err != nil {
		return b, err
	}
	agent, err := b.startServer(ctx, kindAgent, "")
	if err != nil {
		return b, err
	}
	b.agentURL = agent.url
	for _, s := range selected {
		measured, err := b.startSubject(ctx, s)
		if err != nil {
			return b, fmt.Errorf("start the server of %s: %w", s.name, err)
		}
		b.subjects = append(b.subjects, subject{scenario: s, loaded: measured})
	}
	return b, nil
}

func (b *testbed) startSubject(ctx context.Context, s scenario) (loaded, error) {
	arg := ""
	switch s.server {
	case kindFsync:
		return &fsyncWriter{filepath.Join(b.dir, "fsync")}, nil
	case kindGateway:
		arg = b.agentURL
	case kindRouter:
		arg = filepath.Join(b.dir, s.name)
		if err := b.writeConfig(arg, s.router); err != nil {
			return nil, err
		}
	}
	started, err := b.startServer(ctx, s.server, arg)
	if err != nil {
		return nil, err
	}
	measured := &loadedServer{server: started, request: s.request}
	if s.router.tokens { // the key is made at start
		measured.token, err = mintToken(arg)
	}
	return measured, err
}

func (b *testbed) startServer(ctx context.Context, kind, arg string) (*server, error) {
	s, err := startServer(ctx, kind+"="+arg)
	if err == nil {
		b.servers = append(b.servers, s)
	}
	return s, err
}

func mintToken(dir string) (string, error) {
	cfg, err := config.Load(filepath.Join(dir, "caprouter.yaml"), nil)
	if err != nil {
		return "", err
	}
	return app.MintCallerToken(cfg, app.TokenGrant{Subject: "bench", Scopes: []string{"route:submit", "agent:*"}, TTL: time.Hour})
}

// writeConfig writes the configuration of a router with three agents, and of those
// that match other requests, into dir.
func (b *testbed) writeConfig(dir string, cfg routerConfig) error {
	endpoint := ""
	if cfg.endpoints {
		endpoint = fmt.Sprintf("\n    endpoint: { protocol: http, url: %q }", b.agentURL)
	}
	var registry strings.Builder
	fmt.Fprintf(&registry, `clients:
  quality_agent:
    match: { intent: [code_review, databricks_review, serverless_review], domains: [python, databricks, semaforo] }
    constraints: { max_tokens: 8000 }%[1]s
  rag_agent:
    match: { intent: [retrieval_qa, doc_answering], domains: [kb_internal, docs] }%[1]s
  billing_agent:
    match: { intent: [cost_analysis], domains: [azure, databricks] }%[1]s
`, endpoint)
	for i := range cfg.extraAgents {
		fmt.Fprintf(&registry, "  agent_%[1]d:\n    match: { intent: [task_%[1]d], domains: [domain_%[2]d] }%[3]s\n", i, i%100, endpoint)
	}
	limits := "limits: { classify: { rps: 0 } }\n"
	if cfg.tokens {
		limits = "auth: { mode: jwt }\nlimits: { classify: { rps: 1000000, burst: 1000000 } }\n"
	}
	config := fmt.Sprintf("listen: 127.0.0.1:0\ndata_dir: %[1]s/data\nregistry: { file: %[1]s/capabilities.yaml }\ndispatch: { token_reuse_s: %[2]d }\nstore: { sync: %[3]s }\n%[4]s",
		dir, cfg.tokenReuse, cfg.sync, limits)
	_, err := process.WriteConfig(dir, config, registry.String())
	return err
}

func (b *testbed) stopAll(ctx context.Context) {
	for _, s := range b.servers {
		_ = s.process.Stop(ctx)
	}
	if b.dir != "" {
		_ = os.RemoveAll(b.dir)
	}
}
