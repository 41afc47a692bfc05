// Package mcpserver serves the tools, prompts and resources of all MCP servers, and the
// router itself, to MCP clients over the streamable HTTP transport:
//
//	MCP client ── POST /mcp ─▶ tools/list ─▶ tools that the caller may call
//	                           tools/call ─▶ route_request ─────▶ router
//	                                         list_capabilities ─▶ registry
//	                                         find_tools ────────▶ lexical
//	                                         SERVER__TOOL ──────▶ package mcphost ─▶ MCP server
//	                           prompts/…, resources/…, completion/complete ─▶ package mcphost
//
// The server keeps no sessions: every request is complete in itself, so that any replica
// can answer it. It therefore sends no notifications of its own, and the progress of a call
// only on the response to this call. The protocol is that of the MCP SDK, in all versions
// that the SDK negotiates.
//
// A caller sees the tools, prompts and resources that it may use, and requests for others fail
// as for those that do not exist. A call is one of package mcphost, with its checks, limits and
// records; a routing request is the same as one to /api/v1/route. Errors of tools are
// results with isError, so that a model can read them (MCP 2025-11-25, server/tools).
package mcpserver
