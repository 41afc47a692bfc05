package app

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
)

// A router with a weak secret or key does not start, and the error does not contain the secret.
func TestStart_RejectsWeakSecrets(t *testing.T) {
	dir := t.TempDir()
	good := rand.Text() + rand.Text()
	file := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	env := map[string]string{
		"EMPTY": "", "BLANK": "  ", "SHORT": good[:31], "SAME": strings.Repeat("k", 48), "PATTERN": strings.Repeat("abc123", 8),
		"KNOWN": "your-256-bit-secret-your-256-bit-secret", "GOOD": good,
	}
	for _, tc := range []struct {
		name string
		key  config.Key
		want string // "" = it starts
	}{
		{"good", config.Key{SecretEnv: "GOOD"}, ""},
		{"unset variable", config.Key{SecretEnv: "NOWHERE"}, "environment variable NOWHERE is empty"},
		{"empty", config.Key{SecretEnv: "EMPTY"}, "environment variable EMPTY is empty"},
		{"blank", config.Key{SecretEnv: "BLANK"}, "environment variable BLANK is empty"},
		{"short", config.Key{SecretEnv: "SHORT"}, "32"},
		{"repeated letter", config.Key{SecretEnv: "SAME"}, "auth.keys[0] (k)"},
		{"a pattern", config.Key{SecretEnv: "PATTERN"}, "auth.keys[0] (k)"},
		{"well-known secret", config.Key{SecretEnv: "KNOWN"}, "auth.keys[0] (k)"},
		{"file readable by all", config.Key{SecretFile: file("open", good, 0o644)}, "0644"},
		{"empty file", config.Key{SecretFile: file("empty", "", 0o600)}, "auth.keys[0] (k)"},
		{"missing file", config.Key{SecretFile: filepath.Join(dir, "none")}, "no such file"},
		{"public key writable by all", config.Key{Alg: "EdDSA", PublicKeyFile: file("pub", "x", 0o666)}, "0666"},
		{"invalid public key", config.Key{Alg: "EdDSA", PublicKeyFile: file("nopub", "not a key", 0o644)}, "auth.keys[0] (k)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := config.Default()
			cfg.Listen, cfg.DataDir, cfg.Auth.Mode = "127.0.0.1:0", t.TempDir(), config.AuthJWT
			tc.key.KID = "k"
			if tc.key.Alg == "" {
				tc.key.Alg = "HS256"
			}
			cfg.Auth.Keys = []config.Key{tc.key}
			log := &testkit.LogBuffer{}
			c, err := newServerCore(t.Context(), cfg, Options{LogOutput: log, LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}, memoryKeys(t), false)
			if err == nil {
				defer func() { _ = c.closeResources(t.Context()) }()
			}
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
			if err != nil && (strings.Contains(err.Error()+log.String(), good[:20]) || strings.Contains(err.Error(), "kkkkkkkk")) {
				t.Errorf("got the secret in the error: %v", err)
			}
		})
	}
}

// A caller above its rate gets 429 with Retry-After. The default rate of the local caller is ten
// times the rate of a caller with a token.
func TestServer_LimitsEachCaller(t *testing.T) {
	m := newTokenIssuer()
	registry := "clients:\n" + entry("counter", "count_words", "prose", "")
	const body = `{"content":{"prompt":"count words"},"options":{"dry_run":true}}`
	s := startGuarded(t, m, registry, func(c *config.Config) { c.Limits.Classify = config.Rate{RPS: "0.001", Burst: 2} })
	ask := func(s *testServer, token, path string) apiResponse {
		return s.do(call{method: "POST", path: path, token: token, body: body})
	}
	alice, bob := m.token("alice", everyScope+" agent:*", nil), m.token("bob", everyScope+" agent:*", nil)
	for i, want := range []int{200, 200, 429, 429} {
		path := []string{"/api/v1/route", "/api/v1/classify"}[i%2]
		got := ask(s, alice, path)
		if got.status != want || got.header.Get("Ratelimit-Policy") != `"classify";q=2;w=2000` {
			t.Errorf("alice's request %d: got %d, RateLimit-Policy %q", i, got.status, got.header.Get("Ratelimit-Policy"))
		}
		if after := got.header.Get("Retry-After"); want == http.StatusTooManyRequests && len(after) < 3 {
			t.Errorf("got Retry-After %q at a rate of one in a thousand seconds", after)
		}
	}
	if got := ask(s, m.token("alice", everyScope+" agent:*", nil), "/api/v1/route"); got.status != 429 {
		t.Errorf("alice with a new token: got %d, want 429", got.status)
	}
	if got := ask(s, bob, "/api/v1/route"); got.status != 200 {
		t.Errorf("bob: got %d, want 200", got.status)
	}
	auto := func(c *config.Config) { c.Limits.Classify.RPS = "auto" }
	for _, tc := range []struct {
		name, token, want, logged string
		server                    *testServer
	}{
		{"caller with a token", alice, `"classify";q=40;w=2`, "20/s, burst 40", startGuarded(t, m, registry, auto)},
		{"local caller", "", `"classify";q=400;w=2`, "200/s, burst 400", startServer(t, registry, auto)},
		{"local caller without a limit", "", "", "none", startServer(t, registry, func(c *config.Config) { c.Limits.Classify.RPS = "0" })},
		{"local caller with a rate", "", `"classify";q=40;w=4`, "10/s, burst 40", startServer(t, registry, func(c *config.Config) { c.Limits.Classify.RPS = "10" })},
	} {
		got := ask(tc.server, tc.token, "/api/v1/route")
		if policy := got.header.Get("Ratelimit-Policy"); got.status != 200 || policy != tc.want {
			t.Errorf("%s: got %d with RateLimit-Policy %q, want 200 with %q", tc.name, got.status, policy, tc.want)
		}
		if logged := fmt.Sprintf(`"classify":%q`, tc.logged); !strings.Contains(tc.server.log.String(), logged) {
			t.Errorf("%s: got log\n%s\nwant %s in it", tc.name, tc.server.log.String(), logged)
		}
	}
	bounded := startServer(t, registry, func(c *config.Config) { c.Limits.Classify = config.Rate{RPS: "0.001", Burst: 1} })
	if first, second := ask(bounded, "", "/api/v1/route"), ask(bounded, "", "/api/v1/route"); first.status != 200 || second.status != 429 {
		t.Errorf("limited local caller: got %d and %d, want 200 and 429", first.status, second.status)
	}
	var p struct{ Code string }
	if got := ask(bounded, "", "/api/v1/route"); json.Unmarshal(got.body, &p) != nil || p.Code != "rate_limited" {
		t.Errorf("got problem %s", got.body)
	}
}

func memoryKeys(t *testing.T) *keyring.Ring {
	t.Helper()
	signer, err := keyring.New()
	if err != nil {
		t.Fatal(err)
	}
	return signer
}
