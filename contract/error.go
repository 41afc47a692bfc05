package contract

import (
	"strings"
	"time"
)

// Code is a stable error code of the interfaces (RFC 9457 extension member
// "code"); internal/rest alone maps it to an HTTP status.
type Code string

// The error codes of the REST interface.
const (
	CodeInvalidRequest       Code = "invalid_request"
	CodePayloadTooLarge      Code = "payload_too_large"
	CodeUnsupportedMediaType Code = "unsupported_media_type"
	CodeUnauthenticated      Code = "unauthenticated"
	CodeForbidden            Code = "forbidden"
	CodeNotFound             Code = "not_found"
	CodeMethodNotAllowed     Code = "method_not_allowed"
	CodeConflict             Code = "conflict"
	CodePreconditionFailed   Code = "precondition_failed"
	CodeNoEligibleAgent      Code = "no_eligible_agent"
	CodeRateLimited          Code = "rate_limited"
	CodeOverloaded           Code = "overloaded"
	CodeAuditUnavailable     Code = "audit_unavailable"
	CodeInternal             Code = "internal"
)

// Error is an error its receiver may act on. Message and Details are for the
// caller and must not hold internal text.
type Error struct {
	Code    Code
	Message string
	Details []ErrorDetail
	// Malformed marks an invalid_request whose body could not be read as JSON
	// at all (HTTP 400 rather than 422).
	Malformed bool
	// Limit is the limit that was reached, of a rate_limited.
	Limit *Limit
}

// Limit is the state of a limit on how often a caller may do something (IETF
// draft-ietf-httpapi-ratelimit-headers).
type Limit struct {
	Policy    string        // what is limited: "classify" or "fallback_answer"
	Quota     int           // how many at once
	Window    time.Duration // in which the whole quota comes back
	Remaining int           // how many are left now
	Reset     time.Duration // until there is one more
}

// ErrorDetail points at one wrong place: a JSON pointer (RFC 6901) in a JSON
// body, line and column (from 1) in a YAML document.
type ErrorDetail struct {
	Pointer string `json:"pointer,omitempty"`
	Line    int    `json:"line,omitzero"`
	Column  int    `json:"column,omitzero"`
	Detail  string `json:"detail"`
}

// Add appends a detail at the JSON pointer.
func (e *Error) Add(pointer, detail string) {
	e.Details = append(e.Details, ErrorDetail{Pointer: pointer, Detail: detail})
}

// Error renders the code, the message and every detail on one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Code))
	b.WriteString(": ")
	b.WriteString(e.Message)
	for i, d := range e.Details {
		if i == 0 {
			b.WriteString(": ")
		} else {
			b.WriteString("; ")
		}
		if d.Pointer != "" {
			b.WriteString(d.Pointer)
			b.WriteByte(' ')
		}
		b.WriteString(d.Detail)
	}
	return b.String()
}
