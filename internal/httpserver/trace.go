package httpserver

import "net/http"

// Lengths of the parts of a traceparent (W3C Trace Context §3.2), in characters.
const (
	traceIDLen     = 32
	traceparentLen = 2 + 1 + traceIDLen + 1 + 16 + 1 + 2 // version-trace-parent-flags
)

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
