package jwk

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"math/big"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/auth/weakkey"
	"github.com/caprouter/caprouter/internal/testkit/testjwk"
)

func TestKeySet_AcceptsUsableKeys(t *testing.T) {
	edwards, nist, mod := testjwk.Ed25519(t), testjwk.P256(t), testjwk.RSA(t, 2048)
	ed, ec, rs := testjwk.Of(t, "k", edwards), testjwk.Of(t, "k", nist), testjwk.Of(t, "k", mod)
	large := testjwk.RSA(t, 8192)
	for _, tt := range []struct {
		name string
		key  testjwk.Members
		alg  string
		want crypto.PublicKey
	}{
		{"Ed25519", ed, "EdDSA", edwards},
		{"P-256", ec, "ES256", nist},
		{"RSA", rs, "RS256", mod},
		{"RSA, 8192 bits", testjwk.Of(t, "k", large), "RS256", large},
		{"Ed25519 without alg", ed.With("alg", nil), "EdDSA", edwards},
		{"P-256 without alg and use", ec.With("alg", nil).With("use", nil), "ES256", nist},
		{"RSA without alg", rs.With("alg", nil), "RS256", mod},
		{"key_ops hold verify", ed.With("use", nil).With("key_ops", []string{"sign", "verify"}), "EdDSA", edwards},
		{"key_ops that are not registered", ed.With("key_ops", []string{"verify", "attest"}), "EdDSA", edwards},
		{"a certificate that is none", ec.With("x5c", []string{"MII"}).With("x5t", "AA").With("x5u", "http://idp.example/c"), "ES256", nist},
		{"null counts as absent", ed.With("alg", jsonNull{}).With("use", jsonNull{}).With("key_ops", jsonNull{}).With("d", jsonNull{}), "EdDSA", edwards},
		{"unknown members", rs.With("x5c", []int{1}).With("x5u", "https://idp.example/c").With("nbf", 1), "RS256", mod},
		{"members of other types", ed.With("n", "!").With("y", "!"), "EdDSA", edwards},
		{"a modulus with a sign", rs.With("n", testjwk.Base64URL(append([]byte{0}, mod.N.Bytes()...))), "RS256", mod},
		{"a kid of 256 bytes", ed.With("kid", strings.Repeat("k", 256)), "EdDSA", edwards},
		{"no kid", ed.With("kid", nil), "EdDSA", edwards},
	} {
		t.Run(tt.name, func(t *testing.T) {
			usable, unusable, err := ParseSet([]byte(testjwk.SetText(t, tt.key)), weakkey.CheckPublic)
			if err != nil || len(usable) != 1 || len(unusable) != 0 {
				t.Fatalf("got %d usable, %v unusable, error %v; want one usable key", len(usable), unusable, err)
			}
			kid, _ := tt.key["kid"].(string)
			if k := usable[0]; k.ID != kid || k.Algorithm != tt.alg || !equalKeys(k.Public, tt.want) {
				t.Errorf("got kid %q, %s, %T; want %q, %s and the given key", k.ID, k.Algorithm, k.Public, kid, tt.alg)
			}
		})
	}
}

// equalKeys reports whether two public keys are equal.
func equalKeys(a, b crypto.PublicKey) bool {
	k, ok := a.(interface{ Equal(x crypto.PublicKey) bool })
	return ok && k.Equal(b)
}

// jsonNull sets a member to null; nil removes the member.
type jsonNull struct{}

func (jsonNull) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

