package llm

import (
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// The detail of any error body is short, on one line and without the key.
func FuzzErrorBody(f *testing.F) {
	for _, seed := range []string{
		`{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"API key not valid","details":[{"reason":"API_KEY_INVALID"},{"retryDelay":"3s"}]}}`,
		`{"error":{"message":"no such model","type":"invalid_request_error","code":"model_not_found"}}`, `{"error":"k3y-canary"}`, `{"message":"a\nb"}`, `<html>`, ``,
	} {
		f.Add(400, "7", []byte(seed))
		f.Add(429, "Wed, 21 Oct 2015 07:28:00 GMT", []byte(seed))
	}
	const key = "k3y-canary"
	x := &modelTransport{key: NewSecret(key)}
	f.Fuzz(func(t *testing.T, status int, after string, body []byte) {
		e := x.statusError(t.Context(), &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {after}}}, body)
		switch {
		case strings.Contains(e.Error(), key):
			t.Fatalf("got %q with the key in it", e)
		case len(e.Detail) > 256, !utf8.ValidString(e.Detail), strings.ContainsFunc(e.Detail, unicode.IsControl):
			t.Fatalf("got detail %q", e.Detail)
		case e.RetryAfter < 0 || e.RetryAfter > 24*time.Hour:
			t.Fatalf("got Retry-After %v", e.RetryAfter)
		}
	})
}

func TestContainsEcho(t *testing.T) {
	text := "Review the following pull request, please: fix the race in the cache"
	for name, tc := range map[string]struct {
		message, text string
		want          bool
	}{
		"all of it":       {"bad: " + text, text, true},
		"24 bytes":        {"bad: " + text[10:34], text, true},
		"23 bytes":        {"bad: " + text[10:33], text, false},
		"nothing":         {"bad", text, false},
		"no message":      {"", text, false},
		"of nothing":      {"bad", "", false},
		"of white space":  {"bad thing", " ", false},
		"of little":       {"bad: 'pay 5'", "pay 5\n", true},
		"of little, else": {"bad", "pay 5", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := containsEcho(tc.message, tc.text); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
