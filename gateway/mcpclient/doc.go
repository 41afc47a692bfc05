// Package mcpclient holds one connection to one MCP server, over any transport, and
// calls its tools. It is the only package that imports the MCP library for clients.
//
//	Connect ─▶ Session ─┬─ Tools    the tools with their schemas
//	                    ├─ Call     one call of one tool
//	                    ├─ Prompts, GetPrompt, Resources, ReadResource, Complete …
//	                    ├─ Probe    whether the server answers
//	                    └─ Done     closed when the connection is lost
//
// A Session does not reconnect, retry or validate. It bounds what it reads: a message to
// [subprocess.MaxLine] bytes and a list to [MaxTools] tools. Schemas are returned as they
// are; package schema checks them.
//
// Handlers for sampling, elicitation and roots are not set, so that a server cannot
// request anything from this process.
package mcpclient
