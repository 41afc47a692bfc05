package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
)

// problemOf decodes a response that is a problem.
func problemOf(t *testing.T, got reply) Problem {
	t.Helper()
	if ct := got.Header.Get("Content-Type"); ct != typeProblem {
		t.Fatalf("got Content-Type %q, want %q\n%s", ct, typeProblem, got.body)
	}
	var p Problem
	if err := json.Unmarshal(got.body, &p); err != nil {
		t.Fatal(err)
	}
	if p.Status != got.StatusCode || p.RequestID != got.Header.Get("X-Request-Id") {
		t.Errorf("got status %d and id %s in the problem, want %d and %s as in the response",
			p.Status, p.RequestID, got.StatusCode, got.Header.Get("X-Request-Id"))
	}
	return p
}

func pointers(p Problem) []string {
	var at []string
	for _, d := range p.Errors {
		at = append(at, d.Pointer)
	}
	return at
}

// An invalid body is rejected with the location of each mistake, and does not reach the router.
func TestHandleRoute_RejectsInvalidBodies(t *testing.T) {
	core := &fakeBackend{}
	srv := startServer(t, httpserver.Config{}, core)
	longID := strings.Repeat("i", 129)
	cases := []struct {
		name, body string
		status     int
		pointers   []string // of the 422 responses
		detail     string   // a part of the response
	}{
		{"empty", ``, 400, nil, "it is empty"},
		{"blank", " \n", 400, nil, "is not JSON"},
		{"truncated", `{"content":{"prompt":"p"`, 400, nil, "line 1"},
		{"single quotes", `{'content':{}}`, 400, nil, "is not JSON"},
		{"comment", `{"content":{"prompt":"p"}/* */}`, 400, nil, "is not JSON"},
		{"trailing comma", `{"content":{"prompt":"p"},}`, 400, nil, "is not JSON"},
		{"trailing text", prompt + ` x`, 400, nil, "is not JSON"},
		{"two values", prompt + prompt, 400, nil, "is not JSON"},
		{"NUL after the value", prompt + "\x00", 400, nil, "is not JSON"},
		{"byte order mark", "\ufeff" + prompt, 400, nil, "byte order mark"},
		{"UTF-16", "\xff\xfe{\x00}\x00", 400, nil, "UTF-16"},
		{"invalid UTF-8", "{\"content\":{\"prompt\":\"\xff\"}}", 400, nil, "UTF-8"},
		{"lone surrogate", `{"content":{"prompt":"\ud800"}}`, 400, nil, "is not JSON"},
		{"raw newline in a string", "{\"content\":{\"prompt\":\"a\nb\"}}", 400, nil, "is not JSON"},
		{"NaN", `{"options":{"timeout_ms":NaN}}`, 400, nil, "is not JSON"},

		{"null", `null`, 422, []string{""}, "must be an object"},
		{"array", `[]`, 422, []string{""}, "must be an object"},
		{"string", `"content"`, 422, []string{""}, "must be an object"},
		{"no content", `{}`, 422, []string{"/content/prompt"}, "is required"},
		{"no prompt", `{"content":{}}`, 422, []string{"/content/prompt"}, "is required"},
		{"empty prompt", `{"content":{"prompt":""}}`, 422, []string{"/content/prompt"}, "is required"},
		{"blank prompt", `{"content":{"prompt":" \t\n\u00a0"}}`, 422, []string{"/content/prompt"}, "is required"},
		{"null content", `{"content":null}`, 422, []string{"/content"}, "got null"},
		{"null prompt", `{"content":{"prompt":null}}`, 422, []string{"/content/prompt"}, "got null"},
		{"null options", `{"content":{"prompt":"p"},"options":null}`, 422, []string{"/options"}, "got null"},
		{"null history", `{"content":{"prompt":"p"},"history":null}`, 422, []string{"/history"}, "got null"},
		{"null turn", `{"content":{"prompt":"p"},"history":[null]}`, 422, []string{"/history/0"}, "got null"},
		{"null mode", `{"content":{"prompt":"p"},"options":{"mode":null}}`, 422, []string{"/options/mode"}, "got null"},
		{"prompt is a number", `{"content":{"prompt":1}}`, 422, []string{"/content/prompt"}, "must be a string"},
		{"prompt is a list", `{"content":{"prompt":["p"]}}`, 422, []string{"/content/prompt"}, "must be a string"},
		{"history is an object", `{"content":{"prompt":"p"},"history":{}}`, 422, []string{"/history"}, "must be an array"},
		{"dry_run is a string", `{"content":{"prompt":"p"},"options":{"dry_run":"true"}}`, 422, []string{"/options/dry_run"}, "true or false"},
		{"timeout is a fraction", `{"content":{"prompt":"p"},"options":{"timeout_ms":1.5}}`, 422, []string{"/options/timeout_ms"}, "whole number"},
		{"timeout overflows", `{"content":{"prompt":"p"},"options":{"timeout_ms":99999999999999999999}}`, 422, []string{"/options/timeout_ms"}, "out of range"},

		{"unknown member", `{"content":{"prompt":"p"},"contents":1}`, 422, []string{"/contents"}, "unknown member"},
		{"several mistakes", `{"content":{"promt":"p","inputs":[]},"options":{"dry_run":"yes"}}`, 422, []string{"/content/promt", "/content/inputs", "/options/dry_run"}, "unknown member"},
		{"unknown inner member", `{"content":{"promt":"p"}}`, 422, []string{"/content/promt"}, "unknown member"},
		{"upper case", `{"CONTENT":{"prompt":"p"}}`, 422, []string{"/CONTENT"}, `did you mean \"content\"`},
		{"case by Unicode folding", `{"content":{"prompt":"p"},"ſession_id":"s"}`, 422, []string{"/ſession_id"}, `did you mean \"session_id\"`},
		{"both cases", `{"content":{"prompt":"p"},"Content":{"prompt":"q"}}`, 422, []string{"/Content"}, "unknown member"},
		{"Go field name", `{"content":{"prompt":"p"},"RequestID":"x"}`, 422, []string{"/RequestID"}, "unknown member"},
		{"member set by the server", `{"content":{"prompt":"p"},"request_id":"x"}`, 422, []string{"/request_id"}, "unknown member"},
		{"duplicate member", `{"content":{"prompt":"p","prompt":"q"}}`, 422, []string{"/content/prompt"}, "more than once"},
		{"duplicate escaped member", `{"content":{"prompt":"p","\u0070rompt":"q"}}`, 422, []string{"/content/prompt"}, "more than once"},
		{"duplicate member of the inputs", `{"content":{"prompt":"p","inputs":{"a":{"b":1,"b":2}}}}`, 422, []string{"/content/inputs/a/b"}, "more than once"},
		{"duplicate object", `{"content":{"prompt":"p"},"content":{"prompt":"q"}}`, 422, []string{"/content"}, "more than once"},
		{"nested too deep", `{"content":{"prompt":"p","inputs":{"a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}}}`, 422, []string{""}, "nests deeper"},
		{"nested extremely deep", strings.Repeat(`{"a":`, 100_000), 422, []string{""}, "nests deeper"},

		{"role", `{"content":{"prompt":"p"},"history":[{"role":"user"},{"role":"system"}]}`, 422, []string{"/history/1/role"}, "user, assistant"},
		{"no role", `{"content":{"prompt":"p"},"history":[{"content":"c"}]}`, 422, []string{"/history/0/role"}, "user, assistant"},
		{"65 turns", `{"content":{"prompt":"p"},"history":[` + strings.Repeat(`{"role":"user"},`, 64) + `{"role":"user"}]}`, 422, []string{"/history"}, "at most 64"},
		{"long session", `{"content":{"prompt":"p"},"session_id":"` + longID + `"}`, 422, []string{"/session_id"}, "at most 128"},
		{"long locale", `{"content":{"prompt":"p"},"metadata":{"locale":"` + longID + `"}}`, 422, []string{"/metadata/locale"}, "at most 35"},
		{"invalid agent", `{"content":{"prompt":"p"},"agent_id":"../etc"}`, 422, []string{"/agent_id"}, "agent id"},
		{"long agent", `{"content":{"prompt":"p"},"agent_id":"` + longID + `"}`, 422, []string{"/agent_id"}, "is not an agent id"},
		{"negative timeout", `{"content":{"prompt":"p"},"options":{"timeout_ms":-1}}`, 422, []string{"/options/timeout_ms"}, "at least 0"},
		{"long timeout", `{"content":{"prompt":"p"},"options":{"timeout_ms":600001}}`, 422, []string{"/options/timeout_ms"}, "at most 600000"},
		{"policy", `{"content":{"prompt":"p"},"options":{"fallback":"D"}}`, 422, []string{"/options/fallback"}, "A, B, C"},
		{"mode", `{"content":{"prompt":"p"},"options":{"mode":"later"}}`, 422, []string{"/options/mode"}, "sync, async"},
		{"reserved input", `{"content":{"prompt":"p","inputs":{"prompt":"q"}}}`, 422, []string{"/content/inputs/prompt"}, "reserved"},
		{"long prompt", `{"content":{"prompt":"` + strings.Repeat("é", 33_000) + `"}}`, 422, []string{"/content/prompt"}, "66000 bytes"},
		{"async dry run", `{"content":{"prompt":"p"},"options":{"mode":"async","dry_run":true}}`, 422, []string{"/options/mode"}, "answered at once"},
		{"synchronous timeout longer than a day", `{"content":{"prompt":"p"},"options":{"timeout_ms":86400001}}`, 422, []string{"/options/timeout_ms"}, "at most 600000 (86400000 with mode async)"},
		{"timeout longer than a day", `{"content":{"prompt":"p"},"options":{"mode":"async","timeout_ms":86400001}}`, 422, []string{"/options/timeout_ms"}, "at most 86400000"},
		{"clarification without an option", `{"content":{"prompt":"p"},"clarification":{"request_id":"r"}}`, 422, []string{"/clarification/option_id"}, "is required"},
		{"clarification without a request", `{"content":{"prompt":"p"},"clarification":{"option_id":"o"}}`, 422, []string{"/clarification/request_id"}, "is required"},
		{"string as a clarification", `{"content":{"prompt":"p"},"clarification":"1"}`, 422, []string{"/clarification"}, "must be an object"},
		{"long option", `{"content":{"prompt":"p"},"clarification":{"request_id":"r","option_id":"` + longID + `"}}`, 422, []string{"/clarification/option_id"}, "at most 64"},
		{
			"several mistakes",
			`{"content":{"prompt":"","inputs":{"prompt":1}},"history":[{"role":"x"}],"agent_id":"X","clarification":{"request_id":"","option_id":"o"},"options":{"mode":"async","dry_run":true,"timeout_ms":-5}}`,
			422,
			[]string{
				"/content/prompt", "/history/0/role", "/clarification/request_id", "/options/timeout_ms",
				"/content/inputs/prompt", "/options/mode", "/agent_id",
			},
			"is required",
		},
	}
	for _, path := range []string{"/api/v1/route", "/api/v1/classify"} {
		for _, c := range cases {
			t.Run(path+"/"+c.name, func(t *testing.T) {
				got := srv.post(t, path, c.body)
				p := problemOf(t, got)
				if got.StatusCode != c.status || p.Code != contract.CodeInvalidRequest {
					t.Errorf("got %d %s, want %d invalid_request", got.StatusCode, p.Code, c.status)
				}
				if diff := cmp.Diff(c.pointers, pointers(p)); diff != "" {
					t.Errorf("pointers differ (-want +got):\n%s\n%s", diff, got.body)
				}
				if !bytes.Contains(got.body, []byte(c.detail)) {
					t.Errorf("got %s, want %q in it", got.body, c.detail)
				}
			})
		}
	}
	if req := core.last(); req != nil {
		t.Errorf("got a call of the router with %+v, want none", req)
	}
}

