package issuance_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/internal/auth/issuance"
	"github.com/caprouter/caprouter/internal/auth/jwk"
	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/auth/weakkey"
)

func encodeBase64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// testRouter is a router with its keys and its issuer of tokens.
type testRouter struct {
	*keyring.Ring
	*issuance.Issuer
}

func newRouter(t testing.TB) *testRouter {
	t.Helper()
	keys, err := keyring.New()
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return newRouterWithAlgorithm(t, keys, jwk.EdDSA)
}

func openRouter(t testing.TB, dir string) *testRouter {
	t.Helper()
	keys, err := keyring.Open(dir)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return newRouterWithAlgorithm(t, keys, jwk.EdDSA)
}

// openRouterWithSeed returns a router whose Ed25519 key has this seed.
func openRouterWithSeed(t testing.TB, seed []byte) *testRouter {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(ed25519.NewKeyFromSeed(seed))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, keyring.File), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return openRouter(t, dir)
}

// newRouterWithAlgorithm returns a router that signs agent tokens with the algorithm.
func newRouterWithAlgorithm(t testing.TB, keys *keyring.Ring, alg string) *testRouter {
	t.Helper()
	tokens, err := issuance.New(keys, alg)
	if err != nil {
		t.Fatal(err)
	}
	return &testRouter{keys, tokens}
}

// publicKey returns the only key of an algorithm in the key set of the router.
func publicKey(t testing.TB, s *testRouter, alg string) crypto.PublicKey {
	t.Helper()
	keys, unusable, err := jwk.ParseSet(s.JWKS(), weakkey.CheckPublic)
	if err != nil || len(unusable) != 0 {
		t.Fatalf("key set %s: got %v unusable, error %v", s.JWKS(), unusable, err)
	}
	keys = slices.DeleteFunc(keys, func(k *jwk.Key) bool { return k.Algorithm != alg })
	if len(keys) != 1 {
		t.Fatalf("got %d keys for %s in %s, want 1", len(keys), alg, s.JWKS())
	}
	return keys[0].Public
}

func ed25519Key(t testing.TB, s *testRouter) ed25519.PublicKey {
	t.Helper()
	return publicKey(t, s, jwk.EdDSA).(ed25519.PublicKey)
}

func p256Key(t testing.TB, s *testRouter) *ecdsa.PublicKey {
	t.Helper()
	return publicKey(t, s, jwk.ES256).(*ecdsa.PublicKey)
}

func agentGrant() issuance.AgentGrant {
	return issuance.AgentGrant{
		Issuer: "caprouter", AgentID: "quality_agent", Subject: "alice", TaskID: "0195f3a0",
		Expires: time.Now().Add(time.Minute),
	}
}

// parse verifies the token with the JWT library.
func parse(t testing.TB, s *testRouter, token string) *jwt.Token {
	t.Helper()
	key := ed25519Key(t, s)
	parsed, err := jwt.NewParser(
		jwt.WithValidMethods([]string{"EdDSA"}), jwt.WithStrictDecoding(), jwt.WithExpirationRequired(), jwt.WithIssuedAt(),
	).Parse(token, func(*jwt.Token) (any, error) { return key, nil })
	if err != nil {
		t.Fatalf("parse %s: %v", token, err)
	}
	return parsed
}

