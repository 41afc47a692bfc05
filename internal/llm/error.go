package llm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Reasons why there is no usable reply. They are wire names of
// classification.reason, data.degraded_reason and a metric label.
const (
	ReasonTimeout       = "llm_timeout"
	ReasonUnavailable   = "llm_unavailable"    // connection failed or lost, or 5xx
	ReasonRateLimited   = "llm_rate_limited"   // 429
	ReasonUnauthorized  = "llm_unauthorized"   // 401, 403, or an invalid key
	ReasonRejected      = "llm_rejected"       // other 4xx: wrong model name or request
	ReasonBlocked       = "llm_blocked"        // prompt or reply, by safety filters
	ReasonEmpty         = "llm_empty"          // no candidate, or none with text
	ReasonBadResponse   = "llm_bad_response"   // 200 without a reply, or too large
	ReasonBreakerOpen   = "llm_breaker_open"   // circuit breaker open after repeated failures
	ReasonOverloaded    = "llm_overloaded"     // too many calls in flight
	ReasonBudget        = "llm_budget"         // token budget of the hour is exhausted
	ReasonMaxTokens     = "llm_max_tokens"     // cut off, also with the larger limit
	ReasonInvalidJSON   = "llm_invalid_json"   // not the expected JSON, also after repair
	ReasonInvalidValue  = "llm_invalid_value"  // an invalid intent, domain or number
	ReasonNotConfigured = "llm_not_configured" // no model
)

// Reasons returns every reason.
func Reasons() []string {
	return []string{
		ReasonTimeout, ReasonUnavailable, ReasonRateLimited, ReasonUnauthorized, ReasonRejected, ReasonBlocked, ReasonEmpty,
		ReasonBadResponse, ReasonBreakerOpen, ReasonOverloaded, ReasonBudget, ReasonMaxTokens, ReasonInvalidJSON, ReasonInvalidValue, ReasonNotConfigured,
	}
}

// Error is the reason why there is no reply. Detail is short and contains
// neither the key nor the prompt, so it may be shown and logged.
type Error struct {
	Reason     string
	Status     int           // HTTP status; 0 = no response
	Unsent     bool          // the request did not reach the server
	RetryAfter time.Duration // requested by the server; 0 = not
	Detail     string
	Err        error // cause; may be nil
}

// Error returns the reason and the detail.
func (e *Error) Error() string {
	if e.Detail == "" {
		return e.Reason
	}
	return e.Reason + ": " + e.Detail
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ReasonOf returns the reason of an error of Generate, or "" for nil.
func ReasonOf(err error) string {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return ReasonTimeout
	}
	return ReasonUnavailable
}

// WrapProviderError converts an error of an SDK: to the *Error it wraps, to the
// error of the context, or, because the HTTP exchange succeeded, to a bad
// response.
func WrapProviderError(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	switch ended := ctx.Err(); {
	case errors.Is(ended, context.DeadlineExceeded):
		return &Error{Reason: ReasonTimeout, Detail: "no answer in time", Err: ended}
	case ended != nil:
		return ended
	}
	return &Error{Reason: ReasonBadResponse, Detail: "the answer is not that of a model", Err: redactedError{sanitizeText(err.Error())}}
}

// RecoverPanic converts a panic to an error, because SDKs panic on unexpected
// types in a response. It must be deferred directly.
func RecoverPanic(err *error) {
	if v := recover(); v != nil {
		*err = &Error{Reason: ReasonBadResponse, Detail: "the answer is not that of a model", Err: fmt.Errorf("the SDK panicked: %v", v)}
	}
}

// isRetryable reports whether a retry may succeed.
func (e *Error) isRetryable() bool {
	return e.Reason == ReasonRateLimited || e.Reason == ReasonUnavailable
}

// countsAgainstModel reports whether the error is caused by the model, its
// server or its configuration and not by the request, because a single bad
// request must not open the circuit breaker.
func (e *Error) countsAgainstModel() bool {
	switch e.Reason {
	case ReasonBlocked, ReasonEmpty, ReasonBudget:
		return false
	case ReasonRejected:
		return e.Status == http.StatusNotFound || e.Status < 400 // wrong model name or base URL
	}
	return true
}
