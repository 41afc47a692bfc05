// Package mcpserver serves the tools, prompts and resources of all MCP servers, and the
// router itself, to MCP clients over the streamable HTTP transport:
//
//	MCP client ── POST /mcp ─▶ tools/list ─▶ tools that the caller may call
//	                           tools/call ─▶ route_request ─────▶ router
//	                                         list_capabilities ─▶ registry
//	                                         find_tools ────────▶ lexical
//	                                         SERVER__TOOL ──────▶ package mcphost ─▶ MCP server
//	                           prompts/…, resources/…, completion/complete ─▶ package mcphost
//	           ── GET /mcp ──▶ a stream of changes of the lists; also subscriptions/listen
//
// The server keeps no sessions: every request is complete in itself, so that any replica
// can answer it. It sends the progress of a call only on the response to this call, and
// changes of the lists only on streams that the client has opened for them. These
// streams are not those of the SDK, which has none without sessions, and whose listen streams
// have no heartbeat and survive the token of the caller. The rest of the protocol is that of
// the SDK, in all versions that it negotiates.
//
// A caller sees the tools, prompts and resources that it may use, and requests for others fail
// as for those that do not exist. A call is one of package mcphost, with its checks, limits and
// records; a routing request is the same as one to /api/v1/route. Errors of tools are
// results with isError, so that a model can read them (MCP 2025-11-25, server/tools).
package mcpserver
