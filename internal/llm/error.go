package llm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Reasons why a model's reply is not there or not used. They are wire names: of
// classification.reason, of data.degraded_reason and of a metric's label.
const (
	ReasonTimeout       = "llm_timeout"
	ReasonUnavailable   = "llm_unavailable"    // not reached, connection lost, or 5xx
	ReasonRateLimited   = "llm_rate_limited"   // 429
	ReasonUnauthorized  = "llm_unauthorized"   // 401, 403: the key
	ReasonRejected      = "llm_rejected"       // any other 4xx: the model's name, or what was asked
	ReasonBlocked       = "llm_blocked"        // the prompt or the reply, by the maker's filters
	ReasonEmpty         = "llm_empty"          // no candidate, or one without text
	ReasonBadResponse   = "llm_bad_response"   // 200 with something else than a reply, or too much of it
	ReasonBreakerOpen   = "llm_breaker_open"   // it failed repeatedly and is left alone for a while
	ReasonOverloaded    = "llm_overloaded"     // too many calls are under way here
	ReasonBudget        = "llm_budget"         // the tokens of this hour are used up
	ReasonMaxTokens     = "llm_max_tokens"     // cut off, with the larger budget as well
	ReasonInvalidJSON   = "llm_invalid_json"   // not the JSON that was asked for, repaired neither
	ReasonInvalidValue  = "llm_invalid_value"  // an intent, a domain or a number that may not be
	ReasonNotConfigured = "llm_not_configured" // there is no model
)

// Reasons returns every reason.
func Reasons() []string {
	return []string{
		ReasonTimeout, ReasonUnavailable, ReasonRateLimited, ReasonUnauthorized, ReasonRejected, ReasonBlocked, ReasonEmpty,
		ReasonBadResponse, ReasonBreakerOpen, ReasonOverloaded, ReasonBudget, ReasonMaxTokens, ReasonInvalidJSON, ReasonInvalidValue, ReasonNotConfigured,
	}
}

// Error is why a model gave no reply. Detail is short and holds neither the key
// nor what was asked: it may be shown and logged.
type Error struct {
	Reason     string
	Status     int           // of the HTTP response; 0 = there was none
	Unsent     bool          // nothing of the call reached the model's server
	RetryAfter time.Duration // what the server asked for; 0 = nothing
	Detail     string
	Err        error // what it came from; may be nil
}

// Error renders the reason and the detail.
func (e *Error) Error() string {
	if e.Detail == "" {
		return e.Reason
	}
	return e.Reason + ": " + e.Detail
}

// Unwrap returns what the error came from.
func (e *Error) Unwrap() error { return e.Err }

// ReasonOf returns the reason of an error of Generate, "" for nil.
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

// WrapProviderError makes a provider's error of whatever an SDK made of ours: the *Error
// inside, the context's own error, or, as the exchange went well, a bad response.
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
	return &Error{Reason: ReasonBadResponse, Detail: "the answer is not that of a model", Err: scrubbed{clean(err.Error())}}
}

// RecoverPanic makes a panic an error: SDKs assert the types of what a server sent.
// It must be deferred itself.
func RecoverPanic(err *error) {
	if v := recover(); v != nil {
		*err = &Error{Reason: ReasonBadResponse, Detail: "the answer is not that of a model", Err: fmt.Errorf("the SDK panicked: %v", v)}
	}
}

// retryable reports whether asking once more may help.
func (e *Error) retryable() bool {
	return e.Reason == ReasonRateLimited || e.Reason == ReasonUnavailable
}

// blames reports whether the error is a fault of the model, its server or its
// configuration, rather than of what it was asked: one strange request must not
// open the breaker for everybody.
func (e *Error) blames() bool {
	switch e.Reason {
	case ReasonBlocked, ReasonEmpty, ReasonBudget:
		return false
	case ReasonRejected:
		return e.Status == http.StatusNotFound || e.Status < 400 // the model's name, or the base URL
	}
	return true
}
