package mcphost_test

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/internal/contentkey"
	"github.com/caprouter/caprouter/internal/egress"
	"github.com/caprouter/caprouter/internal/mcphost"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

const (
	oldKey = "dGVzdHMgZW5jcnlwdCB3aXRoIHRoaXMga2V5IG9ubHk="
	newKey = "c29tZSBvdGhlciBrZXkgZm9yIHRoZSBjb250ZW50cy4="
)

// refusing is the URL of a server that refuses connections.
const refusing = "http://" + testkit.RefusingAddress + "/"

var admin = &contract.Caller{Subject: "root"}

func parseKeys(t *testing.T, text string) *contentkey.Keyring {
	t.Helper()
	ring, err := contentkey.Parse(text, "the tests")
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func openBucket(t *testing.T) *store.Bucket {
	t.Helper()
	bucket, err := teststore.Open(t).Bucket(t.Context(), store.BucketConfig{Name: "MCP_SERVERS", KeyTTL: true})
	if err != nil {
		t.Fatal(err)
	}
	return bucket
}

// startHost starts a host without a registry file, which is closed at the end of the test.
func startHost(t *testing.T, bucket *store.Bucket, keys string) (*mcphost.Host, *testkit.LogBuffer) {
	t.Helper()
	redactor, err := redact.New(redact.Config{})
	if err != nil {
		t.Fatal(err)
	}
	log := &testkit.LogBuffer{}
	h, err := mcphost.New(t.Context(), mcphost.Config{
		Path: filepath.Join(t.TempDir(), "mcp.json"), Optional: true, Bucket: bucket, Keys: parseKeys(t, keys), Shared: true,
		Guard: egress.NewGuard(netip.MustParsePrefix("127.0.0.0/8")), IsAgent: func(*contract.Caller) bool { return false },
		Journal: fullJournal{}, Redactor: redactor, Meter: discardMeter{}, Logger: log.Logger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	h.Start()
	return h, log
}

func register(t *testing.T, h *mcphost.Host, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := h.Register(t.Context(), mcphost.Registration{Name: name, URL: refusing}, admin); err != nil {
			t.Fatal(err)
		}
	}
}

// blockedServers returns the errors of the servers that are blocked, and the names of the others.
func blockedServers(h *mcphost.Host) (blocked map[string]string, others []string) {
	blocked = map[string]string{}
	servers := h.Servers()
	for i := range servers {
		s := &servers[i]
		if s.Origin == gateway.OriginRegistration && s.Status == gateway.StatusError && s.State == gateway.StateBlocked {
			blocked[s.Name] = s.Error
		} else {
			others = append(others, s.Name)
		}
	}
	return blocked, others
}

func codeOf(err error) contract.Code {
	failed, ok := errors.AsType[*contract.Error](err)
	if !ok {
		return ""
	}
	return failed.Code
}

// A record that cannot be read, or that is not permitted any more, does not affect others. Its
// server is shown and can be removed.
func TestHost_SkipsUnusableRegistrations(t *testing.T) {
	bucket := openBucket(t)
	first, _ := startHost(t, bucket, oldKey)
	register(t, first, "good", "later.good")
	good, err := bucket.Get(t.Context(), "server.good")
	if err != nil {
		t.Fatal(err)
	}
	seal := func(key, name, content string) []byte {
		data := fmt.Sprintf(content, name)
		return parseKeys(t, key).Seal([]byte(data), []byte("caprouter MCP server\x00"+name))
	}
	const valid = `{"registration":{"name":"%s","url":"http://10.0.0.1/"},"at":"2026-01-02T15:04:05Z"}`
	for name, value := range map[string][]byte{
		"garbage":   []byte("{}"),
		"moved":     good.Value,
		"newer":     seal(oldKey, "newer", `{"registration":{"name":"%s","url":"http://127.0.0.1/"},"only_tools":["a"],"at":"2026-01-02T15:04:05Z"}`),
		"other_key": seal(newKey, "other_key", valid),
		"private":   seal(oldKey, "private", valid),
		"-no_name":  seal(oldKey, "-no_name", valid),
	} {
		if _, err := bucket.Put(t.Context(), "server."+name, value); err != nil {
			t.Fatal(err)
		}
	}

	h, log := startHost(t, bucket, oldKey)
	blocked, others := blockedServers(h)
	if diff := cmp.Diff([]string{"good", "later.good"}, others); diff != "" {
		t.Errorf("servers that can be used (-want +got):\n%s", diff)
	}
	want := map[string]string{"garbage": "cannot be read", "moved": "cannot be read", "newer": "cannot be read", "other_key": "cannot be read", "private": "not permitted any more: url "}
	for name, text := range want {
		if !strings.Contains(blocked[name], text) {
			t.Errorf("%s: got the error %q, want %q", name, blocked[name], text)
		}
		if !strings.Contains(log.String(), `"a registered MCP server is not used","server":"`+name+`"`) {
			t.Errorf("%s: got no line in the log:\n%s", name, log)
		}
	}
	if len(blocked) != len(want) {
		t.Errorf("got %v, want %d servers", blocked, len(want))
	}
	if info, ok := h.WaitServer(t.Context(), "newer"); !ok || info.State != gateway.StateBlocked {
		t.Errorf("got %+v, want the blocked server", info)
	}
	replaced := mcphost.Registration{Name: "other_key", URL: refusing}
	if _, created, err := h.Replace(t.Context(), replaced, admin); err != nil || created {
		t.Errorf("replace: got created %t and %v, want an existing registration replaced", created, err)
	}
	if blocked, _ := blockedServers(h); blocked["other_key"] != "" {
		t.Errorf("got %q, want the replaced server used", blocked["other_key"])
	}
	for name := range want {
		if _, err := h.Register(t.Context(), mcphost.Registration{Name: name, URL: refusing}, admin); codeOf(err) != contract.CodeConflict {
			t.Errorf("%s: got %v, want a conflict", name, err)
		}
		if err := h.Remove(t.Context(), name, admin); err != nil {
			t.Errorf("%s: got %v, want it removed", name, err)
		}
		register(t, h, name)
	}
	if blocked, _ := blockedServers(h); len(blocked) > 0 {
		t.Errorf("got %v, want no server blocked", blocked)
	}
}

// After a rotation, the first start encrypts the registrations with the new key, so that the
// older one can be removed.
func TestHost_SealsRegistrationsAfterRotation(t *testing.T) {
	bucket := openBucket(t)
	for i, keys := range []string{oldKey, newKey + "\n" + oldKey, newKey} {
		h, _ := startHost(t, bucket, keys)
		if i == 0 {
			register(t, h, "one", "two")
		}
		if blocked, others := blockedServers(h); len(blocked) > 0 || len(others) != 2 {
			t.Errorf("keyring %d: got %v blocked and %v, want both servers", i, blocked, others)
		}
	}
}

// A process that has missed the deletion of a record removes the server later.
func TestHost_ReconcilesWithStore(t *testing.T) {
	bucket := openBucket(t)
	h, _ := startHost(t, bucket, oldKey)
	register(t, h, "kept", "deleted")
	if err := bucket.Delete(t.Context(), "server.deleted"); err != nil {
		t.Fatal(err)
	}
	if err := mcphost.Reconcile(h, t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, others := blockedServers(h); len(others) != 1 || others[0] != "kept" {
		t.Errorf("got %v, want the other server", others)
	}
}

// Invalid registrations are not stored, and the number of the others is limited.
func TestHost_RejectsRegistrations(t *testing.T) {
	h, _ := startHost(t, openBucket(t), oldKey)
	for name, r := range map[string]mcphost.Registration{
		"variable": {Name: "a", URL: refusing, Headers: map[string]string{"A": "${HOME}"}},
		"name":     {Name: "a=b", URL: refusing},
		"command":  {Name: "a", Type: "stdio", URL: refusing},
		"address":  {Name: "a", URL: "http://10.0.0.1/"},
	} {
		if _, err := h.Register(t.Context(), r, admin); codeOf(err) != contract.CodeInvalidRequest {
			t.Errorf("%s: got %v, want invalid_request", name, err)
		}
	}
	for _, name := range []string{"a", "a=b", ""} {
		if err := h.Remove(t.Context(), name, admin); codeOf(err) != contract.CodeNotFound {
			t.Errorf("remove %q: got %v, want not_found", name, err)
		}
	}
	for i := range 100 {
		register(t, h, fmt.Sprint("a", i))
	}
	if _, err := h.Register(t.Context(), mcphost.Registration{Name: "b", URL: refusing}, admin); codeOf(err) != contract.CodeConflict {
		t.Errorf("got %v, want a conflict", err)
	}
	if _, _, err := h.Replace(t.Context(), mcphost.Registration{Name: "b", URL: refusing}, admin); codeOf(err) != contract.CodeConflict {
		t.Errorf("replace: got %v, want a conflict", err)
	}
	if _, created, err := h.Replace(t.Context(), mcphost.Registration{Name: "a7", URL: refusing}, admin); err != nil || created {
		t.Errorf("got created %t and %v, want the registration replaced", created, err)
	}
}

// A header that cannot be sent is named by a pointer, without its value.
func TestHost_RejectsHeaders(t *testing.T) {
	h, _ := startHost(t, openBucket(t), oldKey)
	long := strings.Repeat("v", 200<<10)
	_, err := h.Register(t.Context(), mcphost.Registration{Name: "a", URL: refusing, Headers: map[string]string{
		"A/B": "x", "Content-Length": "1", "Host": "h", "X-Long": long, "X-Most": long[:8<<10], strings.Repeat("N", 129): "x",
	}}, admin)
	failed, ok := errors.AsType[*contract.Error](err)
	if !ok || failed.Code != contract.CodeInvalidRequest {
		t.Fatalf("got %v, want invalid_request", err)
	}
	want := []contract.ErrorDetail{
		{Pointer: "/headers/A~1B", Detail: `"A/B" is not the name of a header`},
		{Pointer: "/headers/Content-Length", Detail: "the header Content-Length is set by the connection: remove it"},
		{Pointer: "/headers/Host", Detail: "the header Host is set by the connection: remove it"},
		{Pointer: "/headers/" + strings.Repeat("N", 129), Detail: "the name of a header has 129 bytes, at most 128"},
		{Pointer: "/headers/X-Long", Detail: "the value of the header X-Long has 204800 bytes, at most 8192"},
	}
	if diff := cmp.Diff(want, failed.Details); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
}

// While the store does not answer, the registrations stay as they are.
func TestHost_KeepsRegistrationsWithoutStore(t *testing.T) {
	s := teststore.Open(t)
	bucket, err := s.Bucket(t.Context(), store.BucketConfig{Name: "MCP_SERVERS", KeyTTL: true})
	if err != nil {
		t.Fatal(err)
	}
	h, _ := startHost(t, bucket, oldKey)
	register(t, h, "kept")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Register(t.Context(), mcphost.Registration{Name: "new", URL: refusing}, admin); codeOf(err) != contract.CodeOverloaded {
		t.Errorf("register: got %v, want overloaded", err)
	}
	if err := h.Remove(t.Context(), "kept", admin); codeOf(err) != contract.CodeOverloaded {
		t.Errorf("remove: got %v, want overloaded", err)
	}
	if _, others := blockedServers(h); len(others) != 1 || others[0] != "kept" {
		t.Errorf("got %v, want the stored server", others)
	}
}
