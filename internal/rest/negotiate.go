package rest

import (
	"crypto/sha256"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// maxIdempotencyKey is how long an Idempotency-Key may be, in bytes.
const maxIdempotencyKey = 255

// heed lets the headers of a routing request have their say, and returns what is
// wrong with them. Ignoring an Idempotency-Key that cannot be honoured would be
// worse than refusing it: who sends one relies on it.
func heed(x *exchange, req *contract.Request, body []byte) []contract.ErrorDetail {
	h := x.req.Header
	// A preference gives way to what the body says (RFC 7240 §2).
	if req.Options.Mode == "" && !req.Options.DryRun && prefersAsync(h["Prefer"]) {
		req.Options.Mode = contract.ModeAsync
	}
	keys, present := h["Idempotency-Key"]
	if !present {
		return nil
	}
	if len(keys) != 1 || !printable(keys[0], maxIdempotencyKey) {
		return []contract.ErrorDetail{{
			Detail: "the header Idempotency-Key must be 1 to 255 printable ASCII characters, and there must be one",
		}}
	}
	async := req.Options.Mode == contract.ModeAsync
	req.Idempotency = &contract.Idempotency{Key: keys[0], Body: fingerprint(x.route.path, async, body)}
	return nil
}

// fingerprint tells requests apart that were sent with the same key.
func fingerprint(path string, async bool, body []byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	_, _ = h.Write([]byte(path)) // a hash takes everything
	waits := byte(0)
	if async {
		waits = 1
	}
	_, _ = h.Write([]byte{0, waits}) // no path holds a NUL
	_, _ = h.Write(body)
	h.Sum(sum[:0])
	return sum
}

// printable reports whether s is 1 to most bytes of printable ASCII.
func printable(s string, most int) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return s != "" && len(s) <= most
}

// preferAsync is the preference that asks for a 202 (RFC 7240 §4.1).
const preferAsync = "respond-async"

// prefersAsync looks for it among preferences like `respond-async, wait=10`. It
// has no value, or an empty one, which is the same; true is what is meant by it
// where a value is written all the same. With any other it is a preference that
// nobody knows, and those are ignored (RFC 7240 §2).
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

// wantsStream reports whether an Accept header prefers an event stream to JSON.
// At the same weight JSON wins, and any other wish that cannot be met is no error
// (RFC 9110 §12.5.1): the answer is JSON all the same.
func wantsStream(values []string) bool {
	const all, group, exact = 0, 1, 2
	stream, json := 0, [...]int{all: -1, group: -1, exact: -1}
	for _, value := range values {
		for mediaRange := range strings.SplitSeq(value, ",") {
			name, params, _ := strings.Cut(mediaRange, ";")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case typeEvents:
				stream = weight(params)
			case typeJSON:
				json[exact] = weight(params)
			case "application/*":
				json[group] = weight(params)
			case "*/*":
				json[all] = weight(params)
			}
		}
	}
	// The range that fits best says the weight (RFC 9110 §12.5.1).
	for _, w := range [...]int{json[exact], json[group], json[all], 0} {
		if w >= 0 {
			return stream > w
		}
	}
	return false
}

// weight reads the q of a media range's parameters in thousandths. One that is
// not well formed counts as none, which is 1.
func weight(params string) int {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if strings.EqualFold(name, "q") {
			return thousandths(value)
		}
	}
	return 1000
}

// thousandths reads a qvalue (RFC 9110 §12.4.2): 0, 1, or 0 with up to three
// decimals.
func thousandths(q string) int {
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
