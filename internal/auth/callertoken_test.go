package auth_test

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
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/auth"
	"github.com/caprouter/caprouter/internal/auth/keyring"
)

func callerGrant() auth.CallerGrant {
	return auth.CallerGrant{
		Issuer: issuer, Audience: "routers", Subject: "alice", Tenant: "acme",
		Scopes: []string{"route:submit", "agent:quality_agent"}, Expires: time.Now().Add(time.Hour),
	}
}

func TestCallerToken_CarriesClaims(t *testing.T) {
	seed := sha256.Sum256([]byte("the seed of a test"))
	s, g := openSeed(t, seed[:]), callerGrant()
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
	sum := sha256.Sum256(fmt.Appendf(nil, `{"crv":"Ed25519","kty":"OKP","x":%q}`, b64(public)))
	parsed, err := jwt.NewParser(jwt.WithValidMethods([]string{"EdDSA"}), jwt.WithStrictDecoding()).
		Parse(token, func(*jwt.Token) (any, error) { return public, nil })
	if err != nil {
		t.Fatalf("parse %s: %v", token, err)
	}
	if diff := cmp.Diff(map[string]any{"typ": "at+jwt", "alg": "EdDSA", "kid": b64(sum[:])}, parsed.Header); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	claims := map[string]any(parsed.Claims.(jwt.MapClaims))
	if id, _ := claims["jti"].(string); len(id) < 22 {
		t.Errorf("jti = %q, want 128 random bits", id)
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
	if published := ed25519Key(t, s); published.Equal(public) || strings.Contains(string(s.JWKS()), b64(sum[:])) {
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
	if err := json.Unmarshal(unb64(t, strings.Split(token, ".")[1]), &claims); err != nil {
		t.Fatal(err)
	}
	if _, ok := claims["tenant"]; ok || claims["scope"] != "" {
		t.Errorf("claims = %v, want no tenant and an empty scope", claims)
	}
}

func TestCallerToken_RejectsInvalidGrants(t *testing.T) {
	s := newRouter(t)
	for _, tc := range []struct {
		name   string
		change func(*auth.CallerGrant)
		want   string
	}{
		{"no issuer", func(g *auth.CallerGrant) { g.Issuer = "" }, "no issuer"},
		{"no audience", func(g *auth.CallerGrant) { g.Audience = "" }, "no audience"},
		{"no subject", func(g *auth.CallerGrant) { g.Subject = "" }, "no subject"},
		{"a subject that is no text", func(g *auth.CallerGrant) { g.Subject = "\xff" }, "UTF-8"},
		{"a tenant that is no text", func(g *auth.CallerGrant) { g.Tenant = "\xff" }, "UTF-8"},
		{"a subject of 257 bytes", func(g *auth.CallerGrant) { g.Subject = strings.Repeat("a", 257) }, "sub is longer than 256 bytes"},
		{"a subject with a line break", func(g *auth.CallerGrant) { g.Subject = "alice\nroot" }, "sub has control characters"},
		{"a tenant of 257 bytes", func(g *auth.CallerGrant) { g.Tenant = strings.Repeat("é", 128) + "a" }, "tenant is longer than 256 bytes"},
		{"a tenant with a delete", func(g *auth.CallerGrant) { g.Tenant = "acme\x7f" }, "tenant has control characters"},
		{"an issuer of 257 bytes", func(g *auth.CallerGrant) { g.Issuer = strings.Repeat("i", 257) }, "iss is longer than 256 bytes"},
		{"an issuer with a control character", func(g *auth.CallerGrant) { g.Issuer = "i\u0085" }, "iss has control characters"},
		{"an audience of 257 bytes", func(g *auth.CallerGrant) { g.Audience = strings.Repeat("a", 257) }, "aud is longer than 256 bytes"},
		{"an audience with a tab", func(g *auth.CallerGrant) { g.Audience = "a\tb" }, "aud has control characters"},
		{"more than a verifier reads", func(g *auth.CallerGrant) {
			for i := range 999 {
				g.Scopes = append(g.Scopes, fmt.Sprint("agent:agent_", i))
			}
		}, "scope is longer than 3072 bytes"},
		{"no expiry", func(g *auth.CallerGrant) { g.Expires = time.Time{} }, "expired already"},
		{"expired", func(g *auth.CallerGrant) { g.Expires = time.Now().Add(-time.Second) }, "expired already"},
		{"a life of nothing", func(g *auth.CallerGrant) { g.Expires = time.Now() }, "expired already"},
		{"more than a day", func(g *auth.CallerGrant) { g.Expires = time.Now().Add(24*time.Hour + 2*time.Second) }, "longer than 24h"},
		{"two scopes in one", func(g *auth.CallerGrant) { g.Scopes = []string{"a admin"} }, "a scope is printable ASCII"},
		{"an empty scope", func(g *auth.CallerGrant) { g.Scopes = []string{"a", ""} }, "a scope is printable ASCII"},
		{"a scope with a quote", func(g *auth.CallerGrant) { g.Scopes = []string{`a"`} }, "a scope is printable ASCII"},
		{"a scope with a backslash", func(g *auth.CallerGrant) { g.Scopes = []string{`a\b`} }, "a scope is printable ASCII"},
		{"a scope that is not ASCII", func(g *auth.CallerGrant) { g.Scopes = []string{"ädmin"} }, "a scope is printable ASCII"},
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

// The longest token that can be issued is accepted by a verifier.
func TestCallerToken_LongestIsVerified(t *testing.T) {
	s, worst := newRouter(t), strings.Repeat(`"`, 256) // each quote is encoded in two characters
	g := auth.CallerGrant{Issuer: worst, Audience: worst, Subject: worst, Tenant: worst, Expires: time.Now().Add(time.Hour)}
	for range 3 {
		g.Scopes = append(g.Scopes, strings.Repeat("s", 1023))
	}
	token, err := s.CallerToken(g)
	if err != nil {
		t.Fatal(err)
	}
	v, err := auth.NewVerifier(auth.VerifierConfig{Audience: worst, Issuer: worst, Own: s.Ring})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(t.Context(), token); err != nil {
		t.Errorf("Verify of a token of %d bytes = %v, want the caller", len(token), err)
	}
}

// For any grant, an issued token is accepted and carries the same values.
func TestCallerToken_IsVerifiedOrNotIssued(t *testing.T) {
	s := newRouter(t)
	names := rapid.OneOf(
		rapid.StringN(0, 40, 300), rapid.StringMatching(`[a-zé]{120,140}`),
		rapid.SampledFrom([]string{"alice", strings.Repeat("a", 256), strings.Repeat("a", 257), "a\x00", "\xff", "\u200b", " "}),
	)
	scopes := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(contract.Scopes()), rapid.StringN(0, 5, 10)), 0, 4)
	made := 0
	rapid.Check(t, func(rt *rapid.T) {
		g := auth.CallerGrant{
			Issuer: issuer, Audience: "routers", Subject: names.Draw(rt, "sub"), Tenant: names.Draw(rt, "tenant"),
			Scopes: scopes.Draw(rt, "scopes"), Expires: time.Now().Add(time.Hour),
		}
		if rapid.Bool().Draw(rt, "issuer") {
			g.Issuer = names.Draw(rt, "iss")
		}
		if rapid.Bool().Draw(rt, "audience") {
			g.Audience = names.Draw(rt, "aud")
		}
		v, newErr := auth.NewVerifier(auth.VerifierConfig{Audience: g.Audience, Issuer: g.Issuer, Own: s.Ring})
		token, err := s.CallerToken(g)
		if err != nil {
			if checked := g.Check(time.Now()); checked == nil {
				rt.Fatalf("CallerToken: got error %v, but Check found none", err)
			}
			return
		}
		if newErr != nil {
			rt.Fatalf("NewVerifier: got error %v, but a token was issued for it", newErr)
		}
		made++
		got, err := v.Verify(t.Context(), token)
		if err != nil {
			rt.Fatalf("Verify of a token for %+v: got error %v", g, err)
		}
		if got.Subject != g.Subject || got.Tenant != g.Tenant || got.Issuer != g.Issuer || strings.Join(got.Scopes, " ") != strings.Join(g.Scopes, " ") {
			rt.Fatalf("got caller %+v from a token for %+v", got, g)
		}
	})
	if made == 0 {
		t.Error("got no token in any run, want some")
	}
}

// A caller token is accepted by the verifier only, not where other tokens are
// expected.
func TestCallerToken_IsVerifiedByVerifierOnly(t *testing.T) {
	dir := t.TempDir()
	s, g := openRouter(t, dir), callerGrant()
	v, err := auth.NewVerifier(auth.VerifierConfig{Audience: "routers", Issuer: issuer, Own: s.Ring})
	if err != nil {
		t.Fatal(err)
	}
	token, err := s.CallerToken(g)
	if err != nil {
		t.Fatal(err)
	}
	want := &contract.Caller{Subject: "alice", Issuer: issuer, Tenant: "acme", Scopes: g.Scopes}
	for range 2 { // the second result comes from the cache
		got, err := v.Verify(t.Context(), token)
		if err != nil {
			t.Fatalf("Verify: %v", err)
		}
		want.KeyID = got.KeyID // of a derived key
		if diff := cmp.Diff(want, got); diff != "" || got.KeyID == "" || v.IsKeyRevoked(got) {
			t.Errorf("caller (-want +got):\n%s", diff)
		}
	}
	agent, err := s.AgentToken(auth.AgentGrant{Issuer: issuer, AgentID: "routers", Subject: "alice", Expires: g.Expires})
	if err != nil {
		t.Fatal(err)
	}
	other, err := newRouter(t).CallerToken(g)
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{
		"a token for an agent that is called like the router": agent,
		"a token of a task":                            taskToken(t, s, taskGrant()),
		"a token of another router with the same name": other,
	} {
		if got, err := v.Verify(t.Context(), token); err == nil {
			t.Errorf("%s: got %+v, want an error", name, got)
		}
	}

	if _, err := keyring.Rotate(dir, false, time.Now()); err != nil {
		t.Fatal(err)
	}
	reload(t, s)
	if _, err := v.Verify(t.Context(), token); err != nil {
		t.Errorf("Verify after a rotation = %v, want the caller", err)
	}
	if _, err := keyring.Rotate(dir, true, time.Now()); err != nil {
		t.Fatal(err)
	}
	reload(t, s)
	if got, err := v.Verify(t.Context(), token); err == nil {
		t.Errorf("token of a revoked key: got %+v, want an error", got)
	}
	if token, err = s.CallerToken(g); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(t.Context(), token); err != nil {
		t.Errorf("Verify of a token of the new key = %v, want the caller immediately", err)
	}
}

func reload(t *testing.T, s *testRouter) {
	t.Helper()
	if changed, err := s.Reload(time.Now()); err != nil || !changed {
		t.Fatalf("Reload = %v, %v; want the change", changed, err)
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
