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

// tokenIssuer signs valid and invalid tokens.
type tokenIssuer struct{ secret []byte }

func newTokenIssuer() tokenIssuer { return tokenIssuer{[]byte(rand.Text() + rand.Text())} }

// claims returns valid claims of a caller with the scopes, changed by over; nil removes a claim.
func (m tokenIssuer) claims(sub, scope string, over map[string]any) map[string]any {
	now := time.Now().Unix()
	c := map[string]any{
		"iss": "tests", "sub": sub, "aud": "caprouter", "scope": scope, "iat": now, "exp": now + 600, "jti": rand.Text(),
	}
	maps.Copy(c, over)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

func (m tokenIssuer) token(sub, scope string, over map[string]any) string {
	return m.signed(map[string]any{"typ": "JWT", "alg": "HS256", "kid": "tests"}, m.claims(sub, scope, over))
}

func (m tokenIssuer) signed(header, claims any) string {
	return m.raw(encode(header), encode(claims))
}

func encode(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// raw signs a header and claims that need not be JSON.
func (m tokenIssuer) raw(header, claims string) string {
	signed := b64(header) + "." + b64(claims)
	mac := hmac.New(sha256.New, m.secret)
	mac.Write([]byte(signed))
	return signed + "." + b64(string(mac.Sum(nil)))
}

func b64(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// startGuarded runs a router that accepts the tokens of the issuer.
func startGuarded(t *testing.T, m tokenIssuer, registry string, change ...func(*config.Config)) *testServer {
	t.Helper()
	return startServer(t, registry, append([]func(*config.Config){m.guard(t)}, change...)...)
}

// guard returns a change of the configuration with which the router accepts the tokens.
func (m tokenIssuer) guard(t *testing.T) func(*config.Config) {
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

// call is one request.
type call struct {
	method, path, token, body string
	header                    http.Header
}

type apiResponse struct {
	status int
	header http.Header
	body   []byte
}

func (s *testServer) do(c call) apiResponse {
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
	if c.path == mcpEvents && resp.StatusCode == http.StatusOK { // the stream does not end
		first := make([]byte, 512)
		n, _ := resp.Body.Read(first)
		return apiResponse{resp.StatusCode, resp.Header, first[:n]}
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", c.method, c.path, err)
	}
	return apiResponse{resp.StatusCode, resp.Header, body}
}

// comparableText returns the response without the members that differ for each request. Two
// equal texts do not reveal which of two resources was requested.
func (a apiResponse) comparableText() string {
	h := a.header.Clone()
	id := h.Get("X-Request-Id")
	for _, name := range []string{"X-Request-Id", "Date"} {
		h.Del(name)
	}
	return encode(map[string]any{"status": a.status, "header": h, "body": string(bytes.ReplaceAll(a.body, []byte(id), nil))})
}
