package rest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/caprouter/caprouter/contract"
)

// ServeHTTP takes every request, those without a route included: each gets an
// id, each leaves one line in the debug log, and no panic passes.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{ResponseWriter: w, req: r, id: s.deps.NewID(), lane: laneFree}
	defer s.finish(r.Context(), x, time.Now())
	x.set("X-Request-Id", x.id)
	x.set("X-Content-Type-Options", "nosniff")
	if err := s.admit(r); err != nil {
		s.fail(r.Context(), x, err)
		return
	}
	s.echo.ServeHTTP(x, r)
}

// admit refuses what a browser sends on behalf of someone else's page.
func (s *Server) admit(r *http.Request) error {
	if s.local != nil && !loopbackHost(r.Host) {
		return &contract.Error{
			Code:    contract.CodeForbidden,
			Message: "without authentication only requests to localhost or a loopback address are answered",
		}
	}
	if err := s.crossOrigin.Check(r); err != nil {
		return &contract.Error{
			Code:    contract.CodeForbidden,
			Message: "the request comes from a page of another origin",
		}
	}
	return nil
}

// finish is deferred: it answers for a handler that panicked, and writes the
// access log.
func (s *Server) finish(ctx context.Context, x *exchange, start time.Time) {
	if v := recover(); v != nil {
		s.log.ErrorContext(ctx, "panic in a request",
			"request_id", x.id, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		if x.status != 0 {
			// Half an answer is out: only a broken connection says so.
			x.outcome, x.failed = string(contract.CodeInternal), true
			s.account(ctx, x, start)
			panic(http.ErrAbortHandler)
		}
		s.fail(ctx, x, errPanic)
	}
	s.account(ctx, x, start)
}

// errPanic stands for a panic that is in the log already.
var errPanic = &contract.Error{Code: contract.CodeInternal, Message: internalDetail}

// account counts the request and logs it. Method and path are logged as the
// route has them: whatever else a caller puts there is none of the log's
// business.
func (s *Server) account(ctx context.Context, x *exchange, start time.Time) {
	took := time.Since(start)
	method, path := "", ""
	if x.route != nil {
		method, path = x.req.Method, x.route.path
		if x.failed && x.route.counted && s.deps.Meter != nil {
			s.deps.Meter.Request(x.outcome, took)
		}
	}
	if !s.log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	s.log.LogAttrs(ctx, slog.LevelDebug, "http request",
		slog.String("request_id", x.id),
		slog.String("method", method),
		slog.String("route", path),
		slog.Int("status", x.status),
		slog.String("outcome", x.outcome),
		slog.Int64("bytes", x.size),
		slog.Float64("took_ms", float64(took.Microseconds())/1000))
}

// fail answers with the problem that err is. Errors the caller can do nothing
// about are logged in full and told in one sentence.
func (s *Server) fail(ctx context.Context, x *exchange, err error) {
	e := s.public(ctx, x, err)
	x.failed = true
	x.hurry()
	for _, name := range answerHeaders() { // an answer that could not be written
		delete(x.Header(), name)
	}
	if err := s.writeProblem(x, e); err != nil {
		s.log.ErrorContext(ctx, "write a problem", "request_id", x.id, "error", err)
	}
}

// public returns what the caller is told of err.
func (s *Server) public(ctx context.Context, x *exchange, err error) *contract.Error {
	if e, ok := errors.AsType[*contract.Error](err); ok && known(e.Code) {
		return e
	}
	if e, ok := errors.AsType[*echo.HTTPError](err); ok {
		return routingError(e)
	}
	if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, errStopping)) {
		// The caller left, and reads this only if it closed one half of the
		// connection; or the server stops.
		return &contract.Error{Code: contract.CodeOverloaded, Message: "the request was cancelled before it was answered"}
	}
	s.log.ErrorContext(ctx, "internal error", "request_id", x.id, "error", err)
	return &contract.Error{Code: contract.CodeInternal, Message: internalDetail}
}

// routingError words the errors echo makes by itself.
func routingError(e *echo.HTTPError) *contract.Error {
	if e.Code == http.StatusMethodNotAllowed {
		return &contract.Error{Code: contract.CodeMethodNotAllowed, Message: "the Allow header lists the methods of this path"}
	}
	return &contract.Error{Code: contract.CodeNotFound, Message: "there is nothing at this path; /openapi.json describes what there is"}
}
