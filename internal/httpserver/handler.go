package httpserver

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/caprouter/caprouter/contract"
)

// ServeHTTP implements http.Handler. Each request, with or without a route, gets
// an id and one line in the access log, and a panic becomes an error response.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &Context{responseWriter: responseWriter{writer: w}, server: s, Request: r, ID: s.cfg.NewID()}
	defer s.finishRequest(c, time.Now())
	c.SetHeader("X-Request-Id", c.ID)
	c.SetHeader("X-Content-Type-Options", "nosniff")
	c.SetHeader("Cache-Control", "no-store") // handlers of public documents replace it
	if r.TLS != nil {
		c.SetHeader("Strict-Transport-Security", "max-age=31536000") // RFC 6797; one year
	}
	if err := s.checkOrigin(r); err != nil {
		s.writeError(c, err)
		return
	}
	s.echo.ServeHTTP(c, r)
}

// checkOrigin rejects requests that a browser sends for a page of another site.
func (s *Server) checkOrigin(r *http.Request) error {
	if err := s.access.checkHost(r.Host); err != nil {
		return err
	}
	if err := s.crossOrigin.Check(r); err != nil {
		return &contract.Error{
			Code:    contract.CodeForbidden,
			Message: "the request comes from a page of another origin",
		}
	}
	return nil
}

// guardRoute wraps the handler of a route in all checks that precede it. Cheap checks
// come first. The permit is acquired last, so that clients that send their body
// slowly or are not authorized do not hold one.
func (s *Server) guardRoute(route *mountedRoute) echo.HandlerFunc {
	return func(ec echo.Context) error {
		c := contextOf(ec)
		c.route, c.echo = route, ec
		s.startSpan(c)
		if s.admission.isFull(route.Class) {
			return errOverloaded
		}
		if err := s.authorizeRequest(c); err != nil {
			return err
		}
		if route.RateLimit != nil {
			if err := c.takeRateLimit(route.RateLimit); err != nil {
				return err
			}
		}
		if s.throttle != nil && route.Class == ClassWork && c.Caller != nil {
			if err := s.throttle.wait(c.Request.Context(), c.Caller, c.Request.ContentLength); err != nil {
				return err
			}
		}
		if route.Body.MaxBytes > 0 {
			defer c.ReleaseBody()
			if err := s.receiveBody(c, &route.Body); err != nil {
				return err
			}
		}
		var err error
		if c.permit, err = s.admission.acquire(route.Class, c.Caller); err != nil {
			return err
		}
		defer c.permit.release()
		return route.Handle(c)
	}
}

