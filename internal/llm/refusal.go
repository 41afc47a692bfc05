package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// maxRetryAfter keeps a server's odd number from becoming an odd duration.
const maxRetryAfter = 24 * time.Hour

// refused makes an error of a status that is not 200.
func (x *exchange) refused(ctx context.Context, resp *http.Response, body []byte) *Error {
	said := explain(body)
	e := &Error{Status: resp.StatusCode, Reason: reasonOfStatus(resp.StatusCode)}
	if resp.StatusCode == http.StatusBadRequest && said.keyRefused() {
		e.Reason = ReasonUnauthorized
	}
	// The server's own words are shown where only they tell what to change. Those
	// about a key tend to quote it in part.
	words := said.word()
	switch e.Reason {
	case ReasonUnauthorized:
		words = "the key was refused; see llm.api_key_env"
	case ReasonRejected:
		words = said.unlessQuoting(ctx)
		if location := resp.Header.Get("Location"); location != "" {
			words = "redirects are not followed: set llm.base_url to where it leads"
		}
	case ReasonRateLimited, ReasonUnavailable:
		e.RetryAfter = min(max(retryAfter(resp.Header, time.Now()), said.retryDelay()), maxRetryAfter)
	}
	e.Detail = fmt.Sprintf("HTTP %d", resp.StatusCode)
	if words != "" {
		e.Detail += ": " + x.show(words)
	}
	return e
}

func reasonOfStatus(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return ReasonRateLimited
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return ReasonUnauthorized
	case status >= 500:
		return ReasonUnavailable
	case status < 300: // 201, 204: nobody who answers a question says so
		return ReasonBadResponse
	}
	return ReasonRejected
}

// retryAfter reads RFC 9110 §10.2.3: seconds, or a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// isThere reports whether a member was there and was not null.
func isThere(v json.RawMessage) bool { return len(v) > 0 && string(v) != "null" }

// explanation is what an error body says. Google's and OpenAI's have most of it
// in common; servers that imitate them leave parts out.
type explanation struct {
	Message string          `json:"message"`
	Status  json.RawMessage `json:"status"` // Google: INVALID_ARGUMENT
	Code    json.RawMessage `json:"code"`   // OpenAI: model_not_found; Google: the HTTP status
	Type    json.RawMessage `json:"type"`   // OpenAI: invalid_request_error
	Details []struct {
		Reason     string `json:"reason"`     // google.rpc.ErrorInfo
		RetryDelay string `json:"retryDelay"` // google.rpc.RetryInfo
	} `json:"details"`
}

// explain reads an error body; the zero value when it says nothing.
func explain(body []byte) explanation {
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"` // vLLM before 0.9
	}
	if strictjson.UnmarshalAllowUnknown(body, &outer) != nil {
		return explanation{}
	}
	var inner explanation
	if !isThere(outer.Error) {
		return explanation{Message: outer.Message}
	}
	if strictjson.UnmarshalAllowUnknown(outer.Error, &inner) != nil {
		_ = strictjson.UnmarshalAllowUnknown(outer.Error, &inner.Message) // a bare string
		return explanation{Message: inner.Message}
	}
	return inner
}

var errorName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{2,63}$`)

// word is the error's name in the words of the API, "" without one.
func (e explanation) word() string {
	for _, v := range []json.RawMessage{e.Status, e.Code, e.Type} {
		var name string
		if isThere(v) && strictjson.UnmarshalAllowUnknown(v, &name) == nil && errorName.MatchString(name) {
			return name
		}
	}
	return ""
}

// String is the name and the message.
func (e explanation) String() string {
	if w := e.word(); w != "" && e.Message != "" {
		return w + ", " + e.Message
	}
	return e.word() + e.Message
}

// unlessQuoting is String, without the message if that repeats what was asked.
func (e explanation) unlessQuoting(ctx context.Context) string {
	if req, ok := ctx.Value(askedKey{}).(*Request); ok && (quotes(e.Message, req.User) || quotes(e.Message, req.System)) {
		return e.word()
	}
	return e.String()
}

// quoted is how many bytes in a row two texts do not share by chance.
const quoted = 24

// quotes reports whether message holds text, or a part of it.
func quotes(message, text string) bool {
	if text = strings.TrimSpace(text); len(text) < quoted {
		return text != "" && strings.Contains(message, text)
	}
	message = message[:min(len(message), 1<<10)] // more is not shown anyway
	for i := range len(message) - quoted + 1 {
		if strings.Contains(text, message[i:i+quoted]) {
			return true
		}
	}
	return false
}

// askedKey is where a context holds the Request.
type askedKey struct{}

// WithRequest notes in the context of an exchange what is asked, so that no error
// repeats it.
func WithRequest(ctx context.Context, req *Request) context.Context {
	return context.WithValue(ctx, askedKey{}, req)
}

// keyRefused reports whether a 400 is about the key: what the Gemini API says to
// one that is wrong or has expired.
func (e explanation) keyRefused() bool {
	for _, d := range e.Details {
		if d.Reason == "API_KEY_INVALID" {
			return true
		}
	}
	return strings.HasPrefix(strings.ToLower(e.Message), "api key ")
}

// retryDelay is what the Gemini API says in the body, where it sends no
// Retry-After.
func (e explanation) retryDelay() time.Duration {
	for _, d := range e.Details {
		if delay, err := time.ParseDuration(d.RetryDelay); err == nil && delay > 0 {
			return delay
		}
	}
	return 0
}
