package app

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/contentkey"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

const keyOfTests = "dGVzdHMgZW5jcnlwdCB3aXRoIHRoaXMga2V5IG9ubHk=\n"

func writeSecret(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReplicas_ShareSigningKeys(t *testing.T) {
	srv, keys, m := teststore.Serve(t, t.TempDir(), -1), writeSecret(t, keyOfTests), newTokenIssuer()
	var servers [2]*testServer
	for i := range servers {
		servers[i] = startGuarded(t, m, "clients: {}\n", func(c *config.Config) {
			c.Store.URL, c.Store.Encryption.KeyFile = srv.URL, keys
			c.Store.Retention.MaxBytes = "256MiB"
		})
	}
	for i, s := range servers {
		other := servers[1-i]
		kid := `"kid":"` + other.core.keys.KeyID() + `"`
		testkit.Eventually(t, "the key set contains the key of the other replica", func() bool {
			return strings.Contains(s.get("/.well-known/jwks.json"), kid)
		})
		token, err := MintCallerToken(other.core.cfg, TokenGrant{Subject: "alice", Scopes: []string{contract.ScopeRouteSubmit}, TTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.do(call{method: "POST", path: "/api/v1/route", token: token, body: `{"content":{"prompt":"hello"},"options":{"dry_run":true}}`}); got.status != 200 {
			t.Errorf("token of the other replica: got %d %s, want 200", got.status, got.body)
		}
		task, err := other.core.issuer.TaskToken(s.core.cfg.Auth.Issuer, contract.TaskGrant{
			AgentID: "a", RequestID: "r", TaskID: "t", Expires: time.Now().Add(time.Hour),
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.core.verifyTaskToken(task); err != nil {
			t.Errorf("callback token of the other replica: %v", err)
		}
	}
}

func TestReplicas_RequireSameContentKey(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	onServer := func(c *config.Config) {
		c.Store.URL = srv.URL
		c.Store.Retention.MaxBytes = "256MiB"
	}
	first := startServer(t, "clients: {}\n", onServer)
	start := func(change func(*config.Config)) (string, error) {
		t.Helper()
		cfg := first.core.cfg
		cfg.DataDir = filepath.Join(t.TempDir(), "data")
		cfg.Store.Encryption = config.Encryption{}
		change(&cfg)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		s, err := Start(ctx, cfg, Options{LogOutput: &testkit.LogBuffer{}, LookupEnv: noEnv})
		if err == nil {
			stop()
			err = s.Wait()
		}
		return cfg.DataDir, err
	}
	for name, change := range map[string]func(*config.Config){
		"no key":      func(*config.Config) {},
		"another key": func(c *config.Config) { c.Store.Encryption.KeyFile = writeSecret(t, keyOfTests) },
	} {
		dir, err := start(change)
		if err == nil || !strings.Contains(err.Error(), first.core.persistence.contentKeys.CurrentID()) ||
			!strings.Contains(err.Error(), "store.encryption.key_file") {
			t.Errorf("%s: got error %v, want the start rejected with the configuration key", name, err)
		}
		if _, err := os.Stat(filepath.Join(dir, contentkey.FileName)); err == nil {
			t.Errorf("%s: got a key created", name)
		}
	}
	key, err := os.ReadFile(filepath.Join(first.core.cfg.DataDir, contentkey.FileName))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := start(func(c *config.Config) { c.Store.Encryption.KeyFile = writeSecret(t, string(key)) }); err != nil {
		t.Errorf("copy of the first replica's key: got error %v, want a start", err)
	}
}
