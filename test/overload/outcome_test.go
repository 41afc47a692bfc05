package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
)

func TestClassify(t *testing.T) {
	const overloaded = `{"type":"x","title":"y","status":503,"code":"overloaded","request_id":"r"}`
	refused := func(status int, retry, mediaType, body string) reply {
		return reply{status: status, header: http.Header{"Retry-After": {retry}, "Content-Type": {mediaType}}, body: []byte(body)}
	}
	ok := func(body string) reply { return reply{status: 200, body: []byte(body)} }
	for _, tt := range []struct {
		name string
		r    reply
		want kind
		why  string // is in what it says
	}{
		{"done", ok(`{"request_id":"r","status":"completed","tasks":[{"status":"failed"}]}`), good, ""},
		{"failed", ok(`{"request_id":"r","status":"failed","tasks":[{"status":"completed"}]}`), other, `"failed"`},
		{"no status", ok(`{}`), other, `""`},
		{"no JSON", ok(`<html>`), other, "cannot be read"},
		{"half of an answer", ok(`{"status":"completed"`), other, "cannot be read"},
		{"overloaded", refused(503, "1", "application/problem+json", overloaded), shed, ""},
		{"overloaded, with a charset", refused(503, "30", "application/problem+json; charset=utf-8", overloaded), shed, ""},
		{"rate limited", refused(429, "2", "application/problem+json", `{"status":429,"code":"rate_limited"}`), shed, ""},
		{"no time to come again", refused(503, "", "application/problem+json", overloaded), other, "Retry-After"},
		{"come again at once", refused(503, "0", "application/problem+json", overloaded), other, "Retry-After"},
		{"come again some day", refused(503, "soon", "application/problem+json", overloaded), other, "Retry-After"},
		{"no problem", refused(503, "1", "application/json", overloaded), other, "of the type"},
		{"no type", refused(503, "1", "", overloaded), other, "of the type"},
		{"another problem", refused(503, "5", "application/problem+json", `{"status":503,"code":"audit_unavailable"}`), other, "audit_unavailable"},
		{"a problem without a code", refused(503, "1", "application/problem+json", `{"status":503}`), other, "without a code"},
		{"another status in the problem", refused(503, "1", "application/problem+json", `{"status":500,"code":"overloaded"}`), other, "500"},
		{"a problem that breaks off", refused(503, "1", "application/problem+json", `{"status":503`), other, "cannot be read"},
		{"the other one's code", refused(429, "1", "application/problem+json", `{"status":429,"code":"overloaded"}`), other, "overloaded"},
		{"an internal error", reply{status: 500, body: []byte("oops")}, other, "500: oops"},
		{"accepted, not answered", reply{status: 202, body: []byte(`{"status":"completed"}`)}, other, "202"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, why := classify(tt.r, contract.StatusCompleted)
			if got != tt.want || !strings.Contains(why, tt.why) || (why == "") != (got != other) {
				t.Errorf("got %s, %q, want %s with %q", got, why, tt.want, tt.why)
			}
		})
	}
}

func TestWrongsNamesTheFirst(t *testing.T) {
	var w wrongs
	for i := range 2 * mostNamed {
		w.add("number %d", i)
	}
	n, first := w.all()
	if n != 2*mostNamed || len(first) != mostNamed || first[mostNamed-1] != fmt.Sprintf("number %d", mostNamed-1) {
		t.Errorf("got %d, and %d named: %v", n, len(first), first)
	}
}
