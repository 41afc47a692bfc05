package rest

import "net/http"

// Lengths of the parts of a traceparent (W3C Trace Context §3.2), in characters.
const (
	traceIDLen     = 32
	traceparentLen = 2 + 1 + traceIDLen + 1 + 16 + 1 + 2 // version-trace-parent-flags
)

// traceID returns the trace id of the caller's traceparent, "" when there is none
// that is well formed: the core then begins a trace.
func traceID(h http.Header) string {
	// Two headers are as good as none: which one is meant is anyone's guess.
	if values := h["Traceparent"]; len(values) == 1 {
		if id, ok := parseTraceparent(values[0]); ok {
			return id
		}
	}
	return ""
}

// parseTraceparent takes the trace id out of a traceparent of any version: later
// ones may only append parts.
func parseTraceparent(s string) (id string, ok bool) {
	if len(s) < traceparentLen || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return "", false
	}
	version, trace, parent, flags := s[:2], s[3:35], s[36:52], s[53:55]
	switch {
	case !lowerHex(version) || !lowerHex(trace) || !lowerHex(parent) || !lowerHex(flags):
		return "", false
	case version == "ff" || allZero(trace) || allZero(parent):
		return "", false
	case len(s) > traceparentLen && (version == "00" || s[traceparentLen] != '-'):
		return "", false
	}
	return trace, true
}

func lowerHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func allZero(s string) bool {
	for i := range len(s) {
		if s[i] != '0' {
			return false
		}
	}
	return true
}