func TestAgentToken_CarriesClaims(t *testing.T) {
	s := newRouter(t)
	kid := s.TokenKeys(time.Now()).EdDSA.ID
	for _, tc := range []struct {
		name                 string
		task, tenant, issuer string
	}{
		{"for one task", "0195f3a0", "", ""},
		{"reusable", "", "", ""},
		{"for a caller with a tenant", "0195f3a0", "acme", ""},
		{"for a caller of an issuer", "0195f3a0", "", "https://idp.example"},
		{"for a caller with both", "", "acme", "https://idp.example"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := agentGrant()
			g.TaskID, g.Tenant, g.SubjectIssuer = tc.task, tc.tenant, tc.issuer
			before := time.Now().Unix()
			token, err := s.AgentToken(g)
			if err != nil {
				t.Fatalf("AgentToken: %v", err)
			}
			parsed := parse(t, s, token)
			if diff := cmp.Diff(map[string]any{"typ": "at+jwt", "alg": "EdDSA", "kid": kid}, parsed.Header); diff != "" {
				t.Errorf("header (-want +got):\n%s", diff)
			}
			claims := map[string]any(parsed.Claims.(jwt.MapClaims))
			issued, _ := claims["iat"].(float64)
			if int64(issued) < before || int64(issued) > time.Now().Unix() {
				t.Errorf("iat = %v, want now", claims["iat"])
			}
			id, _ := claims["jti"].(string)
			if len(id) < 22 {
				t.Errorf("jti = %q, want 128 random bits", id)
			}
			delete(claims, "iat")
			delete(claims, "jti")
			want := map[string]any{
				"iss": "caprouter", "aud": "quality_agent", "sub": "alice",
				"act": map[string]any{"sub": "caprouter"}, "scope": "task:execute",
				"exp": float64(g.Expires.Unix()),
			}
			if tc.task != "" {
				want["task_id"] = tc.task
			}
			if tc.tenant != "" {
				want["tenant"] = tc.tenant
			}
			if tc.issuer != "" { // RFC 9493, section 3.2.4
				want["sub_id"] = map[string]any{"format": "iss_sub", "iss": tc.issuer, "sub": "alice"}
			}
			if diff := cmp.Diff(want, claims); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAgentToken_IsUnique(t *testing.T) {
	s, g := newRouter(t), agentGrant()
	seen := map[string]bool{}
	for range 100 {
		token, err := s.AgentToken(g)
		if err != nil {
			t.Fatal(err)
		}
		if seen[token] {
			t.Fatalf("got token %s twice, want unique tokens", token)
		}
		seen[token] = true
	}
}

func TestAgentToken_RejectsInvalidGrants(t *testing.T) {
	s := newRouter(t)
	for _, tc := range []struct {
		name   string
		change func(*issuance.AgentGrant)
		want   string
	}{
		{"no issuer", func(g *issuance.AgentGrant) { g.Issuer = "" }, "no issuer"},
		{"no agent", func(g *issuance.AgentGrant) { g.AgentID = "" }, "not an agent id"},
		{"two agents", func(g *issuance.AgentGrant) { g.AgentID = "a b" }, "not an agent id"},
		{"no subject", func(g *issuance.AgentGrant) { g.Subject = "" }, "no subject"},
		{"no expiry", func(g *issuance.AgentGrant) { g.Expires = time.Time{} }, "expired already"},
		{"expired", func(g *issuance.AgentGrant) { g.Expires = time.Now().Add(-time.Second) }, "expired already"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := agentGrant()
			tc.change(&g)
			token, err := s.AgentToken(g)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("AgentToken = %q, %v; want an error with %q", token, err, tc.want)
			}
		})
	}
}

// The claims contain any subject unchanged, except that invalid UTF-8 is replaced.
func TestAgentToken_KeepsSubject(t *testing.T) {
	s := newRouter(t)
	rapid.Check(t, func(rt *rapid.T) {
		g := agentGrant()
		g.Subject = rapid.StringN(1, 40, 200).Draw(rt, "subject")
		token, err := s.AgentToken(g)
		if err != nil {
			rt.Fatal(err)
		}
		if got := parse(t, s, token).Claims.(jwt.MapClaims)["sub"]; got != strings.ToValidUTF8(g.Subject, "\uFFFD") {
			rt.Fatalf("sub = %q, want %q", got, g.Subject)
		}
	})
}

func TestAgentToken_SignsWithES256(t *testing.T) {
	s := newRouterWithAlgorithm(t, newRouter(t).Ring, jwk.ES256)
	token, err := s.AgentToken(agentGrant())
	if err != nil {
		t.Fatal(err)
	}
	key := p256Key(t, s)
	parsed, err := jwt.NewParser(
		jwt.WithValidMethods([]string{"ES256"}), jwt.WithStrictDecoding(), jwt.WithExpirationRequired(), jwt.WithAudience("quality_agent"),
	).Parse(token, func(*jwt.Token) (any, error) { return key, nil })
	if err != nil {
		t.Fatalf("parse %s: %v", token, err)
	}
	if diff := cmp.Diff(map[string]any{"typ": "at+jwt", "alg": "ES256", "kid": s.TokenKeys(time.Now()).ES256.ID}, parsed.Header); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	// Verify the signature of RFC 7518 without the JWT library.
	parts := strings.Split(token, ".")
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	sig := decodeBase64(t, parts[2])
	if len(sig) != 64 || !ecdsa.Verify(key, digest[:], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:])) {
		t.Errorf("got the signature %x, want r and s of 32 bytes each (RFC 7518, section 3.4)", sig)
	}
}

