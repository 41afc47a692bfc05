package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/contentkey"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/remnants"
)

// storedRequest is a request with a canary in each of its texts.
type storedRequest struct {
	name, prompt, mode, key string
	session                 string
	id                      string
	run                     string // id of its orchestration, "" = none
	answers                 bool   // the agent repeats the prompt
}

func (r *storedRequest) canary() string { return "canary" + r.name }

func (r *storedRequest) body() string {
	session := ""
	if r.session != "" {
		session = fmt.Sprintf(`,"session_id":%q`, r.session)
	}
	return fmt.Sprintf(`{"content":{"prompt":%q}%s,"options":{"mode":%q}}`, r.prompt, session, r.mode)
}

// send sends a request with its key, and returns the status and the response.
func (s *testServer) send(method, path, key, body string) (int, http.Header, []byte) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url(path), strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, data
}

// decryptedCanaries returns the canaries that can be decrypted in the files of a data directory, with their
// positions. It fails if one is stored in clear.
func decryptedCanaries(t *testing.T, dir string, list []*storedRequest) map[string][]string {
	t.Helper()
	ring, err := contentkey.OpenExisting(dir)
	if err != nil {
		t.Fatal(err)
	}
	var places []string
	for _, r := range list {
		for _, place := range []string{"content decision ", "content outcome ", "answer outcome ", "content run ", "content tool_call "} {
			places = append(places, place+r.id, place+r.run)
		}
	}
	found := map[string][]string{}
	for _, remnant := range remnants.Read(t, dir, ring, places...) {
		for _, r := range list {
			if !bytes.Contains(remnant.Data, []byte(r.canary())) {
				continue
			}
			if !remnant.Decrypted {
				t.Errorf("%s: got the text of the %s request in clear", remnant.Where, r.name)
			}
			found[r.name] = append(found[r.name], strings.TrimPrefix(remnant.Where, dir))
		}
	}
	return found
}

// After DELETE, no text of a request can be read or decrypted in any file. Before it, no text can
// be read without the key.
func TestErasure_LeavesNoTextInFiles(t *testing.T) {
	t.Parallel()
	agent := startAgent(t, "counter", func(_ context.Context, task contract.Task) (contract.Result, error) {
		text, err := json.Marshal("you said: " + task.SubtaskTitle + ", I say ana@example.com")
		return contract.Result{
			Status: contract.ResultSuccess, Data: map[string]json.RawMessage{"answer": text, "large": json.RawMessage(`"` + strings.Repeat("x", 600<<10) + `"`)},
			Explanations: []string{"the prompt was " + task.SubtaskTitle},
		}, err
	})
	registry := "clients:\n" + entry("counter", "count_words", "text", agent.url) + "fallback: { policy: C }\n"
	dir := filepath.Join(t.TempDir(), "data")
	run := func(work func(s *testServer)) {
		ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
		defer stop()
		s := startOnce(ctx, t, registry, func(c *config.Config) {
			c.DataDir, c.Limits.Classify.RPS = dir, "0"
		})
		agent.trust(s)
		work(s)
		stop()
		if err := s.Wait(); err != nil {
			t.Error(err)
		}
	}
	list := []*storedRequest{
		{name: "sync", mode: "sync", key: "key-sync", session: "one", answers: true},
		{name: "async", mode: "async", key: "key-async", session: "one", answers: true},
		{name: "unmet", mode: "sync", session: "two"},
		{name: "similar", mode: "sync"},
		{name: "kept", mode: "async", key: "key-kept", session: "one", answers: true},
	}
	for _, r := range list {
		r.prompt = "count words of this text " + r.canary()
		if !r.answers {
			r.prompt = "order a pizza for tonight " + r.canary()
		}
	}
	run(func(s *testServer) {
		for _, r := range list {
			status, _, data := s.send(http.MethodPost, "/api/v1/route", r.key, r.body())
			var resp contract.Response
			if err := json.Unmarshal(data, &resp); err != nil || status >= 300 {
				t.Fatalf("%s: got status %d and error %v: %.300s", r.name, status, err, data)
			}
			r.id = resp.RequestID
			testkit.Eventually(t, "the request has ended", func() bool {
				return strings.Contains(s.get("/api/v1/requests/"+r.id), `"status":"completed"`) ||
					strings.Contains(s.get("/api/v1/requests/"+r.id), `"status":"proposed"`)
			})
		}
	})
	found := decryptedCanaries(t, dir, list)
	for _, r := range list {
		if len(found[r.name]) == 0 {
			t.Errorf("got no text of the %s request with the key, want some, because otherwise the test searches the wrong positions", r.name)
		}
	}
	checkMaskedCopies(t, dir, list)

	run(func(s *testServer) {
		for _, r := range list {
			if !r.answers {
				continue
			}
			original := s.get("/api/v1/requests/" + r.id)
			status, header, replayed := s.send(http.MethodPost, "/api/v1/route", r.key, r.body())
			if !strings.Contains(original, "ana@example.com") {
				t.Errorf("%s: GET returned %.300s, want the answer in clear", r.name, original)
			}
			if status >= 300 || header.Get("Idempotency-Replayed") != "true" || !bytes.Contains(replayed, []byte("ana@example.com")) {
				t.Errorf("%s: replay: got status %d: %.300s, want the answer in clear", r.name, status, replayed)
			}
		}
		for _, r := range list {
			if r.name == "kept" {
				continue
			}
			if status, _, data := s.send(http.MethodDelete, "/api/v1/requests/"+r.id, "", ""); status != http.StatusNoContent {
				t.Errorf("%s: DELETE: got status %d: %s", r.name, status, data)
			}
		}
	})
	found = decryptedCanaries(t, dir, list)
	if len(found["kept"]) == 0 {
		t.Error("got no text of the kept request, want it decrypted")
	}
	delete(found, "kept")
	for name, where := range found {
		t.Errorf("got the text of the erased %s request in %q, want none", name, where)
	}
	verifyAudit(t, dir)
}

