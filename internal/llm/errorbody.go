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
	"unicode/utf8"

	"github.com/caprouter/caprouter/internal/plaintext"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// maxRetryAfter bounds the wait that a server may request.
const maxRetryAfter = 24 * time.Hour

// statusError converts a response with another status than 200 to an error.
func (x *modelTransport) statusError(ctx context.Context, resp *http.Response, body []byte) *Error {
	reply := parseErrorBody(body)
	e := &Error{Status: resp.StatusCode, Reason: reasonOfStatus(resp.StatusCode)}
	if resp.StatusCode == http.StatusBadRequest && reply.isKeyError() {
		e.Reason = ReasonUnauthorized
	}
	// Use the server's message only if it helps to fix the request. Messages
	// about a key often quote parts of it.
	detail := reply.codeName()
	switch e.Reason {
	case ReasonUnauthorized:
		detail = "the key was refused; see llm.api_key_env"
		if !x.key.IsSet() {
			detail = "the server needs a key, and none was sent: " + x.missingKey
		}
	case ReasonRejected:
		detail = reply.textWithoutEcho(ctx)
		if location := resp.Header.Get("Location"); location != "" {
			detail = "redirects are not followed: set llm.base_url to where it leads"
		}
	case ReasonRateLimited, ReasonUnavailable:
		e.RetryAfter = min(max(parseRetryAfter(resp.Header, time.Now()), reply.retryDelay()), maxRetryAfter)
	}
	e.Detail = fmt.Sprintf("HTTP %d", resp.StatusCode)
	if detail != "" {
		e.Detail += ": " + x.sanitize(detail)
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
	case status < 300: // 201, 204: not a reply
		return ReasonBadResponse
	}
	return ReasonRejected
}

// parseRetryAfter parses the header (RFC 9110 §10.2.3): seconds or a date.
func parseRetryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// isPresent reports whether a member is present and not null.
func isPresent(v json.RawMessage) bool { return len(v) > 0 && string(v) != "null" }

// errorBody is the body of an error response. The formats of Google and OpenAI
// are similar; compatible servers omit parts.
type errorBody struct {
	Message string          `json:"message"`
	Status  json.RawMessage `json:"status"` // Google: INVALID_ARGUMENT
	Code    json.RawMessage `json:"code"`   // OpenAI: model_not_found; Google: the HTTP status
	Type    json.RawMessage `json:"type"`   // OpenAI: invalid_request_error
	Details []struct {
		Reason     string `json:"reason"`     // google.rpc.ErrorInfo
		RetryDelay string `json:"retryDelay"` // google.rpc.RetryInfo
	} `json:"details"`
}

// parseErrorBody parses the body, or returns the zero value.
func parseErrorBody(body []byte) errorBody {
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"` // vLLM before 0.9
	}
	if strictjson.UnmarshalAllowUnknown(body, &outer) != nil {
		return errorBody{}
	}
	var inner errorBody
	if !isPresent(outer.Error) {
		return errorBody{Message: outer.Message}
	}
	if strictjson.UnmarshalAllowUnknown(outer.Error, &inner) != nil {
		_ = strictjson.UnmarshalAllowUnknown(outer.Error, &inner.Message) // a bare string
		return errorBody{Message: inner.Message}
	}
	return inner
}

var errorName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{2,63}$`)

// codeName returns the error code of the API, or "".
func (e errorBody) codeName() string {
	for _, v := range []json.RawMessage{e.Status, e.Code, e.Type} {
		var name string
		if isPresent(v) && strictjson.UnmarshalAllowUnknown(v, &name) == nil && errorName.MatchString(name) {
			return name
		}
	}
	return ""
}

// String returns the code and the message.
func (e errorBody) String() string {
	if w := e.codeName(); w != "" && e.Message != "" {
		return w + ", " + e.Message
	}
	return e.codeName() + e.Message
}

// textWithoutEcho returns the text, without the message if it repeats parts of
// the prompt.
func (e errorBody) textWithoutEcho(ctx context.Context) string {
	if req, ok := ctx.Value(requestKey{}).(*Request); ok && (containsEcho(e.Message, req.User) || containsEcho(e.Message, req.System)) {
		return e.codeName()
	}
	return e.String()
}

// minEchoBytes is the length of a common substring that is not a coincidence.
const minEchoBytes = 24

// containsEcho reports whether message contains text or a part of it.
func containsEcho(message, text string) bool {
	if text = strings.TrimSpace(text); len(text) < minEchoBytes {
		return text != "" && strings.Contains(message, text)
	}
	message = message[:min(len(message), 1<<10)] // the rest is never shown
	for i := range len(message) - minEchoBytes + 1 {
		if strings.Contains(text, message[i:i+minEchoBytes]) {
			return true
		}
	}
	return false
}

// requestKey is the context key of the Request.
type requestKey struct{}

// WithRequest stores the request in the context, so that errors do not repeat
// its text.
func WithRequest(ctx context.Context, req *Request) context.Context {
	return context.WithValue(ctx, requestKey{}, req)
}

// isKeyError reports whether a 400 means that the key is invalid or expired, as
// in the Gemini API.
func (e errorBody) isKeyError() bool {
	for _, d := range e.Details {
		if d.Reason == "API_KEY_INVALID" {
			return true
		}
	}
	return strings.HasPrefix(strings.ToLower(e.Message), "api key ")
}

// retryDelay returns the retry delay in the body, which the Gemini API uses
// instead of Retry-After.
func (e errorBody) retryDelay() time.Duration {
	for _, d := range e.Details {
		if delay, err := time.ParseDuration(d.RetryDelay); err == nil && delay > 0 {
			return delay
		}
	}
	return 0
}

// sanitizeText makes a server's text safe for logs and terminals: short,
// without control characters and bidirectional marks.
func sanitizeText(s string) string {
	const most = 160
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return ' '
		case plaintext.IsControl(r):
			return -1
		}
		return r
	}, s)
	if len(s) <= most {
		return s
	}
	end := most
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
