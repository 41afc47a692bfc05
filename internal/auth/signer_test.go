package auth_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/internal/auth"
)

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func newSigner(t testing.TB) *auth.Signer {
	t.Helper()
	s, err := auth.NewSigner()
	if err != nil {
		t.Fatalf("NewSigner: %v", err)
	}
	return s
}

func grant() auth.AgentGrant {
	return auth.AgentGrant{
		Issuer: "caprouter", AgentID: "quality_agent", Subject: "alice", TaskID: "0195f3a0",
		Expires: time.Now().Add(time.Minute),
	}
}

// jwk returns the only Ed25519 key of the signer's key set.
func jwk(t testing.TB, s *auth.Signer) (member map[string]string, key ed25519.PublicKey) {
	t.Helper()
	member = onlyMember(t, s, "OKP")
	return member, unb64(t, member["x"])
}

// parse verifies the token with an independent library.
func parse(t testing.TB, s *auth.Signer, token string) *jwt.Token {
	t.Helper()
	_, key := jwk(t, s)
	parsed, err := jwt.NewParser(
		jwt.WithValidMethods([]string{"EdDSA"}), jwt.WithStrictDecoding(), jwt.WithExpirationRequired(), jwt.WithIssuedAt(),
	).Parse(token, func(*jwt.Token) (any, error) { return key, nil })
	if err != nil {
		t.Fatalf("parse %s: %v", token, err)
	}
	return parsed
}

func TestAgentToken_CarriesClaims(t *testing.T) {
	s := newSigner(t)
	member, _ := jwk(t, s)
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
			g := grant()
			g.TaskID, g.Tenant, g.SubjectIssuer = tc.task, tc.tenant, tc.issuer
			before := time.Now().Unix()
			token, err := s.AgentToken(g)
			if err != nil {
				t.Fatalf("AgentToken: %v", err)
			}
			parsed := parse(t, s, token)
			if diff := cmp.Diff(map[string]any{"typ": "at+jwt", "alg": "EdDSA", "kid": member["kid"]}, parsed.Header); diff != "" {
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
	s, g := newSigner(t), grant()
	seen := map[string]bool{}
	for range 100 {
		token, err := s.AgentToken(g)
		if err != nil {
			t.Fatal(err)
		}
		if seen[token] {
			t.Fatal("the same token was minted twice")
		}
		seen[token] = true
	}
}

func TestAgentToken_RejectsEmptyGrant(t *testing.T) {
	s := newSigner(t)
	for _, tc := range []struct {
		name   string
		change func(*auth.AgentGrant)
		want   string
	}{
		{"no issuer", func(g *auth.AgentGrant) { g.Issuer = "" }, "no issuer"},
		{"no agent", func(g *auth.AgentGrant) { g.AgentID = "" }, "not an agent id"},
		{"two agents", func(g *auth.AgentGrant) { g.AgentID = "a b" }, "not an agent id"},
		{"no subject", func(g *auth.AgentGrant) { g.Subject = "" }, "no subject"},
		{"no expiry", func(g *auth.AgentGrant) { g.Expires = time.Time{} }, "expired already"},
		{"expired", func(g *auth.AgentGrant) { g.Expires = time.Now().Add(-time.Second) }, "expired already"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := grant()
			tc.change(&g)
			token, err := s.AgentToken(g)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("AgentToken = %q, %v; want an error with %q", token, err, tc.want)
			}
		})
	}
}

// The claims contain the subject unchanged, whatever characters it has.
func TestAgentToken_KeepsSubject(t *testing.T) {
	s := newSigner(t)
	rapid.Check(t, func(rt *rapid.T) {
		g := grant()
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

func TestJWKS_PublishesKey(t *testing.T) {
	s := newSigner(t)
	member, key := jwk(t, s)
	if len(key) != ed25519.PublicKeySize {
		t.Errorf("x is %d bytes long, want %d", len(key), ed25519.PublicKeySize)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, `{"crv":"Ed25519","kty":"OKP","x":%q}`, b64(key)))
	want := map[string]string{"kty": "OKP", "crv": "Ed25519", "x": b64(key), "kid": b64(sum[:]), "use": "sig", "alg": "EdDSA"}
	if diff := cmp.Diff(want, member); diff != "" {
		t.Errorf("key (-want +got):\n%s", diff)
	}
}

// RFC 8037, appendix A.1 to A.3: a known key and its thumbprint.
func TestThumbprint_MatchesRFC8037(t *testing.T) {
	seed, _ := base64.RawURLEncoding.DecodeString("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A")
	dir := t.TempDir()
	write(t, dir, pkcs8(t, ed25519.NewKeyFromSeed(seed)), 0o600)
	member, _ := jwk(t, open(t, dir))
	if got, want := member["kid"], "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"; got != want {
		t.Errorf("kid = %q, want %q", got, want)
	}
	if got, want := member["x"], "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"; got != want {
		t.Errorf("x = %q, want %q", got, want)
	}
}

func TestSigner_IsRedacted(t *testing.T) {
	seed := bytes.Repeat([]byte{0xAB}, ed25519.SeedSize)
	dir := t.TempDir()
	write(t, dir, pkcs8(t, ed25519.NewKeyFromSeed(seed)), 0o600)
	s := open(t, dir)

	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "signer", s, "value", *s)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "signer", s, "config", struct{ Signer *auth.Signer }{s})
	texts := map[string]string{
		"slog": log.String(),
		"json": func() string { b, _ := json.Marshal(map[string]any{"signer": s}); return string(b) }(),
	}
	type config struct {
		Signer  auth.Signer
		private auth.Signer
		pointer *auth.Signer
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		texts[verb] = fmt.Sprintf(verb, s)
		texts[verb+" of the value"] = fmt.Sprintf(verb, *s)
		texts[verb+" inside a struct"] = fmt.Sprintf(verb, config{*s, *s, s})
		if got := texts[verb]; got != "<redacted>" {
			t.Errorf("%s prints %q, want <redacted>", verb, got)
		}
	}
	for where, text := range texts {
		for _, secret := range []string{
			string(seed[:4]), hex.EncodeToString(seed[:4]), strings.ToUpper(hex.EncodeToString(seed[:4])),
			"171 171", "171,171", "0xab, 0xab", base64.StdEncoding.EncodeToString(seed[:6]),
		} {
			if strings.Contains(text, secret) {
				t.Errorf("%s prints the key: %q", where, text)
			}
		}
	}
}

func BenchmarkAgentToken(b *testing.B) {
	s, g := newSigner(b), grant()
	g.Expires = time.Now().Add(time.Hour)
	for _, alg := range []string{auth.AlgEdDSA, auth.AlgES256} {
		b.Run(alg, func(b *testing.B) {
			signer, err := s.WithAgentAlg(alg)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := signer.AgentToken(g); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSignFloor measures the signature that every AgentToken needs.
func BenchmarkSignFloor(b *testing.B) {
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