// finishRequest is deferred: it recovers from a panic and writes the access log.
func (s *Server) finishRequest(c *Context, start time.Time) {
	if v := recover(); v != nil {
		s.log.ErrorContext(c.Request.Context(), "panic in a request",
			"request_id", c.ID, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		if c.status != 0 {
			// The response has begun. A broken connection is the only way left to
			// show the client that it is incomplete.
			c.outcome, c.failed = string(contract.CodeInternal), true
			s.observeRequest(c, start)
			panic(http.ErrAbortHandler)
		}
		s.writeError(c, errInternal)
	}
	s.observeRequest(c, start)
}

// observeRequest counts an error and writes the access log. It logs the path
// pattern of the route instead of the path, so that text of the caller does not
// get into the log.
func (s *Server) observeRequest(c *Context, start time.Time) {
	ctx := c.Request.Context()
	took := time.Since(start)
	method, path := "", ""
	if c.route != nil {
		c.endSpan()
		method, path = c.Request.Method, c.route.Path
		if c.failed && c.route.ObserveError != nil {
			c.route.ObserveError(c.outcome, took)
		}
	}
	if !s.log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	s.log.LogAttrs(ctx, slog.LevelDebug, "http request",
		slog.String("request_id", c.ID),
		slog.String("method", method),
		slog.String("route", path),
		slog.Int("status", c.status),
		slog.String("outcome", c.outcome),
		slog.Int64("bytes", c.size),
		slog.Float64("took_ms", float64(took.Microseconds())/1000))
}

// errInternal replaces an error that clients must not see; the log has the cause.
var errInternal = &contract.Error{
	Code:    contract.CodeInternal,
	Message: "internal error; the server log has the cause under this request_id",
}

// ownCodes are the codes of the errors that this package creates.
func ownCodes() []contract.Code {
	return []contract.Code{
		contract.CodeInternal, contract.CodeOverloaded, contract.CodeRateLimited, contract.CodeForbidden,
		contract.CodeUnauthenticated, contract.CodeNotFound, contract.CodeMethodNotAllowed,
		contract.CodePayloadTooLarge, contract.CodeUnsupportedMediaType, contract.CodeInvalidRequest,
	}
}

// writeError sends the response for a request that failed.
func (s *Server) writeError(c *Context, err error) {
	e, encoded := s.encodeError(c, err)
	c.outcome, c.failed = string(e.Code), true
	c.hurryBody()
	delete(c.Header(), "Ratelimit-Policy")
	delete(c.Header(), "Ratelimit")
	for _, name := range c.errorAPI().SuccessHeaders { // of a response that could not be encoded
		delete(c.Header(), name)
	}
	c.setErrorHeaders(e)
	if err := c.WriteJSON(encoded.Status, encoded.ContentType, encoded.Body); err != nil {
		s.log.ErrorContext(c.Request.Context(), "write an error response", "request_id", c.ID, "error", err)
	}
}

// setErrorHeaders sets the headers that clients need to react to the error.
func (c *Context) setErrorHeaders(e *contract.Error) {
	switch e.Code {
	case contract.CodeRateLimited:
		c.SetHeader("Retry-After", retryAfter(e.Limit))
		if e.Limit != nil {
			c.setRateLimit(e.Limit)
		}
	case contract.CodeOverloaded, contract.CodeToolUnavailable:
		c.SetHeader("Retry-After", "1")
	case contract.CodeQuotaExceeded:
		c.SetHeader("Retry-After", "60") // until stored data expires, or is erased
	case contract.CodeAuditUnavailable:
		c.SetHeader("Retry-After", "5") // a full disk takes longer to recover
	case contract.CodePayloadTooLarge:
		c.SetHeader("Connection", "close") // do not read the rest of the body
	}
	c.SetHeader("Cache-Control", "no-store")
}

// errorAPI returns the API of the request.
func (c *Context) errorAPI() *API {
	if c.route != nil {
		return c.route.api
	}
	return c.server.apiOf(c.Request.URL.Path)
}

// encodeError maps err to the error that the client receives, and encodes it in
// the format of the API. Errors that are not for clients go to the log.
func (s *Server) encodeError(c *Context, err error) (*contract.Error, EncodedError) {
	encode := c.errorAPI().EncodeError
	if e := c.publicError(err); e != nil {
		if encoded, ok := encode(c.ID, e); ok {
			return e, encoded
		}
	}
	s.log.ErrorContext(c.Request.Context(), "internal error", "request_id", c.ID, "error", err)
	encoded, _ := encode(c.ID, errInternal)
	return errInternal, encoded
}

// publicError returns the error that a client may receive for err, or nil if err
// is internal.
func (c *Context) publicError(err error) *contract.Error {
	if e, ok := errors.AsType[*contract.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*echo.HTTPError](err); ok {
		return c.routingError(e)
	}
	if ctx := c.Request.Context(); ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, errShutdown)) {
		// The server stops, or the client disconnected: it can read this only if
		// it closed one direction of the connection.
		return &contract.Error{Code: contract.CodeOverloaded, Message: "the request was cancelled before it was answered"}
	}
	return nil
}

// routingError translates the errors that echo creates.
func (c *Context) routingError(e *echo.HTTPError) *contract.Error {
	if e.Code == http.StatusMethodNotAllowed {
		allow := c.Header().Get("Allow")
		return &contract.Error{Code: contract.CodeMethodNotAllowed, Message: "the methods of this path are " + allow}
	}
	return &contract.Error{Code: contract.CodeNotFound, Message: c.errorAPI().NotFound}
}
