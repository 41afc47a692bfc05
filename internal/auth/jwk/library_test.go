package jwk

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/MicahParks/jwkset"

	"github.com/caprouter/caprouter/internal/auth/weakkey"
	"github.com/caprouter/caprouter/internal/testkit/testjwk"
)

// The library decodes these keys, but they must not verify tokens. If the library rejects one
// of them in a later version, this package need not check that any more.
func TestKeySet_IsStricterThanLibrary(t *testing.T) {
	nist, edwards, mod := testjwk.P256(t), testjwk.Ed25519(t), testjwk.RSA(t, 2048)
	ed, ec, rs := testjwk.Of(t, "k", edwards), testjwk.Of(t, "k", nist), testjwk.Of(t, "k", mod)
	x, _ := ec["x"].(string)
	n, _ := rs["n"].(string)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := p384.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	x25519, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	short := nist
	for tries := 0; ; tries++ { // the x of one in 256 keys begins with a zero byte
		if raw, err := short.Bytes(); err != nil || tries > 10_000 {
			t.Fatalf("got no key with a short coordinate after %d tries, error %v", tries, err)
		} else if raw[1] == 0 {
			break
		}
		short = testjwk.P256(t)
	}
	shortX, err := short.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]any{
		"private Ed25519 key":    ed.With("d", testjwk.Base64URL(make([]byte, 32))),
		"private P-256 key":      ec.With("d", testjwk.Base64URL([]byte{1})),
		"private RSA key":        rs.With("d", "AQ").With("p", "AQ"),
		"use for encryption":     rs.With("use", "enc"),
		"empty use":              rs.With("use", ""),
		"key_ops for encryption": rs.With("key_ops", []string{"encrypt"}),
		"empty key_ops":          rs.With("key_ops", []string{}),
		"another RSA algorithm":  rs.With("alg", "RS512"),
		"HMAC algorithm":         rs.With("alg", "HS256"),
		"alg none":               rs.With("alg", "none"),
		"alg Ed448":              ed.With("alg", "Ed448"),
		"P-384":                  ec.With("crv", "P-384").With("alg", nil).With("x", testjwk.Base64URL(point[1:49])).With("y", testjwk.Base64URL(point[49:])),
		"X25519":                 ed.With("crv", "X25519").With("alg", nil).With("x", testjwk.Base64URL(x25519.PublicKey().Bytes())),
		"RSA, 1024 bits":         testjwk.Of(t, "k", testjwk.RSA(t, 1024)),
		"RSA, 16384 bits":        testjwk.Of(t, "k", testjwk.RSA(t, 16384)),
		"even modulus":           rs.With("n", testjwk.Base64URL(new(big.Int).SetBit(mod.N, 0, 0).Bytes())),
		"ROCA modulus":           testjwk.Of(t, "k", &rsa.PublicKey{N: factorable(), E: 65537}),
		"exponent 3":             rs.With("e", "Aw"),
		"even exponent":          rs.With("e", testjwk.Base64URL([]byte{1, 0, 2})),
		"point of small order":   ed.With("x", testjwk.Base64URL(make([]byte, 32))),
		"published key":          testjwk.Members{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},
		"padding":                ec.With("x", x+"="),
		"line break":             rs.With("n", n[:4]+"\n"+n[4:]),
		"non-zero trailing bits": testjwk.Of(t, "k", edwards).With("x", changeTrailingBits(t, testjwk.Base64URL(edwards))),
		"short coordinate":       testjwk.Of(t, "k", short).With("x", testjwk.Base64URL(shortX[2:33])),
		"long coordinate":        ec.With("x", testjwk.Base64URL(append([]byte{0}, decodeBase64(t, x)...))),
		"kid of 257 bytes":       ed.With("kid", strings.Repeat("k", 257)),
		"member in upper case":   ed.With("KID", "l"),
		"duplicate member":       json.RawMessage(`{"kid":"l",` + strings.TrimPrefix(testjwk.Text(t, ed), "{")),
		"invalid UTF-8":          json.RawMessage(`{"x5t":"` + "\xff" + `",` + strings.TrimPrefix(testjwk.Text(t, ed), "{")),
	} {
		t.Run(name, func(t *testing.T) {
			text, isText := key.(json.RawMessage)
			if !isText {
				text = json.RawMessage(testjwk.Text(t, key))
			}
			if _, err := jwkset.NewJWKFromRawJSON(text, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{}); err != nil {
				t.Errorf("the library: got error %v, want the key accepted", err)
			}
			set := bytes.Join([][]byte{[]byte(`{"keys":[`), text, []byte("]}")}, nil)
			if usable, unusable, err := ParseSet(set, weakkey.CheckPublic); len(usable) != 0 || err == nil && len(unusable) != 1 {
				t.Errorf("got %d usable keys, %d unusable, error %v; want none usable", len(usable), len(unusable), err)
			}
		})
	}
}

// changeTrailingBits returns another text that lenient base64url decoders decode to the same
// 32 bytes.
func changeTrailingBits(t *testing.T, text string) string {
	t.Helper()
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(digits, text[len(text)-1])
	changed := text[:len(text)-1] + digits[last|1:(last|1)+1]
	if changed == text || !bytes.Equal(decodeBase64(t, changed), decodeBase64(t, text)) {
		t.Fatalf("got %q for %q, want another text for the same bytes", changed, text)
	}
	return changed
}

func decodeBase64(t *testing.T, text string) []byte {
	t.Helper()
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
