package issuance_test

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/auth/issuance"
)

func callerGrant() issuance.CallerGrant {
	return issuance.CallerGrant{
		Issuer: issuer, Audience: "routers", Subject: "alice", Tenant: "acme",
		Scopes: []string{"route:submit", "agent:quality_agent"}, Expires: time.Now().Add(time.Hour),
	}
}

func TestCallerToken_CarriesClaims(t *testing.T) {
	seed := sha256.Sum256([]byte("the seed of a test"))
	s, g := openRouterWithSeed(t, seed[:]), callerGrant()
	token, err := s.CallerToken(g)
	if err != nil {
		t.Fatalf("CallerToken: %v", err)
	}
	// Derive the key from the seed, as an attacker with the seed could.
	derived, err := hkdf.Key(sha256.New, seed[:], nil, "caprouter caller token v1", ed25519.SeedSize)
	if err != nil {
		t.Fatal(err)
	}
	public := ed25519.NewKeyFromSeed(derived).Public().(ed25519.PublicKey)
	sum := sha256.Sum256(fmt.Appendf(nil, `{"crv":"Ed25519","kty":"OKP","x":%q}`, encodeBase64(public)))
	parsed, err := jwt.NewParser(jwt.WithValidMethods([]string{"EdDSA"}), jwt.WithStrictDecoding()).
		Parse(token, func(*jwt.Token) (any, error) { return public, nil })
	if err != nil {
		t.Fatalf("parse %s: %v", token, err)
	}
	if diff := cmp.Diff(map[string]any{"typ": "at+jwt", "alg": "EdDSA", "kid": encodeBase64(sum[:])}, parsed.Header); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	claims := map[string]any(parsed.Claims.(jwt.MapClaims))
	if id, _ := claims["jti"].(string); len(id) < 22 {
		t.Errorf("got jti %q, want 128 random bits", id)
	}
	delete(claims, "jti")
	delete(claims, "iat")
	want := map[string]any{
		"iss": issuer, "aud": "routers", "sub": "alice", "scope": "route:submit agent:quality_agent",
		"tenant": "acme", "exp": float64(g.Expires.Unix()),
	}
	if diff := cmp.Diff(want, claims); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if published := ed25519Key(t, s); published.Equal(public) || strings.Contains(string(s.JWKS()), encodeBase64(sum[:])) {
		t.Error("got the key of caller tokens in the key set, so that agents would accept them")
	}
}

func TestCallerToken_OmitsEmptyTenant(t *testing.T) {
	g := callerGrant()
	g.Tenant, g.Scopes = "", nil
	token, err := newRouter(t).CallerToken(g)
	if err != nil {
		t.Fatal(err)
	}
	var claims map[string]any
	if err := json.Unmarshal(decodeBase64(t, strings.Split(token, ".")[1]), &claims); err != nil {
		t.Fatal(err)
	}
	if _, ok := claims["tenant"]; ok || claims["scope"] != "" {
		t.Errorf("got claims %v, want no tenant and an empty scope", claims)
	}
}

func TestCallerToken_RejectsInvalidGrants(t *testing.T) {
	s := newRouter(t)
	for _, tc := range []struct {
		name   string
		change func(*issuance.CallerGrant)
		want   string
	}{
		{"no issuer", func(g *issuance.CallerGrant) { g.Issuer = "" }, "no issuer"},
		{"no audience", func(g *issuance.CallerGrant) { g.Audience = "" }, "no audience"},
		{"no subject", func(g *issuance.CallerGrant) { g.Subject = "" }, "no subject"},
		{"subject is not UTF-8", func(g *issuance.CallerGrant) { g.Subject = "\xff" }, "UTF-8"},
		{"tenant is not UTF-8", func(g *issuance.CallerGrant) { g.Tenant = "\xff" }, "UTF-8"},
		{"subject of 257 bytes", func(g *issuance.CallerGrant) { g.Subject = strings.Repeat("a", 257) }, "sub is longer than 256 bytes"},
		{"subject with a line break", func(g *issuance.CallerGrant) { g.Subject = "alice\nroot" }, "sub has control characters"},
		{"tenant of 257 bytes", func(g *issuance.CallerGrant) { g.Tenant = strings.Repeat("é", 128) + "a" }, "tenant is longer than 256 bytes"},
		{"tenant with a delete character", func(g *issuance.CallerGrant) { g.Tenant = "acme\x7f" }, "tenant has control characters"},
		{"issuer of 257 bytes", func(g *issuance.CallerGrant) { g.Issuer = strings.Repeat("i", 257) }, "iss is longer than 256 bytes"},
		{"issuer with a control character", func(g *issuance.CallerGrant) { g.Issuer = "i\u0085" }, "iss has control characters"},
		{"audience of 257 bytes", func(g *issuance.CallerGrant) { g.Audience = strings.Repeat("a", 257) }, "aud is longer than 256 bytes"},
		{"audience with a tab", func(g *issuance.CallerGrant) { g.Audience = "a\tb" }, "aud has control characters"},
		{"too many scopes", func(g *issuance.CallerGrant) {
			for i := range 999 {
				g.Scopes = append(g.Scopes, fmt.Sprint("agent:agent_", i))
			}
		}, "scope is longer than 3072 bytes"},
		{"no expiry", func(g *issuance.CallerGrant) { g.Expires = time.Time{} }, "expired already"},
		{"expired", func(g *issuance.CallerGrant) { g.Expires = time.Now().Add(-time.Second) }, "expired already"},
		{"lifetime of zero", func(g *issuance.CallerGrant) { g.Expires = time.Now() }, "expired already"},
		{"lifetime of more than a day", func(g *issuance.CallerGrant) { g.Expires = time.Now().Add(24*time.Hour + 2*time.Second) }, "more than 24h"},
		{"two scopes in one string", func(g *issuance.CallerGrant) { g.Scopes = []string{"a admin"} }, "a scope is printable ASCII"},
		{"empty scope", func(g *issuance.CallerGrant) { g.Scopes = []string{"a", ""} }, "a scope is printable ASCII"},
		{"scope with a quote", func(g *issuance.CallerGrant) { g.Scopes = []string{`a"`} }, "a scope is printable ASCII"},
		{"scope with a backslash", func(g *issuance.CallerGrant) { g.Scopes = []string{`a\b`} }, "a scope is printable ASCII"},
		{"scope is not ASCII", func(g *issuance.CallerGrant) { g.Scopes = []string{"ädmin"} }, "a scope is printable ASCII"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := callerGrant()
			tc.change(&g)
			if token, err := s.CallerToken(g); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("CallerToken = %q, %v; want an error with %q", token, err, tc.want)
			}
		})
	}
}

func BenchmarkCallerToken(b *testing.B) {
	s, g := newRouter(b), callerGrant()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.CallerToken(g); err != nil {
			b.Fatal(err)
		}
	}
}
