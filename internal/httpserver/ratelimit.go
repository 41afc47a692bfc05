package httpserver

import (
	"strconv"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// RateLimiter limits how often each caller may use a route.
type RateLimiter interface {
	// Take takes one unit of the caller's quota. It returns the state of the limit
	// afterwards, and false if nothing was left.
	Take(caller *contract.Caller) (contract.Limit, bool)
}

// takeRateLimit applies a rate limit to the caller, and sets headers with its
// state.
func (c *Context) takeRateLimit(limiter RateLimiter) error {
	state, ok := limiter.Take(c.Caller)
	if !ok {
		return &contract.Error{Code: contract.CodeRateLimited, Message: "the caller exceeded its rate limit", Limit: &state}
	}
	c.setRateLimit(&state)
	return nil
}

// setRateLimit sets the headers of IETF draft-ietf-httpapi-ratelimit-headers-10:
// q and w are the quota and its window in seconds, r is the remaining quota, and
// one unit more is available after t seconds.
func (r *responseWriter) setRateLimit(l *contract.Limit) {
	b := make([]byte, 0, 48)
	b = strconv.AppendQuote(b, l.Policy)
	name := len(b)
	b = append(b, ";q="...)
	b = strconv.AppendInt(b, int64(l.Quota), 10)
	b = append(b, ";w="...)
	b = strconv.AppendInt(b, ceilSeconds(l.Window), 10)
	r.SetHeader("Ratelimit-Policy", string(b))
	b = append(b[:name], ";r="...)
	b = strconv.AppendInt(b, int64(max(l.Remaining, 0)), 10)
	b = append(b, ";t="...)
	b = strconv.AppendInt(b, ceilSeconds(l.Reset), 10)
	r.SetHeader("Ratelimit", string(b))
}

// retryAfter returns the value of Retry-After, at least one second.
func retryAfter(l *contract.Limit) string {
	if l == nil {
		return "1"
	}
	return strconv.FormatInt(max(ceilSeconds(l.Reset), 1), 10)
}

// ceilSeconds rounds up, so that a client that waits exactly Retry-After seconds
// is not rejected again.
func ceilSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
