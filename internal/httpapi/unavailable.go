package httpapi

import (
	"net/http"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// notAvailable lists what the request asks of this interface that it does not
// offer yet. Ignoring it would be worse: who sends an Idempotency-Key relies on
// it, and who asks for an asynchronous answer does not wait for this one.
func notAvailable(req *contract.Request, h http.Header) []contract.ErrorDetail {
	var details []contract.ErrorDetail
	if req.Options.Mode == contract.ModeAsync {
		details = append(details, contract.ErrorDetail{
			Pointer: "/options/mode", Detail: "async is not available yet: leave it out and wait for the answer",
		})
	}
	if prefersAsync(h["Prefer"]) {
		details = append(details, contract.ErrorDetail{
			Detail: "the header Prefer: respond-async is not available yet: leave it out and wait for the answer",
		})
	}
	if _, present := h["Idempotency-Key"]; present {
		details = append(details, contract.ErrorDetail{
			Detail: "the header Idempotency-Key is not available yet: leave it out; a repeated request is done again",
		})
	}
	if onlyEventStream(h["Accept"]) {
		details = append(details, contract.ErrorDetail{
			Detail: "the header Accept: text/event-stream is not available yet: accept application/json",
		})
	}
	return details
}

// prefersAsync looks for the preference respond-async (RFC 7240 §4.1) among
// preferences like `respond-async, wait=10`.
func prefersAsync(values []string) bool {
	for _, value := range values {
		for preference := range strings.SplitSeq(value, ",") {
			name, _, _ := strings.Cut(preference, ";")
			name, _, _ = strings.Cut(name, "=")
			if strings.EqualFold(strings.TrimSpace(name), "respond-async") {
				return true
			}
		}
	}
	return false
}

// onlyEventStream reports whether an Accept header asks for an event stream and
// leaves no room for JSON. Any other wish that cannot be met is not an error
// (RFC 9110 §12.5.1): the answer is JSON all the same.
func onlyEventStream(values []string) bool {
	stream := false
	for _, value := range values {
		for mediaRange := range strings.SplitSeq(value, ",") {
			name, params, _ := strings.Cut(mediaRange, ";")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case typeJSON, "application/*", "*/*":
				if !refused(params) {
					return false
				}
			case "text/event-stream":
				stream = true
			}
		}
	}
	return stream
}

// refused reports whether the parameters of a media range say q=0.
func refused(params string) bool {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if strings.EqualFold(name, "q") {
			return strings.Trim(value, "0.") == ""
		}
	}
	return false
}
