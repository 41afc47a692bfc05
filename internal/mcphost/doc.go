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
// process. Registrations are stored, and all processes that share the store use them:
//
//	bucket MCP_SERVERS
//	  server.<name>   the registration, encrypted; "." in a name is "=" in its key
//
// A server of the file replaces a registered one of its name. A registration that cannot be
// used is shown, and affects no other.
//
// Connections, validation, retry, limits, pins and bindings are those of package gateway.
package mcphost