func TestKeySet_RejectsUnusableKeys(t *testing.T) {
	ed, nist, mod := testjwk.Of(t, "k", testjwk.Ed25519(t)), testjwk.P256(t), testjwk.RSA(t, 2048)
	ec, rs := testjwk.Of(t, "k", nist), testjwk.Of(t, "k", mod)
	x, _ := ec["x"].(string)
	n, _ := rs["n"].(string)
	tests := []struct {
		name string
		key  any
		want string // part of the reason
	}{
		{"another RSA algorithm", rs.With("alg", "RS512"), `its alg is "RS512", and of such keys only RS256 is used`},
		{"RSA for PSS", rs.With("alg", "PS256"), "only RS256"},
		{"RSA for encryption", rs.With("alg", "RSA-OAEP"), "only RS256"},
		{"a curve's other algorithm", ec.With("alg", "ES384"), "only ES256"},
		{"an algorithm of another type", ed.With("alg", "HS256"), "only EdDSA"},
		{"none", ed.With("alg", "none"), `its alg is "none"`},
		{"no algorithm's name", ed.With("alg", ""), `its alg is ""`},
		{"another case of the algorithm", ed.With("alg", "EDDSA"), "only EdDSA"},
		{"an algorithm that is long", ed.With("alg", strings.Repeat("x", 1000)), `xxx"…, and of`},
		{"for encryption", rs.With("use", "enc"), `its use is "enc", not sig`},
		{"for nothing", rs.With("use", ""), `its use is ""`},
		{"operations without verify", rs.With("key_ops", []string{"encrypt"}), "do not hold verify"},
		{"no operations", ed.With("key_ops", []string{}), "do not hold verify"},

		{"a private Ed25519 key", ed.With("d", "AA"), "not public"},
		{"a private RSA key", rs.With("p", "AA"), "not public"},
		{"a private member of another type", ed.With("d", 1), "not public"},
		{"other primes", rs.With("oth", []string{}), "not public"},
		{"a secret", testjwk.Members{"kty": "oct", "kid": "k", "alg": "HS256", "k": testjwk.Base64URL(make([]byte, 64))}, "not public"},
		{"a secret that is not there", testjwk.Members{"kty": "oct", "kid": "k"}, "shared secret"},

		{"no type", ed.With("kty", nil), `its kty is "", not`},
		{"another type", ed.With("kty", "AKP"), `its kty is "AKP"`},
		{"another case of the type", ed.With("kty", "okp"), `its kty is "okp"`},
		{"a type of another curve", ed.With("kty", "EC"), `its curve is "Ed25519", not P-256`},
		{"another curve", ec.With("crv", "P-384"), `its curve is "P-384"`},
		{"the curve of other keys", ed.With("crv", "X25519"), `its curve is "X25519"`},
		{"no curve", ed.With("crv", nil), `its curve is ""`},

		{"a short Ed25519 key", ed.With("x", testjwk.Base64URL(make([]byte, 31))), "should be 32 bytes"},
		{"a long Ed25519 key", ed.With("x", testjwk.Base64URL(make([]byte, 33))), "should be 32 bytes"},
		{"no Ed25519 key", ed.With("x", nil), `requires parameters "crv" and "x"`},
		{"a point of small order", ed.With("x", testjwk.Base64URL(make([]byte, 32))), "small order"},
		{"a key of a document", testjwk.Members{
			"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", // RFC 8037, appendix A.2
		}, "whose private part is published"},
		{"a point off the curve", ec.With("y", testjwk.Base64URL(bytes.Repeat([]byte{1}, 32))), "point is not on the specified curve"},
		{"a coordinate off the field", ec.With("x", testjwk.Base64URL(bytes.Repeat([]byte{255}, 32))), "point is not on the specified curve"},
		{"a short coordinate", ec.With("x", testjwk.Base64URL(make([]byte, 31))), "its x is 31 bytes long, not 32"},
		{"a long coordinate", ec.With("x", testjwk.Base64URL(make([]byte, 33))), "its x is 33 bytes long, not 32"},
		{"half a point", ec.With("y", nil), "its y is 0 bytes long, not 32"},

		{"RSA, 2047 bits", testjwk.Of(t, "k", testjwk.RSA(t, 2047)), "has 2047 bits, not 2048 to 8192"},
		{"RSA, 8193 bits", testjwk.Of(t, "k", testjwk.RSA(t, 8193)), "has 8193 bits"},
		{"RSA, few bits in many bytes", rs.With("n", testjwk.Base64URL(append(make([]byte, 256), 1))), "has 1 bits"},
		{"no modulus", rs.With("n", nil), `requires parameters "n" and "e"`},
		{"an even modulus", rs.With("n", testjwk.Base64URL(new(big.Int).SetBit(mod.N, 0, 0).Bytes())), "modulus is even"},
		{"a modulus one can factor", testjwk.Of(t, "k", &rsa.PublicKey{N: factorable(), E: 65537}), "CVE-2017-15361"},
		{"exponent 1", rs.With("e", "AQ"), `parameter "e" is out of range`},
		{"exponent 3", rs.With("e", "Aw"), "its exponent is not"},
		{"an even exponent", rs.With("e", testjwk.Base64URL([]byte{1, 0, 2})), "its exponent is not"},
		{"a huge exponent", rs.With("e", testjwk.Base64URL([]byte{128, 0, 0, 1})), `parameter "e" is out of range`},
		{"an exponent that is 65537 in its last 64 bits", rs.With("e", testjwk.Base64URL([]byte{1, 0, 0, 0, 0, 0, 1, 0, 1})), "E in marshal does not match"},
		{"an exponent of 64 bits", rs.With("e", testjwk.Base64URL(bytes.Repeat([]byte{255}, 8))), `parameter "e" is out of range`},
		{"no exponent", rs.With("e", nil), `requires parameters "n" and "e"`},

		{"padding", ec.With("x", x+"="), "its x is not base64url"},
		{"a line break", ec.With("x", x[:4]+"\n"+x[4:]), "its x is not base64url"},
		{"another alphabet", rs.With("n", n[:8]+"+/+/"+n[12:]), "its n is not base64url"},
		{"stray bits", ed.With("x", strings.Repeat("A", 42)+"B"), "its x is not base64url"},

		{"a long kid", ed.With("kid", strings.Repeat("k", 257)), "kid is longer than 256 bytes"},
		{"a kid of another type", ed.With("kid", 1), "must be a string"},
		{"one operation", ed.With("key_ops", "verify"), "must be an array"},
		{"another case of a member", ed.With("KTY", "OKP"), `differs from "kty" only by case`},
		{"another case of a private member", ed.With("D", "AA"), `differs from "d" only by case`},
		{"a number", 1, "must be an object"},
		{"nothing", nil, `its kty is ""`},
	}
	good := testjwk.Ed25519(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := testjwk.Text(t, map[string]any{"keys": []any{tt.key, testjwk.Of(t, "good", good)}})
			usable, unusable, err := ParseSet([]byte(text), weakkey.CheckPublic)
			if err != nil {
				t.Fatalf("got error %v, want the rest of the set", err)
			}
			if len(usable) != 1 || !equalKeys(usable[0].Public, good) {
				t.Errorf("got %d usable keys, want the valid one", len(usable))
			}
			if len(unusable) != 1 || unusable[0].Index != 0 || !strings.Contains(unusable[0].Reason.Error(), tt.want) {
				t.Errorf("got %v, want the first key unusable: %s", unusable, tt.want)
			}
			for _, u := range unusable {
				if why := u.Reason.Error(); len(why) > 300 || strings.Contains(why, "\n") {
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
