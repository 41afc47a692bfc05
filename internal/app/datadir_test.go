package app

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
)

// TestServer_OpensDataDirectoryOfEarlierVersion checks that stored data of an earlier version is
// readable: responses, open requests, idempotency keys, sessions, tickets and the hash chain of the
// audit log. testdata/olddata/README.md describes the fixture.
func TestServer_OpensDataDirectoryOfEarlierVersion(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	unpack(t, filepath.Join("testdata", "olddata", "data.tar.gz"), root)
	dir := filepath.Join(root, "data")
	recorded := readAnswers(t, filepath.Join(root, "answers.json"))

	verifyAudit(t, dir)
	if n := renewEntries(t, dir, "SESSIONS"); n != 1 {
		t.Errorf("got %d sessions, want 1", n)
	}
	if n := renewEntries(t, dir, "IDEMPOTENCY"); n != 2 {
		t.Errorf("got %d idempotency keys, want 2", n)
	}

	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	defer stop()
	down := refusing
	s := startOnce(ctx, t, "clients:\n"+entry("counter", "count_words", `"*"`, down)+
		entry("writer", "write_essay", `"*"`, down)+entry("sleeper", "translate_book", `"*"`, down)+
		"fallback: { policy: C }\n", func(c *config.Config) { c.DataDir = dir })

	for name, want := range recorded {
		if name == "open" {
			continue
		}
		var got map[string]any
		if err := json.Unmarshal([]byte(s.get("/api/v1/requests/"+want["request_id"].(string))), &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("response %s differs (-recorded +got):\n%s", name, diff)
		}
	}

	// The deadline of the open request has passed, so resuming the request ends it.
	open := "/api/v1/requests/" + recorded["open"]["request_id"].(string)
	testkit.Eventually(t, "the open request has ended", func() bool {
		return strings.Contains(s.get(open), `"status":"failed"`)
	})

	for key, name := range map[string]string{"fixture-key-1": "idempotent", "fixture-key-2": "async_idempotent"} {
		body := `{"content": {"prompt": "count words of that text"}}`
		if name == "async_idempotent" {
			body = `{"content": {"prompt": "count words of one more text"}, "options": {"mode": "async"}}`
		}
		got := replay(t, s, key, body)
		if diff := cmp.Diff(recorded[name], got); diff != "" {
			t.Errorf("replayed %s differs (-recorded +got):\n%s", name, diff)
		}
	}

	tickets := s.get("/api/v1/tickets")
	if !strings.Contains(tickets, "order a pizza for tonight") || !strings.Contains(tickets, `"count":2`) {
		t.Errorf("got tickets %s, want the one about pizza with 2 requests", tickets)
	}

	stop()
	if err := s.Wait(); err != nil {
		t.Errorf("stop: %v", err)
	}
	verifyAudit(t, dir)
}

func verifyAudit(t *testing.T, dir string) {
	t.Helper()
	signer, err := keyring.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	report, err := audit.Verify(t.Context(), audit.VerifyConfig{DataDir: dir, Signer: signer})
	if err != nil || !report.OK() {
		t.Errorf("audit log: got %+v, %v, want a valid chain", report, err)
	}
}

// renewEntries writes every entry of a bucket again and returns their number. The server deletes
// entries of these buckets by age, and the fixture is old.
func renewEntries(t *testing.T, dir, bucket string) int {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b, err := s.Bucket(t.Context(), store.BucketConfig{Name: bucket})
	if err != nil {
		t.Fatal(err)
	}
	var entries []store.Entry
	err = b.Scan(t.Context(), "", func(e store.Entry) error {
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, err := b.Update(t.Context(), e.Key, e.Value, e.Revision); err != nil {
			t.Fatal(err)
		}
	}
	return len(entries)
}

// replay sends a request with an Idempotency-Key that was used before.
func replay(t *testing.T, s *testServer, key, body string) map[string]any {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url("/api/v1/route"), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("replay of %s: got status %d, headers %v, want a replayed response", key, resp.StatusCode, resp.Header)
	}
	var answer map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

func readAnswers(t *testing.T, path string) map[string]map[string]any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var answers map[string]struct {
		Body map[string]any `json:"body"`
	}
	if err := json.Unmarshal(data, &answers); err != nil {
		t.Fatal(err)
	}
	bodies := map[string]map[string]any{}
	for name := range answers {
		bodies[name] = answers[name].Body
	}
	return bodies
}

// unpack extracts a .tar.gz file of regular files into a directory.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(zipped); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(header.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
