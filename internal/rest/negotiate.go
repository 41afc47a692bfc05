package rest

import (
	"crypto/sha256"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
)

// maxIdempotencyKey is the maximum length of an Idempotency-Key, in bytes.
const maxIdempotencyKey = 255

// applyRouteHeaders applies the headers Prefer and Idempotency-Key of a routing
// request, and returns the mistakes in them.
func applyRouteHeaders(c *httpserver.Context, req *contract.Request, body []byte) []contract.ErrorDetail {
	h := c.Request.Header
	// The mode in the body has precedence over a preference (RFC 7240 §2).
	if req.Options.Mode == "" && !req.Options.DryRun && prefersAsync(h["Prefer"]) {
		req.Options.Mode = contract.ModeAsync
	}
	var mistakes []contract.ErrorDetail
	req.Idempotency, mistakes = idempotencyKey(c, req.Options.Mode == contract.ModeAsync, body)
	return mistakes
}

// idempotencyKey returns the idempotency key in the header of a request, nil if there is
// none, and the mistakes in it. A key that is not valid is a mistake, because the client
// relies on it.
func idempotencyKey(c *httpserver.Context, async bool, body []byte) (*contract.Idempotency, []contract.ErrorDetail) {
	keys, present := c.Request.Header["Idempotency-Key"]
	if !present {
		return nil, nil
	}
	if len(keys) != 1 || !isPrintable(keys[0], maxIdempotencyKey) {
		return nil, []contract.ErrorDetail{{
			Detail: "the header Idempotency-Key must be 1 to 255 printable ASCII characters, and there must be one",
		}}
	}
	return &contract.Idempotency{Key: keys[0], Body: hashRequest(c.Request.URL.Path, async, body)}, nil
}

// hashRequest returns a hash that distinguishes requests with the same
// idempotency key. It is stored, so its input must not change.
func hashRequest(path string, async bool, body []byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	_, _ = h.Write([]byte(path)) // a hash does not return errors
	mode := byte(0)
	if async {
		mode = 1
	}
	_, _ = h.Write([]byte{0, mode}) // paths do not contain NUL
	_, _ = h.Write(body)
	h.Sum(sum[:0])
	return sum
}

// isPrintable reports whether s is 1 to maxLen bytes of printable ASCII.
func isPrintable(s string, maxLen int) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return s != "" && len(s) <= maxLen
}

// preferAsync is the preference for a 202 response (RFC 7240 §4.1).
const preferAsync = "respond-async"

// prefersAsync looks for preferAsync among preferences like "respond-async,
// wait=10". The preference has no value or an empty one; "true" is accepted as
// well. With any other value it is an unknown preference, which is ignored
// (RFC 7240 §2).
func prefersAsync(values []string) bool {
	for _, value := range values {
		for preference := range strings.SplitSeq(value, ",") {
			preference, _, _ := strings.Cut(preference, ";")
			name, value, _ := strings.Cut(preference, "=")
			value = strings.Trim(strings.TrimSpace(value), `"`)
			if strings.EqualFold(strings.TrimSpace(name), preferAsync) && (value == "" || strings.EqualFold(value, "true")) {
				return true
			}
		}
	}
	return false
}

// prefersEventStream reports whether an Accept header prefers an event stream to
// JSON. At the same weight JSON wins. A header that accepts neither is ignored
// (RFC 9110 §12.5.1), and the response is JSON.
func prefersEventStream(values []string) bool {
	const all, group, exact = 0, 1, 2
	stream, json := 0, [...]int{all: -1, group: -1, exact: -1}
	for _, value := range values {
		for mediaRange := range strings.SplitSeq(value, ",") {
			name, params, _ := strings.Cut(mediaRange, ";")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case httpserver.MediaTypeEvents:
				stream = parseWeight(params)
			case httpserver.MediaTypeJSON:
				json[exact] = parseWeight(params)
			case "application/*":
				json[group] = parseWeight(params)
			case "*/*":
				json[all] = parseWeight(params)
			}
		}
	}
	// The most specific range has precedence (RFC 9110 §12.5.1).
	for _, w := range [...]int{json[exact], json[group], json[all], 0} {
		if w >= 0 {
			return stream > w
		}
	}
	return false
}

// parseWeight returns the parameter q of a media range in thousandths. A value
// that is absent or not well formed is 1000.
func parseWeight(params string) int {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if strings.EqualFold(name, "q") {
			return parseQValue(value)
		}
	}
	return 1000
}

// parseQValue parses a qvalue (RFC 9110 §12.4.2): 0, 1, or 0 with up to three
// decimals.
func parseQValue(q string) int {
	whole, decimals, _ := strings.Cut(q, ".")
	if whole != "0" || len(decimals) > 3 {
		return 1000
	}
	sum := 0
	for i := range 3 {
		sum *= 10
		if i >= len(decimals) {
			continue
		}
		if decimals[i] < '0' || decimals[i] > '9' {
			return 1000
		}
		sum += int(decimals[i] - '0')
	}
	return sum
}
