package strictjwt

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"pgregory.net/rapid"
)

// verifySignature verifies a JWS without its claims and its type. Parse accepts only payloads
// that are JSON objects. For another payload, as in many examples, verifySignature checks the
// algorithm like Parse, and calls the signature method of the library.
func verifySignature(k Key, token string) error {
	c, err := parseCompact(token)
	if err != nil {
		return err
	}
	if _, err := parseObject(c.payload, claimNames()...); err == nil {
		_, err := NewParser().Parse(token, func(*Header, Claims) (Key, error) { return k, nil })
		return err
	}
	if err := k.checkAlgorithm(&c.header); err != nil {
		return err
	}
	i := strings.LastIndexByte(token, '.')
	signature, err := base64.RawURLEncoding.DecodeString(token[i+1:])
	if err != nil {
		return err
	}
	return jwt.GetSigningMethod(k.Algorithm).Verify(token[:i], signature, k.Material)
}

// The examples of the RFCs have valid signatures, but are not access tokens.
func TestVerifySignature_AcceptsRFCExamples(t *testing.T) {
	for _, tc := range []struct {
		name  string
		key   Key
		token string
	}{
		{
			"RFC 7515, A.1",
			Key{"HS256", decodeBase64(t, "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow")},
			"eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9." +
				"eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ." +
				"dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
		},
		{
			"RFC 8037, A.4",
			Key{"EdDSA", ed25519.PublicKey(decodeBase64(t, "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"))},
			"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc." +
				"hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := verifySignature(tc.key, tc.token); err != nil {
				t.Errorf("verifySignature: %v", err)
			}
			i := strings.LastIndex(tc.token, ".") + 2
			changed := tc.token[:i] + otherLetter(tc.token[i:i+1]) + tc.token[i+1:]
			if err := verifySignature(tc.key, changed); err == nil {
				t.Errorf("verifySignature(%s) = nil for a changed signature, want an error", changed)
			}
		})
	}
}

func otherLetter(s string) string {
	if s == "A" {
		return "B"
	}
	return "A"
}

func decodeBase64(t *testing.T, text string) []byte {
	t.Helper()
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestVerifySignature_RejectsOtherAlgorithm(t *testing.T) {
	public, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	es, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	secret := []byte(rand.Text() + rand.Text())
	keys := map[string]struct{ private, public any }{
		"EdDSA": {ed, public}, "ES256": {es, &es.PublicKey}, "RS256": {rs, &rs.PublicKey}, "HS256": {secret, secret},
	}
	for _, alg := range Algorithms() {
		signed := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"`+alg+`"}`)) + "." + base64.RawURLEncoding.EncodeToString([]byte("x"))
		signature, err := jwt.GetSigningMethod(alg).Sign(signed, keys[alg].private)
		if err != nil {
			t.Fatal(err)
		}
		token := signed + "." + base64.RawURLEncoding.EncodeToString(signature)
		for _, other := range Algorithms() {
			err := verifySignature(Key{other, keys[alg].public}, token)
			if (err == nil) != (other == alg) {
				t.Errorf("%s token, %s key: verifySignature = %v, want success: %v", alg, other, err, other == alg)
			}
		}
	}
}

func TestFoldName_MatchesEqualFold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a := rapid.StringMatching(`[a-cA-Ck-sK-SſKßẞσςΣµμΜ]{0,3}`).Draw(rt, "a")
		b := rapid.StringMatching(`[a-cA-Ck-sK-SſKßẞσςΣµμΜ]{0,3}`).Draw(rt, "b")
		if got, want := foldName(a) == foldName(b), strings.EqualFold(a, b); got != want {
			rt.Errorf("foldName(%q) == foldName(%q): got %v, want %v like EqualFold", a, b, got, want)
		}
	})
}
