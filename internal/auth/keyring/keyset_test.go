package keyring

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
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
)

func encodeBase64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func decodeBase64(t testing.TB, s string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// ed25519Member returns the only Ed25519 key of the ring's key set.
func ed25519Member(t testing.TB, s *Ring) (member map[string]string, key ed25519.PublicKey) {
	t.Helper()
	member = onlyMember(t, s, "OKP")
	return member, decodeBase64(t, member["x"])
}

// p256Member returns the only P-256 key of the ring's key set.
func p256Member(t testing.TB, s *Ring) (member map[string]string, key *ecdsa.PublicKey) {
	t.Helper()
	member = onlyMember(t, s, "EC")
	x, y := decodeBase64(t, member["x"]), decodeBase64(t, member["y"])
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...))
	if err != nil {
		t.Fatalf("key set %s: %v", s.JWKS(), err)
	}
	return member, key
}

// onlyMember returns the only key of a type in the ring's key set.
func onlyMember(t testing.TB, s *Ring, kty string) map[string]string {
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
		t.Fatalf("got %d keys of type %s in %s, want 1", len(found), kty, s.JWKS())
	}
	return found[0]
}

// The key has the form of RFC 7518, section 6.2, and the thumbprint of RFC 7638.
func TestJWKS_PublishesP256Key(t *testing.T) {
	for range 300 { // one in 256 coordinates begins with a zero byte, which must be encoded
		s := newRing(t)
		member, key := p256Member(t, s)
		point, err := key.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		x, y := encodeBase64(point[1:33]), encodeBase64(point[33:])
		sum := sha256.Sum256(fmt.Appendf(nil, `{"crv":"P-256","kty":"EC","x":%q,"y":%q}`, x, y))
		want := map[string]string{"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": encodeBase64(sum[:]), "use": "sig", "alg": "ES256"}
		if diff := cmp.Diff(want, member); diff != "" {
			t.Fatalf("key (-want +got):\n%s", diff)
		}
	}
}

func TestJWKS_PublishesEd25519Key(t *testing.T) {
	s := newRing(t)
	member, key := ed25519Member(t, s)
	if len(key) != ed25519.PublicKeySize {
		t.Errorf("got an x of %d bytes, want %d", len(key), ed25519.PublicKeySize)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, `{"crv":"Ed25519","kty":"OKP","x":%q}`, encodeBase64(key)))
	want := map[string]string{"kty": "OKP", "crv": "Ed25519", "x": encodeBase64(key), "kid": encodeBase64(sum[:]), "use": "sig", "alg": "EdDSA"}
	if diff := cmp.Diff(want, member); diff != "" {
		t.Errorf("key (-want +got):\n%s", diff)
	}
}

// RFC 8037, appendix A.1 to A.3, contains a key and its thumbprint.
func TestThumbprint_MatchesRFC8037(t *testing.T) {
	seed, _ := base64.RawURLEncoding.DecodeString("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A")
	dir := t.TempDir()
	writeKeyFile(t, dir, encodePKCS8(t, ed25519.NewKeyFromSeed(seed)), 0o600)
	member, _ := ed25519Member(t, openDir(t, dir))
	if got, want := member["kid"], "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"; got != want {
		t.Errorf("got kid %q, want %q", got, want)
	}
	if got, want := member["x"], "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"; got != want {
		t.Errorf("got x %q, want %q", got, want)
	}
}

// All processes with the same key file derive the same P-256 key. A change of the derivation
// would invalidate the tokens of unfinished tasks.
func TestP256Key_IsDerivedFromKeyFile(t *testing.T) {
	dir := t.TempDir()
	writeKeyFile(t, dir, encodePKCS8(t, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))), 0o600)
	member, _ := p256Member(t, openDir(t, dir))
	if got, want := member["kid"], "rfyiTrzc7iqAwx1Bw_R5hw-vTVi75Fu7xzIJT--n1Xs"; got != want {
		t.Errorf("got kid %q, want %q", got, want)
	}
	wantOnlyKeyFile(t, dir)
}

func TestRing_IsRedacted(t *testing.T) {
	seed := bytes.Repeat([]byte{0xAB}, ed25519.SeedSize)
	dir := t.TempDir()
	writeKeyFile(t, dir, encodePKCS8(t, ed25519.NewKeyFromSeed(seed)), 0o600)
	s := openDir(t, dir)

	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "ring", s, "value", *s)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "ring", s, "config", struct{ Ring *Ring }{s})
	texts := map[string]string{
		"slog": log.String(),
		"json": func() string { b, _ := json.Marshal(map[string]any{"ring": s}); return string(b) }(),
	}
	type config struct {
		Ring    Ring
		private Ring
		pointer *Ring
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		texts[verb] = fmt.Sprintf(verb, s)
		texts[verb+" of the value"] = fmt.Sprintf(verb, *s)
		texts[verb+" inside a struct"] = fmt.Sprintf(verb, config{*s, *s, s})
		if got := texts[verb]; got != "<redacted>" {
			t.Errorf("%s: got %q, want <redacted>", verb, got)
		}
	}
	for format, text := range texts {
		for _, secret := range []string{
			string(seed[:4]), hex.EncodeToString(seed[:4]), strings.ToUpper(hex.EncodeToString(seed[:4])),
			"171 171", "171,171", "0xab, 0xab", base64.StdEncoding.EncodeToString(seed[:6]),
		} {
			if strings.Contains(text, secret) {
				t.Errorf("%s: got %q, want no part of the key", format, text)
			}
		}
	}
}

// The key set contains the public keys of agent tokens, and not that of caller tokens.
func TestTokenKeys_ArePublished(t *testing.T) {
	r := newRing(t)
	keys := r.TokenKeys(time.Now())
	input := []byte("header.claims")
	sig, err := keys.EdDSA.Sign(input)
	if err != nil {
		t.Fatal(err)
	}
	if member, public := ed25519Member(t, r); member["kid"] != keys.EdDSA.ID || member["alg"] != keys.EdDSA.Algorithm || !ed25519.Verify(public, input, sig) {
		t.Errorf("got published key %v and signature %x, want a valid signature of this key", member, sig)
	}
	if sig, err = keys.ES256.Sign(input); err != nil {
		t.Fatal(err)
	}
	member, public := p256Member(t, r)
	if err := jwt.SigningMethodES256.Verify(string(input), sig, public); err != nil || member["kid"] != keys.ES256.ID || member["alg"] != keys.ES256.Algorithm {
		t.Errorf("got published key %v and error %v, want a valid signature of this key", member, err)
	}
	if strings.Contains(string(r.JWKS()), keys.Caller.ID) {
		t.Error("got the key of caller tokens in the key set, want it unpublished")
	}
}
