package auth

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
)

// Keys that the library decodes, but that must not verify tokens. If the library
// rejects one of them, too, the check of this package may go.
func TestKeySet_IsStricterThanLibrary(t *testing.T) {
	nist, edwards, mod := jwkP256(t), jwkEd25519(t), jwkRSA(t, 2048)
	ed, ec, rs := jwkOf(t, "k", edwards), jwkOf(t, "k", nist), jwkOf(t, "k", mod)
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
	for tries := 0; ; tries++ { // one of 256 keys has a coordinate that begins with zero
		if raw, err := short.Bytes(); err != nil || tries > 10_000 {
			t.Fatalf("no key with a short coordinate after %d tries, error %v", tries, err)
		} else if raw[1] == 0 {
			break
		}
		short = jwkP256(t)
	}
	shortX, err := short.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]any{
		"a private Ed25519 key":    ed.with("d", jwkBytes(make([]byte, 32))),
		"a private P-256 key":      ec.with("d", jwkBytes([]byte{1})),
		"a private RSA key":        rs.with("d", "AQ").with("p", "AQ"),
		"for encryption":           rs.with("use", "enc"),
		"for no use":               rs.with("use", ""),
		"only for encryption":      rs.with("key_ops", []string{"encrypt"}),
		"no operations":            rs.with("key_ops", []string{}),
		"another RSA algorithm":    rs.with("alg", "RS512"),
		"an HMAC":                  rs.with("alg", "HS256"),
		"no signature":             rs.with("alg", "none"),
		"an algorithm of Ed448":    ed.with("alg", "Ed448"),
		"P-384":                    ec.with("crv", "P-384").with("alg", nil).with("x", jwkBytes(point[1:49])).with("y", jwkBytes(point[49:])),
		"X25519":                   ed.with("crv", "X25519").with("alg", nil).with("x", jwkBytes(x25519.PublicKey().Bytes())),
		"RSA, 1024 bits":           jwkOf(t, "k", jwkRSA(t, 1024)),
		"RSA, 16384 bits":          jwkOf(t, "k", jwkRSA(t, 16384)),
		"an even modulus":          rs.with("n", jwkBytes(new(big.Int).SetBit(mod.N, 0, 0).Bytes())),
		"a modulus one can factor": jwkOf(t, "k", &rsa.PublicKey{N: factorable(), E: 65537}),
		"exponent 3":               rs.with("e", "Aw"),
		"an even exponent":         rs.with("e", jwkBytes([]byte{1, 0, 2})),
		"a point of small order":   ed.with("x", jwkBytes(make([]byte, 32))),
		"a published key":          jwkMembers{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},
		"padding":                  ec.with("x", x+"="),
		"a line break":             rs.with("n", n[:4]+"\n"+n[4:]),
		"stray bits":               jwkOf(t, "k", edwards).with("x", changeStrayBits(t, jwkBytes(edwards))),
		"a short coordinate":       jwkOf(t, "k", short).with("x", jwkBytes(shortX[2:33])),
		"a long coordinate":        ec.with("x", jwkBytes(append([]byte{0}, decodeBase64(t, x)...))),
		"a kid of 257 bytes":       ed.with("kid", strings.Repeat("k", 257)),
		"another case of a member": ed.with("KID", "l"),
		"a member twice":           json.RawMessage(`{"kid":"l",` + strings.TrimPrefix(jwkText(t, ed), "{")),
		"invalid UTF-8":            json.RawMessage(`{"x5t":"` + "\xff" + `",` + strings.TrimPrefix(jwkText(t, ed), "{")),
	} {
		t.Run(name, func(t *testing.T) {
			text, isText := key.(json.RawMessage)
			if !isText {
				text = json.RawMessage(jwkText(t, key))
			}
			if _, err := jwkset.NewJWKFromRawJSON(text, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{}); err != nil {
				t.Errorf("the library rejects it now: %v", err)
			}
			set := bytes.Join([][]byte{[]byte(`{"keys":[`), text, []byte("]}")}, nil)
			if usable, unusable, err := parseKeySet(set); len(usable) != 0 || err == nil && len(unusable) != 1 {
				t.Errorf("got %d usable keys, %d unusable, error %v; want none usable", len(usable), len(unusable), err)
			}
		})
	}
}

// changeStrayBits returns another text that lenient decoders read as the same 32 bytes.
func changeStrayBits(t *testing.T, text string) string {
	t.Helper()
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(digits, text[len(text)-1])
	changed := text[:len(text)-1] + digits[last|1:(last|1)+1]
	if changed == text || !bytes.Equal(decodeBase64(t, changed), decodeBase64(t, text)) {
		t.Fatalf("got %q for %q, want another text of the same bytes", changed, text)
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
