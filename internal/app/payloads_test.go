package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/testkit"
)

func readStrings(t *testing.T, elem ...string) []string {
	t.Helper()
	data, err := os.ReadFile(testkit.Shared(t, elem...))
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// readLists reads the lines of every text file below a directory.
func readLists(t *testing.T, elem ...string) []string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(testkit.Shared(t, elem...), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) == ".md" {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		in := bufio.NewScanner(f)
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			lines = append(lines, in.Text())
		}
		return in.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// files returns the regular files below a directory, except those of the store.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "store" {
			return fs.SkipDir
		}
		if !d.IsDir() {
			names = append(names, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Strings that often cause errors, in every field a caller can set: they are treated as text, cause
// no server error, the log has one entry on each line, and no file is created.
func TestServer_HandlesHostilePayloads(t *testing.T) {
	ids := readStrings(t, "corpora", "own-lists", "bad_agent_ids.json")
	texts := append(readStrings(t, "corpora", "naughty-strings", "blns.json"), ids...)
	payloads := append(texts, readLists(t, "corpora", "web-payloads")...) // for paths and headers
	work := t.TempDir()
	t.Chdir(work)
	m := newTokenIssuer()
	s := startGuarded(t, m, "clients:\n"+entry("counter", "count_words", "prose", "")+"fallback: { policy: C }\n", func(c *config.Config) {
		c.Telemetry.LogLevel = "debug"
		for _, rate := range []*config.Rate{&c.Limits.Classify, &c.Limits.Check, &c.Limits.Read} {
			rate.RPS = "0"
		}
	})
	before := files(t, filepath.Dir(s.registry))
	var calls []call
	token := m.token("alice", everyScope+" agent:*", nil)
	for i, p := range payloads {
		quoted := encode(p)
		add := func(method, path, body string, header http.Header) {
			calls = append(calls, call{method: method, path: path, token: token, body: body, header: header})
		}
		if i < len(texts) {
			add("POST", "/api/v1/route", `{"content":{"prompt":`+quoted+`,"inputs":{"x":`+quoted+`}},"history":[{"role":"user","content":`+quoted+`}],"session_id":`+quoted+`}`, nil)
		}
		switch i % 4 { // the lists are long, so each string is sent to one of the remaining positions
		case 0:
			add("GET", "/api/v1/requests/"+url.PathEscape(p), "", nil)
			add("GET", "/api/v1/agents/"+url.PathEscape(p), "", nil)
		case 1:
			add("GET", "/api/v1/decisions?agent="+url.QueryEscape(p), "", nil)
			add("POST", "/api/v1/tickets/"+url.PathEscape(p)+"/close", `{"note":`+quoted+`}`, nil)
		case 2:
			add("POST", "/api/v1/route", `{"content":{"prompt":"count words"},"agent_id":`+quoted+`,"options":{"mode":`+quoted+`}}`, nil)
			add("GET", "/"+strings.TrimLeft((&url.URL{Path: p}).EscapedPath(), "/"), "", nil)
		case 3:
			add("POST", "/api/v1/registry/validate", "clients:\n  "+p+": { match: { intent: ["+p+"] } }\n", http.Header{"Content-Type": {"text/yaml"}})
			add("GET", "/api/v1/agents", "", http.Header{"Prefer": {visible(p)}, "Traceparent": {visible(p)}, "Idempotency-Key": {visible(p)}})
		}
	}
	for _, id := range ids {
		calls = append(calls, call{
			method: "POST", path: "/api/v1/registry/validate", token: token,
			body: fmt.Sprintf("clients:\n  %s: { match: { intent: [a], domains: [b] } }\n", encode(id)), header: http.Header{"Content-Type": {"text/yaml"}},
		})
	}
	results := make([]apiResponse, len(calls))
	const check = "/api/v1/registry/validate" // one at a time for each caller
	run.ForEach(t.Context(), 8, len(calls), func(_ context.Context, i int) {
		if calls[i].path != check {
			results[i] = s.do(calls[i])
		}
	})
	for i := range calls {
		if calls[i].path == check {
			results[i] = s.do(calls[i])
		}
	}
	seen := map[int]int{}
	for i, got := range results {
		seen[got.status]++
		if got.status == 0 || got.status >= 500 {
			t.Errorf("%s %s %.200s: got %d %s", calls[i].method, calls[i].path, calls[i].body, got.status, got.body)
		}
		if k := i - (len(calls) - len(ids)); k >= 0 && (got.status == 200) != contract.ValidAgentID(ids[k]) {
			t.Errorf("agent id %q: got %d, want 422 unless it is valid, as null", ids[k], got.status)
		}
		if !json.Valid(got.body) && strings.HasPrefix(calls[i].path, "/api/") && got.status != 301 {
			t.Errorf("%s %s: got a response that is not JSON: %.200s", calls[i].method, calls[i].path, got.body)
		}
	}
	for line := range strings.Lines(s.log.String()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry["msg"] == nil {
			t.Errorf("got a log line that is not one entry: %.300q", line)
		}
	}
	if left := files(t, work); len(left) > 0 {
		t.Errorf("got files in the working directory: %q", left)
	}
	after := files(t, filepath.Dir(s.registry))
	if !slices.Equal(before, after) {
		t.Errorf("files next to the registry and in the data directory, before and after:\n%q\n%q", before, after)
	}
	t.Logf("%d payloads, %d requests, by status: %v", len(payloads), len(calls), seen)
}

// visible returns the text as it is valid in a header.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s)
}
