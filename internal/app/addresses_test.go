package app

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caprouter/caprouter/internal/testkit"
)

// Addresses in requests are never called: those of the list, and one with a listener.
func TestServer_CallsNoAddressFromRequests(t *testing.T) {
	var calls atomic.Int64
	canary := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	defer canary.Close()
	urls := []string{canary.URL + "/task", strings.Replace(canary.URL, "127.0.0.1", "localhost", 1)}
	f, err := os.Open(testkit.Shared(t, "corpora", "own-lists", "ssrf_targets.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		var target struct{ URL string }
		if err := json.Unmarshal(in.Bytes(), &target); err != nil {
			t.Fatal(err)
		}
		urls = append(urls, target.URL)
	}
	m := newTokenIssuer()
	s := startGuarded(t, m, "clients:\n"+entry("counter", "count_words", "prose", "")+"fallback: { policy: C }\n")
	token := m.token("alice", everyScope+" agent:*", nil)
	for _, u := range urls {
		quoted := encode(u)
		yaml := http.Header{"Content-Type": {"text/yaml"}}
		registry := "clients:\n  a: { match: { intent: [i], domains: [d] }, endpoint: { protocol: http, url: " + quoted + " } }\n"
		for _, c := range []call{
			{method: "POST", path: "/api/v1/registry/validate", body: registry, header: yaml},
			{method: "POST", path: "/api/v1/registry/lint", body: registry, header: yaml},
			{method: "POST", path: "/api/v1/registry/diff", body: registry, header: yaml},
			{method: "POST", path: "/api/v1/route", body: `{"content":{"prompt":` + encode("fetch "+u) + `,"inputs":{"url":` + quoted + `,"callback":{"url":` + quoted + `}}}}`},
			{method: "GET", path: "/api/v1/agents", header: http.Header{"Referer": {visible(u)}, "X-Forwarded-Host": {visible(u)}, "Link": {visible(u)}}},
		} {
			c.token = token
			if got := s.do(c); got.status >= 500 {
				t.Errorf("%s with %q: got %d %s", c.path, u, got.status, got.body)
			}
		}
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("got %d calls of an address in a request, want none", n)
	}
	t.Logf("%d addresses in four positions each", len(urls))
}
