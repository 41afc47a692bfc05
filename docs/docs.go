// Package docs embeds the documents for platform engineers, so that a binary
// has those of its own version: the demonstration's search agent answers from
// them. It holds text and no code.
//
//	routing.md     the way of a request, the score, gates, order, failover, policies, async, records
//	registry.md    the keys of the capability registry, its errors, lint, reload
//	agents.md      tasks, results, tokens, the protocol of an agent
//	http.md        the REST interface
//	models.md      providers of language models, what can go wrong with them, servers of one's own
//	golden.md      golden tests: cases, runs, cassettes, baselines, thresholds
//	tickets.md     policy C: tickets, what joins one, the webhook
//	quality.md     how well requests are understood without a model, in figures
//	tickets.md     policy C: what nobody could serve
//	operations.md  configuration, commands, health, metrics, logs, store, backup, audit
//	security.md    tokens, scopes, keys, limits, what may be called
//
// What they claim is held to the code by the tests of package examples.
package docs

import "embed"

// FS holds the documents, all at its root.
//
//go:embed *.md
var FS embed.FS
