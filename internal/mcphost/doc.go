// Package mcphost is the MCP gateway as a part of the running router. It keeps the
// servers of the registry file connected, decides which callers may call which tools,
// and records every call:
//
//	mcp.json ── hot reload ─▶ Host ─▶ gateway ─▶ MCP servers
//	                           ▲  │
//	caller, agent ── Invoke ───┘  └─▶ audit log, metrics
//
// A file that cannot be loaded changes nothing: the last valid one stays in force, and
// [Host.Status] reports the error. Servers with the same declaration as before keep their
// connections.
//
// Callers can register servers with a URL, which are called through the guard for
// outgoing connections. Only the file can declare commands, so no caller can start a
// process.
//
// Connections, validation, retry, limits, pins and bindings are those of package gateway.
package mcphost
