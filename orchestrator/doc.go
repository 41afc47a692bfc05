// Package orchestrator pursues a goal with the tools of MCP servers: it plans, executes
// and verifies.
package orchestrator