// checkMaskedCopies checks that the contents of the audit log are masked, and that the unmasked
// answer is a separate content.
func checkMaskedCopies(t *testing.T, dir string, list []*storedRequest) {
	t.Helper()
	ring, err := contentkey.OpenExisting(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		masked, original := "content outcome "+r.id, "answer outcome "+r.id
		answers := 0
		for _, remnant := range remnants.Read(t, dir, ring, masked, original) {
			has := bytes.Contains(remnant.Data, []byte("ana@example.com"))
			switch {
			case strings.HasSuffix(remnant.Where, masked) && has:
				t.Errorf("%s: got an address in clear in the audit log", r.name)
			case strings.HasSuffix(remnant.Where, original) && has:
				answers++
			}
		}
		if r.answers != (answers > 0) {
			t.Errorf("%s: got %d clear answers in the audit log, want one if the agent answered", r.name, answers)
		}
	}
}

// The note of a closed ticket is entered by a person, so it is masked before it is stored.
func TestTickets_MaskNotes(t *testing.T) {
	s := startServer(t, "clients: {}\nfallback: { policy: C }\n")
	s.route(`{"content":{"prompt":"order a pizza for tonight"}}`)
	var page contract.TicketPage
	if err := json.Unmarshal([]byte(s.get("/api/v1/tickets")), &page); err != nil || len(page.Tickets) != 1 {
		t.Fatalf("got %d tickets and error %v, want 1", len(page.Tickets), err)
	}
	path := "/api/v1/tickets/" + page.Tickets[0].TicketID
	status, _, data := s.send(http.MethodPost, path+"/close", "", `{"note":"ask ana@example.com"}`)
	if status != http.StatusOK {
		t.Fatalf("got status %d: %s", status, data)
	}
	for name, text := range map[string]string{"response": string(data), "stored ticket": s.get(path)} {
		if strings.Contains(text, "ana@example.com") || !strings.Contains(text, "ask [EMAIL]") {
			t.Errorf("%s: got %s, want the address masked", name, text)
		}
	}
}

// Expired sessions cannot be decrypted in any file.
func TestRetention_ErasesSessions(t *testing.T) {
	t.Parallel()
	s := startServer(t, "clients:\n"+entry("counter", "count_words", "text", ""), func(c *config.Config) { c.Session.TTLS = 2 })
	resp := s.route(`{"content":{"prompt":"count words of this text canaryexpired"},"session_id":"one"}`)
	list := []*storedRequest{{name: "expired", id: resp.RequestID}}
	inSessions := func() bool {
		for _, where := range decryptedCanaries(t, s.core.cfg.DataDir, list)["expired"] {
			if strings.Contains(where, "SESSIONS") {
				return true
			}
		}
		return false
	}
	testkit.Eventually(t, "the session is stored", inSessions)
	testkit.Eventually(t, "the expired session cannot be decrypted", func() bool { return !inSessions() })
}

