package auth

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"pgregory.net/rapid"
)

// verifySignature checks everything about a token except its claims and its type,
// as every user of JWS signatures must. The parser of tokens does not accept a content
// that is not an object, as in many examples, so its method verifies that directly.
func verifySignature(k *verifyKey, token string) error {
	c, err := parseCompact(token)
	if err != nil {
		return err
	}
	if err := c.checkAlgorithm(k); err != nil {
		return err
	}
	if _, err := parseObject(c.payload); err == nil {
		_, err := newTokenParser().Parse(token, func(*jwt.Token) (any, error) { return k.material(), nil })
		return err
	}
	i := strings.LastIndexByte(token, '.')
	signature, err := base64.RawURLEncoding.DecodeString(token[i+1:])
	if err != nil {
		return err
	}
	return jwt.GetSigningMethod(k.alg).Verify(token[:i], signature, k.material())
}

// The examples of the RFCs are signed correctly, but are not tokens of this
// service.
func TestVerifySignature_AcceptsRFCExamples(t *testing.T) {
	for _, tc := range []struct {
		name  string
		key   *verifyKey
		token string
	}{
		{
			"RFC 7515, A.1",
			&verifyKey{alg: "HS256", key: rfcOctets(t, rfc7515Secret)},
			"eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9." +
				"eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ." +
				"dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
		},
		{
			"RFC 8037, A.4",
			&verifyKey{alg: "EdDSA", key: rfc8037Key()},
			"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc." +
				"hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := verifySignature(tc.key, tc.token); err != nil {
				t.Errorf("verifySignature: %v", err)
			}
			i := strings.LastIndex(tc.token, ".") + 2
			changed := tc.token[:i] + flipLetter(tc.token[i:i+1]) + tc.token[i+1:]
			if err := verifySignature(tc.key, changed); err == nil {
				t.Error("got a changed signature accepted, want an error")
			}
		})
	}
}

func flipLetter(s string) string {
	if s == "A" {
		return "B"
	}
	return "A"
}

func TestVerifySignature_RejectsOtherAlgorithm(t *testing.T) {
	for _, alg := range algorithms() {
		k := newMintKey(t, "k", alg)
		token := k.sign(t, `{"alg":"`+alg+`"}`, "x")
		for _, other := range algorithms() {
			err := verifySignature(&verifyKey{alg: other, key: k.public}, token)
			if (err == nil) != (other == alg) {
				t.Errorf("%s token, %s key: %v", alg, other, err)
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