func TestAPI_ContentTypes(t *testing.T) {
	srv := startServer(t, httpserver.Config{}, &fakeBackend{})
	const yaml = "clients:\n  a:\n    match:\n      intent: [x]\n      domains: [y]\n"
	cases := []struct {
		name, path string
		headers    []string
		status     int
	}{
		{"JSON", "/api/v1/route", []string{"Content-Type", "application/json"}, 200},
		{"JSON in UTF-8", "/api/v1/route", []string{"Content-Type", `Application/JSON; Charset="UTF-8"`}, 200},
		{"JSON in Latin-1", "/api/v1/route", []string{"Content-Type", "application/json; charset=iso-8859-1"}, 415},
		{"none", "/api/v1/route", nil, 415},
		{"empty", "/api/v1/route", []string{"Content-Type", ""}, 415},
		{"two", "/api/v1/route", []string{"Content-Type", "application/json", "Content-Type", "text/plain"}, 415},
		{"broken", "/api/v1/route", []string{"Content-Type", "application/json; charset"}, 415},
		{"form", "/api/v1/route", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
		{"problem", "/api/v1/route", []string{"Content-Type", "application/problem+json"}, 415},
		{"JSON Lines", "/api/v1/route", []string{"Content-Type", "application/jsonl"}, 415},
		{"gzip", "/api/v1/route", []string{"Content-Type", "application/json", "Content-Encoding", "gzip"}, 415},
		{"identity", "/api/v1/route", []string{"Content-Type", "application/json", "Content-Encoding", "identity"}, 200},
		{"two encodings", "/api/v1/route", []string{"Content-Type", "application/json", "Content-Encoding", "identity", "Content-Encoding", "gzip"}, 415},
		{"classify text", "/api/v1/classify", []string{"Content-Type", "text/plain"}, 415},
		{"YAML", "/api/v1/registry/validate", []string{"Content-Type", "application/yaml"}, 200},
		{"x-YAML", "/api/v1/registry/validate", []string{"Content-Type", "application/x-yaml"}, 200},
		{"text YAML", "/api/v1/registry/lint", []string{"Content-Type", "text/yaml; charset=utf-8"}, 200},
		{"text", "/api/v1/registry/lint", []string{"Content-Type", "text/plain"}, 200},
		{"registry as JSON", "/api/v1/registry/lint", []string{"Content-Type", "application/json"}, 415},
		{"registry gzipped", "/api/v1/registry/validate", []string{"Content-Type", "text/yaml", "Content-Encoding", "gzip"}, 415},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			body := prompt
			if strings.Contains(c.path, "registry") {
				body = yaml
			}
			got := srv.do(t, http.MethodPost, c.path, body, c.headers...)
			if got.StatusCode != c.status {
				t.Fatalf("got %d %s, want %d", got.StatusCode, got.body, c.status)
			}
			if c.status == 415 && problemOf(t, got).Code != contract.CodeUnsupportedMediaType {
				t.Errorf("got %s", got.body)
			}
		})
	}
}

