// Package docs embeds the documents for operators and authors of agents, so that
// a binary contains those of its own version. The search agent of the
// demonstration answers from them. The package contains no code.
//
//	glossary.md      the terms of the domain
//	routing.md       stages of a request, score, gates, order, failover, fallback, asynchronous requests
//	registry.md      keys of the capability registry, errors, lint, reload
//	agents.md        tasks, results, tokens, the protocol of an agent
//	http.md          the REST API
//	models.md        providers of language models, their failures, self-hosted servers
//	golden.md        golden tests: cases, runs, cassettes, baselines, thresholds
//	mcp.md           MCP servers: registry files, calls, errors, connections
//	orchestrator.md  goals that are pursued with tools: plans, states, gates
//	policy.md        the policy of orchestrations: rules, findings, tests
//	tickets.md       policy C: tickets, grouping, the webhook
//	quality.md       quality of the lexical classifier on public data sets
//	performance.md   speed, beside baselines
//	configuration.md keys of the configuration, their defaults and variables
//	operations.md    commands, start and shutdown, capacity, memory
//	monitoring.md    health, metrics, traces, logs
//	storage.md       the data directory, the store, retention, audit log, backup, disk errors
//	replicas.md      several replicas on one store
//	security.md      tokens, scopes, visibility, keys, limits, outgoing connections
//	rough-edges.md   known limits
//
// The tests of package examples compare their tables with the code.
package docs

import "embed"

// FS contains the documents at its root.
//
//go:embed *.md
var FS embed.FS
