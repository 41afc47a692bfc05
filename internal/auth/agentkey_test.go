package auth_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/auth"
)

// withES256 returns the signer with ES256 as the algorithm of tokens for agents.
func withES256(t testing.TB, s *auth.Signer) *auth.Signer {
	t.Helper()
	changed, err := s.WithAgentAlg(auth.AlgES256)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// p256 returns the only P-256 key of the signer's key set.
func p256(t testing.TB, s *auth.Signer) (member map[string]string, key *ecdsa.PublicKey) {
	t.Helper()
	member = onlyMember(t, s, "EC")
	x, y := unb64(t, member["x"]), unb64(t, member["y"])
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...))
	if err != nil {
		t.Fatalf("key set %s: %v", s.JWKS(), err)
	}
	return member, key
}

// onlyMember returns the only key of a type in the signer's key set.
func onlyMember(t testing.TB, s *auth.Signer, kty string) map[string]string {
	t.Helper()
	var set struct{ Keys []map[string]string }
	if err := json.Unmarshal(s.JWKS(), &set); err != nil {
		t.Fatalf("key set %s: %v", s.JWKS(), err)
	}
	var found []map[string]string
	for _, k := range set.Keys {
		if k["kty"] == kty {
			found = append(found, k)
		}
	}
	if len(found) != 1 {
		t.Fatalf("got %d keys of type %s in %s, want one", len(found), kty, s.JWKS())
	}
	return found[0]
}

// RFC 7518, section 6.2, and the thumbprint of RFC 7638.
func TestJWKS_PublishesP256Key(t *testing.T) {
	for range 300 { // one coordinate of 256 begins with a zero, which must not be dropped
		s := newSigner(t)
		member, key := p256(t, s)
		point, err := key.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		x, y := b64(point[1:33]), b64(point[33:])
		sum := sha256.Sum256(fmt.Appendf(nil, `{"crv":"P-256","kty":"EC","x":%q,"y":%q}`, x, y))
		want := map[string]string{"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": b64(sum[:]), "use": "sig", "alg": "ES256"}
		if diff := cmp.Diff(want, member); diff != "" {
			t.Fatalf("key (-want +got):\n%s", diff)
		}
	}
}

func TestAgentToken_SignsWithES256(t *testing.T) {
	s := withES256(t, newSigner(t))
	token, err := s.AgentToken(grant())
	if err != nil {
		t.Fatal(err)
	}
	member, key := p256(t, s)
	parsed, err := jwt.NewParser(
		jwt.WithValidMethods([]string{"ES256"}), jwt.WithStrictDecoding(), jwt.WithExpirationRequired(), jwt.WithAudience("quality_agent"),
	).Parse(token, func(*jwt.Token) (any, error) { return key, nil })
	if err != nil {
		t.Fatalf("parse %s: %v", token, err)
	}
	if diff := cmp.Diff(map[string]any{"typ": "at+jwt", "alg": "ES256", "kid": member["kid"]}, parsed.Header); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	// The same bytes with a library function that knows no tokens.
	parts := strings.Split(token, ".")
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	sig := unb64(t, parts[2])
	if len(sig) != 64 || !ecdsa.Verify(key, digest[:], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:])) {
		t.Errorf("got the signature %x, want r and s of 32 bytes each (RFC 7518, section 3.4)", sig)
	}
}

// Only tokens for agents change: everything else is signed as before.
func TestWithAgentAlg_ChangesAgentTokensOnly(t *testing.T) {
	plain := newSigner(t)
	s := withES256(t, plain)
	if string(s.JWKS()) != string(plain.JWKS()) || s.KeyID() != plain.KeyID() {
		t.Error("got other keys, want the same")
	}
	id, sig := s.Sign("audit head", []byte("head"))
	if _, public := jwk(t, s); id != plain.KeyID() || !ed25519.Verify(public, []byte("caprouter/audit head\x00head"), sig) {
		t.Error("got another signature over data, want Ed25519")
	}
	token, err := s.CallerToken(callerGrant())
	if err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string]struct {
		token string
		want  string
	}{"caller": {token, "EdDSA"}, "task": {taskToken(t, s, taskGrant()), "HS256"}} {
		parsed, _, err := jwt.NewParser().ParseUnverified(got.token, jwt.MapClaims{})
		if err != nil || parsed.Header["alg"] != got.want {
			t.Errorf("%s token: got header %v (%v), want alg %s", what, parsed.Header, err, got.want)
		}
	}
	if token, err = plain.AgentToken(grant()); err != nil {
		t.Fatal(err)
	}
	parse(t, plain, token) // EdDSA, in the same process
}

func TestWithAgentAlg_RejectsOtherAlgorithms(t *testing.T) {
	s := newSigner(t)
	for _, alg := range []string{"", "none", "HS256", "RS256", "es256", "ES384"} {
		if got, err := s.WithAgentAlg(alg); err == nil || !strings.Contains(err.Error(), "EdDSA or ES256") {
			t.Errorf("WithAgentAlg(%q) = %v, %v; want an error with the two algorithms", alg, got, err)
		}
	}
}

// The key is derived from the key file: another start, and every process with the
// same file, has the same one. Another derivation would invalidate the tokens of
// open tasks.
func TestP256Key_IsDerivedFromKeyFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, pkcs8(t, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))), 0o600)
	member, _ := p256(t, open(t, dir))
	if got, want := member["kid"], "rfyiTrzc7iqAwx1Bw_R5hw-vTVi75Fu7xzIJT--n1Xs"; got != want {
		t.Errorf("kid = %q, want %q", got, want)
	}
	onlyTheKey(t, dir)
}

// Neither key verifies what the other one signed.
func TestAgentToken_KeysAreSeparate(t *testing.T) {
	plain := newSigner(t)
	s := withES256(t, plain)
	_, ed := jwk(t, s)
	_, ec := p256(t, s)
	for name, tc := range map[string]struct {
		signer *auth.Signer
		key    any
		alg    string
	}{
		"ES256 token, Ed25519 key": {s, ed, "EdDSA"},
		"EdDSA token, P-256 key":   {plain, ec, "ES256"},
	} {
		token, err := tc.signer.AgentToken(grant())
		if err != nil {
			t.Fatal(err)
		}
		for _, alg := range []string{tc.alg, "EdDSA", "ES256"} { // the verifier's, and either
			parser := jwt.NewParser(jwt.WithValidMethods([]string{alg}))
			if _, err := parser.Parse(token, func(*jwt.Token) (any, error) { return tc.key, nil }); err == nil {
				t.Errorf("%s: got it accepted as %s", name, alg)
			}
		}
	}
}