func TestHandleRoute_LimitsBodySize(t *testing.T) {
	srv := startServer(t, httpserver.Config{}, &fakeBackend{})
	// The padding is valid JSON, so that only the size can be wrong.
	sized := func(n int) string { return prompt + strings.Repeat(" ", n-len(prompt)) }
	cases := []struct {
		name   string
		body   io.Reader
		status int
	}{
		{"at the limit", strings.NewReader(sized(contract.MaxBodyBytes)), 200},
		{"one byte more", strings.NewReader(sized(contract.MaxBodyBytes + 1)), 413},
		{"chunked, at the limit", chunked{strings.NewReader(sized(contract.MaxBodyBytes))}, 200},
		{"chunked, one byte more", chunked{strings.NewReader(sized(contract.MaxBodyBytes + 1))}, 413},
		{"chunked byte by byte", chunked{iotest.OneByteReader(strings.NewReader(prompt))}, 200},
		{"chunked and empty", chunked{strings.NewReader("")}, 400},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := srv.send(t, http.MethodPost, "/api/v1/route", c.body, "Content-Type", "application/json")
			if got.StatusCode != c.status {
				t.Errorf("got %d %.200s, want %d", got.StatusCode, got.body, c.status)
			}
			if c.status == 413 {
				if p := problemOf(t, got); p.Code != contract.CodePayloadTooLarge || !got.Close {
					t.Errorf("got %s and close %t, want payload_too_large and a closed connection", p.Code, got.Close)
				}
			}
		})
	}
}

