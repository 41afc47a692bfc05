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

	"github.com/caprouter/caprouter/internal/auth"
)

func TestValidate_RejectsInvalidAuthKeys(t *testing.T) {
	key := func(text string) string { return "auth: { mode: jwt, keys: [" + text + "] }\n" }
	issuer := func(text string) string { return "auth: { mode: jwt, issuers: [" + text + "] }\n" }
	for _, tc := range []struct{ name, content, want string }{
		{"another mode", "auth: { mode: basic }\n", `auth.mode: must be none or jwt, got "basic"`},
		{"no issuer", "auth: { issuer: \"\" }\n", "auth.issuer: must not be empty"},
		{"no audience", "auth: { audience: \"\" }\n", "auth.audience: must not be empty"},
		{"keys nobody looks at", "auth: { keys: [{ kid: a, alg: EdDSA, public_key_file: a.pub }] }\n", "use auth.mode jwt"},
		{"an unknown key of a key", key("{ kid: a, algo: EdDSA }"), `unknown key "algo"`},
		{"no kid", key("{ alg: EdDSA, public_key_file: a.pub }"), "auth.keys[0].kid: must not be empty"},
		{"an algorithm that is none", key("{ kid: a, alg: none, public_key_file: a.pub }"), `auth.keys[0].alg: must be EdDSA, ES256, RS256 or HS256, got "none"`},
		{"nothing to verify with", key("{ kid: a, alg: EdDSA }"), "auth.keys[0]: name exactly one of"},
		{"two things to verify with", key("{ kid: a, alg: HS256, secret_env: A, secret_file: b }"), "auth.keys[0]: name exactly one of"},
		{"a secret for EdDSA", key("{ kid: a, alg: EdDSA, secret_env: A }"), "HS256 takes secret_env or secret_file"},
		{"a public key for HS256", key("{ kid: a, alg: HS256, public_key_file: a.pub }"), "HS256 takes secret_env or secret_file"},
		{"an issuer without a name", issuer("{ jwks_url: \"https://idp.example\" }"), "auth.issuers[0].issuer: must not be empty"},
		{"keys over plain http", issuer("{ issuer: i, jwks_url: \"http://idp.example/keys\" }"), "use https"},
		{"keys at no address", issuer("{ issuer: i, jwks_url: keys.json }"), "is not an absolute https URL"},
		{"a password in an address", issuer("{ issuer: i, jwks_url: \"https://u:p@idp.example\" }"), "must not contain a user name or password"},
		{"half of tls", "tls: { cert_file: a.crt }\n", "cert_file and key_file belong together"},
		{"listening outside without tokens", "listen: 0.0.0.0:8080\n", "or set auth.mode jwt"},
		{"a rate that is no number", "limits: { classify: { rps: often } }\n", `limits.classify.rps: "often" is not auto`},
		{"a negative rate", "limits: { classify: { rps: -1 } }\n", "limits.classify.rps"},
		{"a burst of nothing", "limits: { fallback_answer: { burst: 0 } }\n", "limits.fallback_answer.burst: must be from 1 to 1000000, got 0"},
		{"a negative budget", "limits: { llm_tokens_per_hour: -1 }\n", "limits.llm_tokens_per_hour"},
		{"a budget for no call", "limits: { llm_tokens_per_hour: 300 }\n", "so the model would never be asked"},
		{"no range", "dispatch: { allow_private: [everything] }\n", `dispatch.allow_private: "everything" is not a range`},
		{"an address within a range", "dispatch: { allow_private: [10.1.2.3/16] }\n", "the range is 10.1.0.0/16"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg, err := LoadConfig(writeFile(t, "caprouter.yaml", tc.content), noEnv)
			if err == nil {
				err = cfg.Validate()
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
	for _, good := range []string{
		"listen: 0.0.0.0:8443\nauth: { mode: jwt }\n",
		"limits: { classify: { rps: 0.5, burst: 3 }, fallback_answer: { rps: 0 } }\n",
		"dispatch: { allow_private: [10.0.0.0/8, 192.168.1.7, \"fd00::/8\"] }\n",
		issuer("{ issuer: i, jwks_url: \"http://127.0.0.1:9000/keys\" }"),
	} {
		cfg, err := LoadConfig(writeFile(t, "caprouter.yaml", good), noEnv)
		if err == nil {
			err = cfg.Validate()
		}
		if err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	if _, err := LoadConfig(writeFile(t, "caprouter.yaml", "listen: 127.0.0.1:0\n"), func(name string) (string, bool) { return "x", name == "CAPROUTER_AUTH_KEYS" }); err == nil || !strings.Contains(err.Error(), "CAPROUTER_AUTH_KEYS: a list of sections can only be written in the file") {
		t.Errorf("a list of sections in the environment: got %v", err)
	}
}

// A router with a secret or a key that is as good as none does not start, and
// does not tell the secret.
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
		key  KeyConfig
		want string // "" = it starts
	}{
		{"good", KeyConfig{SecretEnv: "GOOD"}, ""},
		{"not there", KeyConfig{SecretEnv: "NOWHERE"}, "environment variable NOWHERE is empty"},
		{"empty", KeyConfig{SecretEnv: "EMPTY"}, "environment variable EMPTY is empty"},
		{"blank", KeyConfig{SecretEnv: "BLANK"}, "environment variable BLANK is empty"},
		{"short", KeyConfig{SecretEnv: "SHORT"}, "32"},
		{"one letter", KeyConfig{SecretEnv: "SAME"}, "auth.keys[0] (k)"},
		{"a pattern", KeyConfig{SecretEnv: "PATTERN"}, "auth.keys[0] (k)"},
		{"well known", KeyConfig{SecretEnv: "KNOWN"}, "auth.keys[0] (k)"},
		{"a file everybody reads", KeyConfig{SecretFile: file("open", good, 0o644)}, "0644"},
		{"an empty file", KeyConfig{SecretFile: file("empty", "", 0o600)}, "auth.keys[0] (k)"},
		{"no file", KeyConfig{SecretFile: filepath.Join(dir, "none")}, "no such file"},
		{"a public key everybody writes", KeyConfig{Alg: "EdDSA", PublicKeyFile: file("pub", "x", 0o666)}, "0666"},
		{"no public key", KeyConfig{Alg: "EdDSA", PublicKeyFile: file("nopub", "not a key", 0o644)}, "auth.keys[0] (k)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.Listen, cfg.DataDir, cfg.Auth.Mode = "127.0.0.1:0", t.TempDir(), authJWT
			tc.key.KID = "k"
			if tc.key.Alg == "" {
				tc.key.Alg = "HS256"
			}
			cfg.Auth.Keys = []KeyConfig{tc.key}
			log := &lockedBuffer{}
			c, err := newCore(t.Context(), cfg, Options{LogOutput: log, LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}, memorySigner(t), newStore)
			if err == nil {
				defer func() { _ = c.closeResources(t.Context()) }()
			}
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
			if err != nil && (strings.Contains(err.Error()+log.String(), good[:20]) || strings.Contains(err.Error(), "kkkkkkkk")) {
				t.Errorf("the secret is told: %v", err)
			}
		})
	}
}

// A caller over its rate gets 429 with Retry-After. The default rate of the local
// caller is ten times the rate of a caller with a token.
func TestServer_LimitsEachCaller(t *testing.T) {
	m := newMint()
	registry := "clients:\n" + entry("counter", "count_words", "prose", "")
	const body = `{"content":{"prompt":"count words"},"options":{"dry_run":true}}`
	s := startGuarded(t, m, registry, func(c *Config) { c.Limits.Classify = RateConfig{RPS: "0.001", Burst: 2} })
	ask := func(s *testServer, token, path string) answered {
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
			t.Errorf("Retry-After %q, with one in a thousand seconds", after)
		}
	}
	if got := ask(s, m.token("alice", everyScope+" agent:*", nil), "/api/v1/route"); got.status != 429 {
		t.Errorf("alice with a new token: got %d, want 429", got.status)
	}
	if got := ask(s, bob, "/api/v1/route"); got.status != 200 {
		t.Errorf("bob: got %d, want 200", got.status)
	}
	auto := func(c *Config) { c.Limits.Classify.RPS = "auto" }
	for _, tc := range []struct {
		name, token, want, logged string
		server                    *testServer
	}{
		{"a caller with a token", alice, `"classify";q=40;w=2`, "20/s, burst 40", startGuarded(t, m, registry, auto)},
		{"the local caller", "", `"classify";q=400;w=2`, "200/s, burst 400", startServer(t, registry, auto)},
		{"the local caller without a limit", "", "", "none", startServer(t, registry, func(c *Config) { c.Limits.Classify.RPS = "0" })},
		{"the local caller with a rate", "", `"classify";q=40;w=4`, "10/s, burst 40", startServer(t, registry, func(c *Config) { c.Limits.Classify.RPS = "10" })},
	} {
		got := ask(tc.server, tc.token, "/api/v1/route")
		if policy := got.header.Get("Ratelimit-Policy"); got.status != 200 || policy != tc.want {
			t.Errorf("%s: got %d with RateLimit-Policy %q, want 200 with %q", tc.name, got.status, policy, tc.want)
		}
		if logged := fmt.Sprintf(`"classify":%q`, tc.logged); !strings.Contains(tc.server.log.String(), logged) {
			t.Errorf("%s: got log\n%s\nwant %s in it", tc.name, tc.server.log.String(), logged)
		}
	}
	bounded := startServer(t, registry, func(c *Config) { c.Limits.Classify = RateConfig{RPS: "0.001", Burst: 1} })
	if first, second := ask(bounded, "", "/api/v1/route"), ask(bounded, "", "/api/v1/route"); first.status != 200 || second.status != 429 {
		t.Errorf("a limited local caller: got %d and %d, want 200 and 429", first.status, second.status)
	}
	var p struct{ Code string }
	if got := ask(bounded, "", "/api/v1/route"); json.Unmarshal(got.body, &p) != nil || p.Code != "rate_limited" {
		t.Errorf("the problem is %s", got.body)
	}
}

func memorySigner(t *testing.T) *auth.Signer {
	t.Helper()
	signer, err := auth.NewSigner()
	if err != nil {
		t.Fatal(err)
	}
	return signer
}
