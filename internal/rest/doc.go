// Package rest is the REST edge: it owns how a request arrives over HTTP and
// how an answer leaves. Which bodies, headers and hosts are acceptable, which
// scope a path needs, how many requests run at a time, what an error looks like
// and how the server stops is decided here; what a request means is not. A
// handler decodes, validates, calls one method of the core and encodes.
//
//	net/http ─▶ Server.ServeHTTP  request id, host, origin, panics, access log
//	               │
//	             echo             path and method; 404 and 405
//	               │
//	             guard            lane, caller, scope: one row of the route table
//	               │
//	             handler ─▶ Router, Tickets, registry, agents (the core, behind Deps)
//	               │
//	             exchange         JSON or problem+json, headers, status
//	             pump             or, event by event, text/event-stream
//
// Requests, what brings them to an end, and readers of events have a lane each,
// so that none waits for a place that another one holds.
//
// The interface is written down first, in openapi.yaml, with one example a
// state in examples/; the tests hold this package to it. A server is run like
// this:
//
//	srv, err := rest.New(rest.Config{Logger: log}, rest.Deps{Router: r, …})
//	…
//	err = srv.Serve(ctx, listener) // until ctx ends, then drains
//
// echo is an implementation detail: no type of it leaves the package.
package rest
