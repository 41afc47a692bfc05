package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
)

func TestClassifyResponse(t *testing.T) {
	const overloaded = `{"type":"x","title":"y","status":503,"code":"overloaded","request_id":"r"}`
	refused := func(status int, retry, mediaType, body string) response {
		return response{status: status, header: http.Header{"Retry-After": {retry}, "Content-Type": {mediaType}}, body: []byte(body)}
	}
	ok := func(body string) response { return response{status: 200, body: []byte(body)} }
	for _, tt := range []struct {
		name string
		r    response
		want outcome
		why  string // part of the reason
	}{
		{"done", ok(`{"request_id":"r","status":"completed","tasks":[{"status":"failed"}]}`), outcomeGood, ""},
		{"failed", ok(`{"request_id":"r","status":"failed","tasks":[{"status":"completed"}]}`), outcomeInvalid, `"failed"`},
		{"no status", ok(`{}`), outcomeInvalid, `""`},
		{"no JSON", ok(`<html>`), outcomeInvalid, "invalid body"},
		{"truncated answer", ok(`{"status":"completed"`), outcomeInvalid, "invalid body"},
		{"overloaded", refused(503, "1", "application/problem+json", overloaded), outcomeShed, ""},
		{"overloaded, with a charset", refused(503, "30", "application/problem+json; charset=utf-8", overloaded), outcomeShed, ""},
		{"rate limited", refused(429, "2", "application/problem+json", `{"status":429,"code":"rate_limited"}`), outcomeShed, ""},
		{"no Retry-After", refused(503, "", "application/problem+json", overloaded), outcomeInvalid, "Retry-After"},
		{"zero Retry-After", refused(503, "0", "application/problem+json", overloaded), outcomeInvalid, "Retry-After"},
		{"invalid Retry-After", refused(503, "soon", "application/problem+json", overloaded), outcomeInvalid, "Retry-After"},
		{"not a problem", refused(503, "1", "application/json", overloaded), outcomeInvalid, "of the type"},
		{"no type", refused(503, "1", "", overloaded), outcomeInvalid, "of the type"},
		{"another problem", refused(503, "5", "application/problem+json", `{"status":503,"code":"audit_unavailable"}`), outcomeInvalid, "audit_unavailable"},
		{"problem without a code", refused(503, "1", "application/problem+json", `{"status":503}`), outcomeInvalid, "without a code"},
		{"another status in the problem", refused(503, "1", "application/problem+json", `{"status":500,"code":"overloaded"}`), outcomeInvalid, "500"},
		{"truncated problem", refused(503, "1", "application/problem+json", `{"status":503`), outcomeInvalid, "invalid body"},
		{"code of another status", refused(429, "1", "application/problem+json", `{"status":429,"code":"overloaded"}`), outcomeInvalid, "overloaded"},
		{"internal error", response{status: 500, body: []byte("oops")}, outcomeInvalid, "500: oops"},
		{"accepted, not answered", response{status: 202, body: []byte(`{"status":"completed"}`)}, outcomeInvalid, "202"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, why := classifyResponse(tt.r, contract.StatusCompleted)
			if got != tt.want || !strings.Contains(why, tt.why) || (why == "") != (got != outcomeInvalid) {
				t.Errorf("got %s, %q, want %s with %q", got, why, tt.want, tt.why)
			}
		})
	}
}

func TestFailureLog_KeepsFirst(t *testing.T) {
	var w failureLog
	for i := range 2 * maxListed {
		w.record("number %d", i)
	}
	n, first := w.list()
	if n != 2*maxListed || len(first) != maxListed || first[maxListed-1] != fmt.Sprintf("number %d", maxListed-1) {
		t.Errorf("got %d, and %d named: %v", n, len(first), first)
	}
}
