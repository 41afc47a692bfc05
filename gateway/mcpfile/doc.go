// Package mcpfile reads registry files of MCP servers. Several formats are in use,
// which differ in their outermost keys. The package recognizes the format by these
// keys and returns the same [Server] values for all of them:
//
//	{"plugins": [{"id": …, "endpoint": …, "actions": […]}]}        plugins
//	{"version": "1.0", "servers": [{"id": …, "command": …}]}       servers
//	{"mcp": {"NAME": {"type": "local", "command": […]}}}           map
//	{"NAME": {"type": "remote", "url": …}}                         map
//	{"mcpServers": {"NAME": {"command": …, "args": […]}}}          mcpServers
//	{"servers": {"NAME": {"type": "http", "url": …}}}              vscode
//
// All formats accept the same keys of a server. In the first three, an unknown key
// is an error with its position and the most similar key. The files of the last two
// belong to other programs, which add keys of their own, so that unknown keys are
// warnings. Comments and trailing commas are accepted, because editors write them.
// Times are in milliseconds.
//
// The package reads and checks files. It starts and calls nothing, and resolves
// ${NAME} only in [Server.Expand].
package mcpfile