// chunked hides the length of a body, so that it is sent in chunks.
type chunked struct{ io.Reader }

// A decoded request must not refer to the buffer of its body, because the next request reuses the
// buffer.
func TestHandleRoute_RequestsDoNotShareBuffers(t *testing.T) {
	core := &fakeBackend{}
	s := newServer(t, httpserver.Config{}, core)
	const body = `{"content":{"prompt":"first prompt","inputs":{"key one":["value one"]}},"session_id":"session one"}`
	s.ServeHTTP(httptest.NewRecorder(), localRequest(http.MethodPost, "/api/v1/route", body))
	first := core.last()
	want, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	s.ServeHTTP(httptest.NewRecorder(), localRequest(http.MethodPost, "/api/v1/route", strings.Repeat("X", 4096)))
	got, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("got the first request changed by the second one (-before +after):\n%s", diff)
	}
}

// localRequest returns a request as received by the server, without a connection.
func localRequest(method, path, body string) *http.Request {
	r := httptest.NewRequestWithContext(context.Background(), method, path, strings.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer t")
	return r
}

// chunkedIf returns a body that is sent in chunks, or with a Content-Length.
func chunkedIf(hide bool, body string) io.Reader {
	if hide {
		return chunked{strings.NewReader(body)}
	}
	return strings.NewReader(body)
}
