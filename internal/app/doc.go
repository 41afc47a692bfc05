// Package app composes the program: it opens what the configuration requires, starts it,
// and shuts it down gracefully.
//
//	config.Config ─▶ core       keys, dispatcher, classifier, router: RouteOnce needs no more
//	                   ▼
//	               serverCore   store, MCP servers, orchestrations
//	                   │ Start: registry, HTTP server, first View
//	                   ▼
//	                Server      reloads keys and the registry until the context ends
//	                   │ graceful shutdown
//	                   ▼
//	                stopped, no goroutine left
//
// The registry is loaded before the server listens. While the first lexical model is
// trained, /readyz reports "starting" and requests are rejected as overloaded. Each new
// version of the registry is made a View by viewBuilder.
package app
