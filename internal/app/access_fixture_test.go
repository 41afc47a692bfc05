package app

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/config"
)

// mint makes tokens as any library of the field would, and as none should.
type mint struct{ secret []byte }

func newMint() mint { return mint{[]byte(rand.Text() + rand.Text())} }

// claims are good ones of a caller with the scopes, which over changes: nil
// takes a claim out.
func (m mint) claims(sub, scope string, over map[string]any) map[string]any {
	now := time.Now().Unix()
	c := map[string]any{
		"iss": "tests", "sub": sub, "aud": "caprouter", "scope": scope, "iat": now, "exp": now + 600, "jti": rand.Text(),
	}
	maps.Copy(c, over)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

func (m mint) token(sub, scope string, over map[string]any) string {
	return m.signed(map[string]any{"typ": "JWT", "alg": "HS256", "kid": "tests"}, m.claims(sub, scope, over))
}

func (m mint) signed(header, claims any) string {
	return m.raw(encode(header), encode(claims))
}

func encode(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// raw signs what need not be JSON.
func (m mint) raw(header, claims string) string {
	signed := b64(header) + "." + b64(claims)
	mac := hmac.New(sha256.New, m.secret)
	mac.Write([]byte(signed))
	return signed + "." + b64(string(mac.Sum(nil)))
}

func b64(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// startGuarded runs a router that takes the tokens of the mint.
func startGuarded(t *testing.T, m mint, registry string, change ...func(*config.Config)) *testServer {
	t.Helper()
	return startServer(t, registry, append([]func(*config.Config){m.guard(t)}, change...)...)
}

// guard returns a change of the configuration by which the router accepts the tokens.
func (m mint) guard(t *testing.T) func(*config.Config) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, m.secret, 0o600); err != nil {
		t.Fatal(err)
	}
	return func(c *config.Config) {
		c.Auth.Mode = config.AuthJWT
		c.Auth.Keys = []config.Key{{KID: "tests", Alg: "HS256", SecretFile: file}}
	}
}

// call is one request and what came back.
type call struct {
	method, path, token, body string
	header                    http.Header
}

type answered struct {
	status int
	header http.Header
	body   []byte
}

func (s *testServer) do(c call) answered {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), c.method, s.url(c.path), strings.NewReader(c.body))
	if err != nil {
		s.t.Fatal(err)
	}
	if c.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	maps.Copy(req.Header, c.header)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v", c.method, c.path, err)
	}
	defer resp.Body.Close()
	if c.path == mcpEvents && resp.StatusCode == http.StatusOK { // the stream has no end
		first := make([]byte, 512)
		n, _ := resp.Body.Read(first)
		return answered{resp.StatusCode, resp.Header, first[:n]}
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", c.method, c.path, err)
	}
	return answered{resp.StatusCode, resp.Header, body}
}

// alike is the answer without what is of this one request: two that are alike
// tell nobody which of two things was asked for.
func (a answered) alike() string {
	h := a.header.Clone()
	id := h.Get("X-Request-Id")
	for _, name := range []string{"X-Request-Id", "Date"} {
		h.Del(name)
	}
	return encode(map[string]any{"status": a.status, "header": h, "body": string(bytes.ReplaceAll(a.body, []byte(id), nil))})
}