// A router whose keys were replaced does not start, and the error contains the missing key and the
// fix.
func TestStart_NamesMissingContentKey(t *testing.T) {
	dir := t.TempDir()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	s := startOnce(ctx, t, "clients: {}\n", func(c *config.Config) { c.DataDir = dir })
	stop()
	if err := s.Wait(); err != nil {
		t.Fatal(err)
	}
	ring, err := contentkey.OpenExisting(dir)
	if err != nil {
		t.Fatal(err)
	}
	const other = "dGVzdHMgZW5jcnlwdCB3aXRoIHRoaXMga2V5IG9ubHk="
	cfg := config.Default()
	cfg.DataDir, cfg.Listen, cfg.Store.Encryption.KeyEnv = dir, "127.0.0.1:0", "CONTENT_KEYS"
	cfg.Registry.File = s.registry
	start := func(keys string) error {
		server, err := Start(t.Context(), cfg, Options{LogOutput: io.Discard, LookupEnv: func(name string) (string, bool) { return keys, name == "CONTENT_KEYS" }})
		if err == nil {
			err = errors.New("the router started")
			t.Cleanup(func() { _ = server.Wait() })
		}
		return err
	}
	for keys, want := range map[string]string{
		other: "add that key there in a line of its own", "": "CONTENT_KEYS", "short": "openssl rand -base64 32",
	} {
		err := start(keys)
		if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "CONTENT_KEYS") || strings.Contains(err.Error(), "\n") {
			t.Errorf("keys %q: got error %v, want one line with %q and the variable", keys, err, want)
		}
		if keys == other && !strings.Contains(err.Error(), ring.CurrentID()) {
			t.Errorf("got error %v, want the id of the missing key", err)
		}
	}
}

// A new content key is added before the old one: data encrypted with the old key stays readable,
// and new data is encrypted with the new one.
func TestServer_ReadsContentsAfterKeyRotation(t *testing.T) {
	dir, file := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "keys")
	const first, second = "dGVzdHMgZW5jcnlwdCB3aXRoIHRoaXMga2V5IG9ubHk=", "YW5kIHdpdGggdGhpcyBvbmUgYWZ0ZXIgcm90YXRpb24="
	run := func(keys string, work func(s *testServer)) {
		t.Helper()
		if err := os.WriteFile(file, []byte(keys+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
		defer stop()
		s := startOnce(ctx, t, "clients:\n"+entry("counter", "count_words", "text", refusing), func(c *config.Config) {
			c.DataDir, c.Store.Encryption.KeyFile = dir, file
		})
		work(s)
		stop()
		if err := s.Wait(); err != nil {
			t.Error(err)
		}
	}
	var ids []string
	ask := func(s *testServer) {
		prompt := fmt.Sprintf("count words of this text canary%d", len(ids))
		ids = append(ids, s.route(`{"content":{"prompt":"`+prompt+`"}}`).RequestID)
	}
	run(first, ask)
	run(second+"\n"+first, func(s *testServer) {
		ask(s)
		for i, id := range ids {
			if got := s.get("/api/v1/decisions?request_id=" + id); !strings.Contains(got, fmt.Sprint("canary", i)) {
				t.Errorf("request %s: got %s, want its prompt", id, got)
			}
		}
	})
	for i, id := range ids {
		for k, key := range []string{first, second} {
			ring, err := contentkey.Parse(key, "test")
			if err != nil {
				t.Fatal(err)
			}
			found := slices.ContainsFunc(remnants.Read(t, dir, ring, "content decision "+id), func(r remnants.Remnant) bool {
				return bytes.Contains(r.Data, fmt.Appendf(nil, "canary%d", i))
			})
			if found != (i == k) {
				t.Errorf("request %d, key %d: got decrypted %t, want %t", i, k, found, i == k)
			}
		}
	}
}
