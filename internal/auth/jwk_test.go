package auth

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"maps"
	"math/big"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// jwkMembers holds the members of one key.
type jwkMembers map[string]any

// with returns a copy in which one member is replaced; nil removes it.
func (m jwkMembers) with(name string, value any) jwkMembers {
	c := maps.Clone(m)
	c[name] = value
	if value == nil {
		delete(c, name)
	}
	return c
}

func jwkText(t testing.TB, v any) string {
	t.Helper()
	text, err := strictjson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func jwkSetText(t testing.TB, keys ...jwkMembers) string {
	t.Helper()
	return jwkText(t, map[string]any{"keys": append([]jwkMembers{}, keys...)})
}

func jwkBytes(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// jwkOf returns the whole public key as a provider publishes it.
func jwkOf(t testing.TB, kid string, key crypto.PublicKey) jwkMembers {
	t.Helper()
	m := jwkMembers{"kid": kid, "use": "sig"}
	switch k := key.(type) {
	case ed25519.PublicKey:
		m["kty"], m["crv"], m["alg"], m["x"] = "OKP", "Ed25519", "EdDSA", jwkBytes(k)
	case *ecdsa.PublicKey:
		point, err := k.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		m["kty"], m["crv"], m["alg"], m["x"], m["y"] = "EC", "P-256", "ES256", jwkBytes(point[1:33]), jwkBytes(point[33:])
	case *rsa.PublicKey:
		m["kty"], m["alg"], m["n"], m["e"] = "RSA", "RS256", jwkBytes(k.N.Bytes()), jwkBytes(big.NewInt(int64(k.E)).Bytes())
	default:
		t.Fatalf("unsupported public key %T", key)
	}
	return m
}

func jwkEd25519(t testing.TB) ed25519.PublicKey {
	t.Helper()
	key, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func jwkP256(t testing.TB) *ecdsa.PublicKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &key.PublicKey
}

// jwkRSA returns a key of the size with a modulus of unknown factors, which
// parsing does not need.
func jwkRSA(t testing.TB, size int) *rsa.PublicKey {
	t.Helper()
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), uint(size-1)))
	if err != nil {
		t.Fatal(err)
	}
	n.SetBit(n, size-1, 1)
	n.SetBit(n, 0, 1)
	return &rsa.PublicKey{N: n, E: 65537}
}

func TestKeySet_AcceptsUsableKeys(t *testing.T) {
	edwards, nist, mod := jwkEd25519(t), jwkP256(t), jwkRSA(t, 2048)
	ed, ec, rs := jwkOf(t, "k", edwards), jwkOf(t, "k", nist), jwkOf(t, "k", mod)
	large := jwkRSA(t, 8192)
	for _, tt := range []struct {
		name string
		key  jwkMembers
		alg  string
		want crypto.PublicKey
	}{
		{"Ed25519", ed, "EdDSA", edwards},
		{"P-256", ec, "ES256", nist},
		{"RSA", rs, "RS256", mod},
		{"RSA, 8192 bits", jwkOf(t, "k", large), "RS256", large},
		{"Ed25519 without alg", ed.with("alg", nil), "EdDSA", edwards},
		{"P-256 without alg and use", ec.with("alg", nil).with("use", nil), "ES256", nist},
		{"RSA without alg", rs.with("alg", nil), "RS256", mod},
		{"key_ops hold verify", ed.with("use", nil).with("key_ops", []string{"sign", "verify"}), "EdDSA", edwards},
		{"key_ops that are not registered", ed.with("key_ops", []string{"verify", "attest"}), "EdDSA", edwards},
		{"a certificate that is none", ec.with("x5c", []string{"MII"}).with("x5t", "AA").with("x5u", "http://idp.example/c"), "ES256", nist},
		{"null counts as absent", ed.with("alg", jsonNull{}).with("use", jsonNull{}).with("key_ops", jsonNull{}).with("d", jsonNull{}), "EdDSA", edwards},
		{"unknown members", rs.with("x5c", []int{1}).with("x5u", "https://idp.example/c").with("nbf", 1), "RS256", mod},
		{"members of other types", ed.with("n", "!").with("y", "!"), "EdDSA", edwards},
		{"a modulus with a sign", rs.with("n", jwkBytes(append([]byte{0}, mod.N.Bytes()...))), "RS256", mod},
		{"a kid of 256 bytes", ed.with("kid", strings.Repeat("k", 256)), "EdDSA", edwards},
		{"no kid", ed.with("kid", nil), "EdDSA", edwards},
	} {
		t.Run(tt.name, func(t *testing.T) {
			usable, unusable, err := parseKeySet([]byte(jwkSetText(t, tt.key)))
			if err != nil || len(usable) != 1 || len(unusable) != 0 {
				t.Fatalf("got %d usable, %v unusable, error %v; want one usable key", len(usable), unusable, err)
			}
			kid, _ := tt.key["kid"].(string)
			if k := usable[0]; k.kid != kid || k.method.Alg() != tt.alg || !equalKeys(k.key, tt.want) {
				t.Errorf("got kid %q, %s, %T; want %q, %s and the given key", k.kid, k.method.Alg(), k.key, kid, tt.alg)
			}
		})
	}
}

