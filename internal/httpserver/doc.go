// Package httpserver is the HTTP machinery that every HTTP interface of the
// router shares: listener and TLS, graceful shutdown, Host and Origin checks,
// authentication, rate limits, admission control with load shedding, limits of
// request bodies, server-sent events, request ids, the access log and recovery
// from panics. It does not know what a request means or what an error looks like
// on the wire; an [API] defines both:
//
//	net/http ─▶ Server.ServeHTTP   request id, Host and Origin, panics, access log
//	               │
//	             echo              path and method; 404 and 405
//	               │
//	             guard             capacity, caller, scope, rate limit, throttle, body, admission
//	               │
//	             Route.Handle ─▶ Context.WriteJSON     one response, or
//	               │             Context.StreamEvents  text/event-stream
//	               │
//	             API.EncodeError   for each error, of a guard or of a handler
//
// Several interfaces can be mounted on one server. They share its limits:
//
//	srv, err := httpserver.New(httpserver.Config{NewID: newID, Logger: log})
//	…
//	err = srv.Mount(httpserver.API{Prefix: "/", Routes: routes, EncodeError: encodeProblem})
//	…
//	err = srv.Serve(ctx, listener) // returns after a graceful shutdown, once ctx has ended
//
// echo is an implementation detail: no exported identifier mentions its types.
package httpserver