// The algorithm applies to agent tokens. Other tokens and signatures do not change.
func TestNew_AlgorithmChangesAgentTokensOnly(t *testing.T) {
	plain := newRouter(t)
	s := newRouterWithAlgorithm(t, plain.Ring, jwk.ES256)
	if string(s.JWKS()) != string(plain.JWKS()) || s.Ring.KeyID() != plain.Ring.KeyID() {
		t.Error("got other keys than with EdDSA, want the same")
	}
	id, sig := s.Sign("audit head", []byte("head"))
	if public := ed25519Key(t, s); id != plain.Ring.KeyID() || !ed25519.Verify(public, []byte("caprouter/audit head\x00head"), sig) {
		t.Error("got another signature of data than with EdDSA, want the same")
	}
	token, err := s.CallerToken(callerGrant())
	if err != nil {
		t.Fatal(err)
	}
	for kind, got := range map[string]struct {
		token string
		want  string
	}{"caller": {token, "EdDSA"}, "task": {taskToken(t, s, taskGrant()), "HS256"}} {
		parsed, _, err := jwt.NewParser().ParseUnverified(got.token, jwt.MapClaims{})
		if err != nil || parsed.Header["alg"] != got.want {
			t.Errorf("%s token: got header %v (%v), want alg %s", kind, parsed.Header, err, got.want)
		}
	}
	if token, err = plain.AgentToken(agentGrant()); err != nil {
		t.Fatal(err)
	}
	parse(t, plain, token) // with EdDSA
}

func TestNew_RejectsOtherAlgorithms(t *testing.T) {
	s := newRouter(t)
	for _, alg := range []string{"", "none", "HS256", "RS256", "es256", "ES384"} {
		if got, err := issuance.New(s.Ring, alg); err == nil || !strings.Contains(err.Error(), "EdDSA or ES256") {
			t.Errorf("New(%q) = %v, %v; want an error with both algorithms", alg, got, err)
		}
	}
}

// Each key verifies only its own signatures.
func TestAgentToken_KeysAreSeparate(t *testing.T) {
	plain := newRouter(t)
	s := newRouterWithAlgorithm(t, plain.Ring, jwk.ES256)
	ed := ed25519Key(t, s)
	ec := p256Key(t, s)
	for name, tc := range map[string]struct {
		router *testRouter
		key    any
		alg    string
	}{
		"ES256 token, Ed25519 key": {s, ed, "EdDSA"},
		"EdDSA token, P-256 key":   {plain, ec, "ES256"},
	} {
		token, err := tc.router.AgentToken(agentGrant())
		if err != nil {
			t.Fatal(err)
		}
		for _, alg := range []string{tc.alg, "EdDSA", "ES256"} { // the algorithm of the key, and both
			parser := jwt.NewParser(jwt.WithValidMethods([]string{alg}))
			if _, err := parser.Parse(token, func(*jwt.Token) (any, error) { return tc.key, nil }); err == nil {
				t.Errorf("%s, parsed as %s: got no error, want one", name, alg)
			}
		}
	}
}

// A signature of data is not a valid signature of a token, and the reverse.
func TestAgentToken_IsNotASignatureOfData(t *testing.T) {
	s := newRouter(t)
	token, err := s.AgentToken(agentGrant())
	if err != nil {
		t.Fatal(err)
	}
	signed := token[:strings.LastIndexByte(token, '.')]
	public := ed25519Key(t, s)
	_, sig := s.Sign("", []byte(signed))
	if ed25519.Verify(public, []byte(signed), sig) {
		t.Error("got a signature of data that verifies a token, want them separate")
	}
	if s.Verify("", s.Ring.KeyID(), []byte(signed), decodeBase64(t, token[len(signed)+1:])) {
		t.Error("got the signature of a token accepted for data, want it rejected")
	}
}

func BenchmarkAgentToken(b *testing.B) {
	s, g := newRouter(b), agentGrant()
	g.Expires = time.Now().Add(time.Hour)
	for _, alg := range []string{jwk.EdDSA, jwk.ES256} {
		b.Run(alg, func(b *testing.B) {
			issuer, err := issuance.New(s.Ring, alg)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := issuer.AgentToken(g); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSignOnly measures the signature without the token, the lower bound of AgentToken.
func BenchmarkSignOnly(b *testing.B) {
	message := make([]byte, 400)
	b.Run("EdDSA", func(b *testing.B) {
		key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := key.Sign(nil, message, crypto.Hash(0)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("ES256", func(b *testing.B) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			digest := sha256.Sum256(message)
			if _, err := ecdsa.SignASN1(rand.Reader, key, digest[:]); err != nil {
				b.Fatal(err)
			}
		}
	})
}