// jsonNull sets a member to null; nil removes the member.
type jsonNull struct{}

func (jsonNull) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

func TestKeySet_RejectsUnusableKeys(t *testing.T) {
	ed, nist, mod := jwkOf(t, "k", jwkEd25519(t)), jwkP256(t), jwkRSA(t, 2048)
	ec, rs := jwkOf(t, "k", nist), jwkOf(t, "k", mod)
	x, _ := ec["x"].(string)
	n, _ := rs["n"].(string)
	tests := []struct {
		name string
		key  any
		want string // part of the reason
	}{
		{"another RSA algorithm", rs.with("alg", "RS512"), `its alg is "RS512", and of such keys only RS256 is used`},
		{"RSA for PSS", rs.with("alg", "PS256"), "only RS256"},
		{"RSA for encryption", rs.with("alg", "RSA-OAEP"), "only RS256"},
		{"a curve's other algorithm", ec.with("alg", "ES384"), "only ES256"},
		{"an algorithm of another type", ed.with("alg", "HS256"), "only EdDSA"},
		{"none", ed.with("alg", "none"), `its alg is "none"`},
		{"no algorithm's name", ed.with("alg", ""), `its alg is ""`},
		{"another case of the algorithm", ed.with("alg", "EDDSA"), "only EdDSA"},
		{"an algorithm that is long", ed.with("alg", strings.Repeat("x", 1000)), `xxx"…, and of`},
		{"for encryption", rs.with("use", "enc"), `its use is "enc", not sig`},
		{"for nothing", rs.with("use", ""), `its use is ""`},
		{"operations without verify", rs.with("key_ops", []string{"encrypt"}), "do not hold verify"},
		{"no operations", ed.with("key_ops", []string{}), "do not hold verify"},

		{"a private Ed25519 key", ed.with("d", "AA"), "not public"},
		{"a private RSA key", rs.with("p", "AA"), "not public"},
		{"a private member of another type", ed.with("d", 1), "not public"},
		{"other primes", rs.with("oth", []string{}), "not public"},
		{"a secret", jwkMembers{"kty": "oct", "kid": "k", "alg": "HS256", "k": jwkBytes(make([]byte, 64))}, "not public"},
		{"a secret that is not there", jwkMembers{"kty": "oct", "kid": "k"}, "shared secret"},

		{"no type", ed.with("kty", nil), `its kty is "", not`},
		{"another type", ed.with("kty", "AKP"), `its kty is "AKP"`},
		{"another case of the type", ed.with("kty", "okp"), `its kty is "okp"`},
		{"a type of another curve", ed.with("kty", "EC"), `its curve is "Ed25519", not P-256`},
		{"another curve", ec.with("crv", "P-384"), `its curve is "P-384"`},
		{"the curve of other keys", ed.with("crv", "X25519"), `its curve is "X25519"`},
		{"no curve", ed.with("crv", nil), `its curve is ""`},

		{"a short Ed25519 key", ed.with("x", jwkBytes(make([]byte, 31))), "should be 32 bytes"},
		{"a long Ed25519 key", ed.with("x", jwkBytes(make([]byte, 33))), "should be 32 bytes"},
		{"no Ed25519 key", ed.with("x", nil), `requires parameters "crv" and "x"`},
		{"a point of small order", ed.with("x", jwkBytes(make([]byte, 32))), "small order"},
		{"a key of a document", jwkMembers{
			"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", // RFC 8037, appendix A.2
		}, "whose private part is published"},
		{"a point off the curve", ec.with("y", jwkBytes(bytes.Repeat([]byte{1}, 32))), "point is not on the specified curve"},
		{"a coordinate off the field", ec.with("x", jwkBytes(bytes.Repeat([]byte{255}, 32))), "point is not on the specified curve"},
		{"a short coordinate", ec.with("x", jwkBytes(make([]byte, 31))), "its x is 31 bytes long, not 32"},
		{"a long coordinate", ec.with("x", jwkBytes(make([]byte, 33))), "its x is 33 bytes long, not 32"},
		{"half a point", ec.with("y", nil), "its y is 0 bytes long, not 32"},

		{"RSA, 2047 bits", jwkOf(t, "k", jwkRSA(t, 2047)), "has 2047 bits, not 2048 to 8192"},
		{"RSA, 8193 bits", jwkOf(t, "k", jwkRSA(t, 8193)), "has 8193 bits"},
		{"RSA, few bits in many bytes", rs.with("n", jwkBytes(append(make([]byte, 256), 1))), "has 1 bits"},
		{"no modulus", rs.with("n", nil), `requires parameters "n" and "e"`},
		{"an even modulus", rs.with("n", jwkBytes(new(big.Int).SetBit(mod.N, 0, 0).Bytes())), "modulus is even"},
		{"a modulus one can factor", jwkOf(t, "k", &rsa.PublicKey{N: factorable(), E: 65537}), "CVE-2017-15361"},
		{"exponent 1", rs.with("e", "AQ"), `parameter "e" is out of range`},
		{"exponent 3", rs.with("e", "Aw"), "its exponent is not"},
		{"an even exponent", rs.with("e", jwkBytes([]byte{1, 0, 2})), "its exponent is not"},
		{"a huge exponent", rs.with("e", jwkBytes([]byte{128, 0, 0, 1})), `parameter "e" is out of range`},
		{"an exponent that is 65537 in its last 64 bits", rs.with("e", jwkBytes([]byte{1, 0, 0, 0, 0, 0, 1, 0, 1})), "E in marshal does not match"},
		{"an exponent of 64 bits", rs.with("e", jwkBytes(bytes.Repeat([]byte{255}, 8))), `parameter "e" is out of range`},
		{"no exponent", rs.with("e", nil), `requires parameters "n" and "e"`},

		{"padding", ec.with("x", x+"="), "its x is not base64url"},
		{"a line break", ec.with("x", x[:4]+"\n"+x[4:]), "its x is not base64url"},
		{"another alphabet", rs.with("n", n[:8]+"+/+/"+n[12:]), "its n is not base64url"},
		{"stray bits", ed.with("x", strings.Repeat("A", 42)+"B"), "its x is not base64url"},

		{"a long kid", ed.with("kid", strings.Repeat("k", 257)), "kid is longer than 256 bytes"},
		{"a kid of another type", ed.with("kid", 1), "must be a string"},
		{"one operation", ed.with("key_ops", "verify"), "must be an array"},
		{"another case of a member", ed.with("KTY", "OKP"), `differs from "kty" only by case`},
		{"another case of a private member", ed.with("D", "AA"), `differs from "d" only by case`},
		{"a number", 1, "must be an object"},
		{"nothing", nil, `its kty is ""`},
	}
	good := jwkEd25519(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := jwkText(t, map[string]any{"keys": []any{tt.key, jwkOf(t, "good", good)}})
			usable, unusable, err := parseKeySet([]byte(text))
			if err != nil {
				t.Fatalf("got error %v, want the rest of the set", err)
			}
			if len(usable) != 1 || !equalKeys(usable[0].key, good) {
				t.Errorf("got %d usable keys, want the valid one", len(usable))
			}
			if len(unusable) != 1 || unusable[0].index != 0 || !strings.Contains(unusable[0].why.Error(), tt.want) {
				t.Errorf("got %v, want the first key unusable: %s", unusable, tt.want)
			}
			for _, u := range unusable {
				if why := u.why.Error(); len(why) > 300 || strings.Contains(why, "\n") {
					t.Errorf("got a reason of %d bytes: %q", len(why), why)
				}
			}
		})
	}
}

// factorable returns a 2048-bit modulus of the form that ROCA-affected chips
// generated: a power of 65537 modulo the product of the small primes.
func factorable() *big.Int {
	product := big.NewInt(1)
	for i := int64(2); i <= 167; i++ {
		if p := big.NewInt(i); p.ProbablyPrime(0) {
			product.Mul(product, p)
		}
	}
	n := new(big.Int).Exp(big.NewInt(65537), big.NewInt(123456789), product)
	for step := new(big.Int).Lsh(product, 2047-uint(product.BitLen())); n.BitLen() < 2048; {
		n.Add(n, step)
	}
	return n
}
