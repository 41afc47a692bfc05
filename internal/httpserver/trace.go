package httpserver

import (
	"net/http"

	"github.com/caprouter/caprouter/internal/telemetry"
)

// Lengths of the parts of a traceparent (W3C Trace Context §3.2), in characters.
const (
	traceIDLen     = 32
	traceparentLen = 2 + 1 + traceIDLen + 1 + 16 + 1 + 2 // version-trace-parent-flags
)

// startSpan starts the span of a request, below that of its caller. Documents, probes of
// the process and readers of events have none.
func (s *Server) startSpan(c *Context) {
	if s.cfg.Tracer == nil || c.route.Scope == Public || c.route.Class == ClassStream {
		return
	}
	traceparent, tracestate := "", ""
	if traceID(c.Request.Header) != "" {
		traceparent = c.Request.Header["Traceparent"][0]
		tracestate = c.Request.Header.Get("Tracestate")
	}
	ctx, span := s.cfg.Tracer.StartServerSpan(c.Request.Context(), c.Request.Method+" "+c.route.Path, traceparent, tracestate)
	span.SetString(telemetry.AttrHTTPMethod, c.Request.Method)
	span.SetString(telemetry.AttrHTTPRoute, c.route.Path)
	span.SetString(telemetry.AttrRequestID, c.ID)
	c.Request, c.span = c.Request.WithContext(ctx), span
}

// endSpan ends the span of a request.
func (c *Context) endSpan() {
	c.span.SetInt(telemetry.AttrHTTPStatus, c.status)
	c.span.SetString(telemetry.AttrOutcome, c.outcome)
	if c.status >= http.StatusInternalServerError {
		c.span.Fail(c.outcome)
	}
	c.span.End()
}

// traceID returns the trace id of the traceparent header, or "" if there is no
// valid one. Two headers count as none, because either may be the right one.
func traceID(h http.Header) string {
	if values := h["Traceparent"]; len(values) == 1 {
		if id, ok := parseTraceparent(values[0]); ok {
			return id
		}
	}
	return ""
}

// parseTraceparent returns the trace id of a traceparent of any version: later
// versions may only append parts.
func parseTraceparent(s string) (id string, ok bool) {
	if len(s) < traceparentLen || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return "", false
	}
	version, trace, parent, flags := s[:2], s[3:35], s[36:52], s[53:55]
	switch {
	case !isLowerHex(version) || !isLowerHex(trace) || !isLowerHex(parent) || !isLowerHex(flags):
		return "", false
	case version == "ff" || isAllZero(trace) || isAllZero(parent):
		return "", false
	case len(s) > traceparentLen && (version == "00" || s[traceparentLen] != '-'):
		return "", false
	}
	return trace, true
}

func isLowerHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func isAllZero(s string) bool {
	for i := range len(s) {
		if s[i] != '0' {
			return false
		}
	}
	return true
}
