package contract

import (
	"strings"
	"time"
)

// Code is a stable error code of the interfaces (RFC 9457 extension member
// "code"). Only internal/rest maps it to an HTTP status.
type Code string

// Error codes of the REST interface.
const (
	CodeInvalidRequest       Code = "invalid_request"
	CodePayloadTooLarge      Code = "payload_too_large"
	CodeUnsupportedMediaType Code = "unsupported_media_type"
	CodeUnauthenticated      Code = "unauthenticated"
	CodeForbidden            Code = "forbidden"
	CodeNotFound             Code = "not_found"
	CodeMethodNotAllowed     Code = "method_not_allowed"
	CodeConflict             Code = "conflict"
	CodeResultExpired        Code = "result_expired"
	CodePreconditionFailed   Code = "precondition_failed"
	CodeNoEligibleAgent      Code = "no_eligible_agent"
	CodeRateLimited          Code = "rate_limited"
	CodeQuotaExceeded        Code = "quota_exceeded"
	CodeOverloaded           Code = "overloaded"
	CodeAuditUnavailable     Code = "audit_unavailable"
	CodeToolFailed           Code = "tool_failed"      // the tool reports an error, or its result is not valid
	CodeToolUnavailable      Code = "tool_unavailable" // the tool was not called
	CodeToolTimeout          Code = "tool_timeout"     // no answer; see ActionError.Code for whether it may have been executed
	CodeInternal             Code = "internal"
)

// Error is an error that the receiver may act on. Message and Details are shown
// to callers and must not contain internals.
type Error struct {
	Code    Code
	Message string
	Details []ErrorDetail
	// Malformed marks an invalid_request whose body is not JSON (HTTP 400
	// instead of 422).
	Malformed bool
	// Limit is the exceeded limit of a rate_limited error.
	Limit *Limit
	// Ended is the request of a result_expired error.
	Ended *EndedRequest
	// Action is the error of a call of a tool.
	Action *ActionError
}

// EndedRequest is what remains of a request whose response is not stored any more.
type EndedRequest struct {
	RequestID string
	// Status is terminal; StatusFailed if the process ended while it executed the
	// request, so that the outcome is not known.
	Status  Status
	EndedAt time.Time // zero if the outcome is not known
	// AnswerHash is the SHA-256 of the JSON of the response's data, as it was stored;
	// nil if it is not known.
	AnswerHash []byte
}

// Limit is the state of a rate limit (IETF
// draft-ietf-httpapi-ratelimit-headers).
type Limit struct {
	Policy    string        // limited operation: "classify", "fallback_answer" or "read"
	Quota     int           // burst size
	Window    time.Duration // until the whole quota is available again
	Remaining int           // available now
	Reset     time.Duration // until one more is available
}

// ErrorDetail locates an error: a JSON pointer (RFC 6901) in a JSON body, or
// line and column (from 1) in a YAML document.
type ErrorDetail struct {
	Pointer string `json:"pointer,omitempty"`
	Line    int    `json:"line,omitzero"`
	Column  int    `json:"column,omitzero"`
	Detail  string `json:"detail"`
}

// InvalidRequest returns an error with CodeInvalidRequest and one detail, which completes the
// sentence that begins with the member at the JSON pointer. Pointer "" is the whole request.
func InvalidRequest(pointer, detail string) *Error {
	return InvalidRequestDetails([]ErrorDetail{{Pointer: pointer, Detail: detail}})
}

// InvalidRequestDetails is InvalidRequest for several details, or for ones that follow.
func InvalidRequestDetails(details []ErrorDetail) *Error {
	return &Error{Code: CodeInvalidRequest, Message: "the request is not valid", Details: details}
}

// Add appends a detail at the JSON pointer.
func (e *Error) Add(pointer, detail string) {
	e.Details = append(e.Details, ErrorDetail{Pointer: pointer, Detail: detail})
}

// Error returns the code, the message and all details on one line.
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
