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
		{"key_ops contain verify", ed.With("use", nil).With("key_ops", []string{"sign", "verify"}), "EdDSA", edwards},
		{"unregistered key_ops", ed.With("key_ops", []string{"verify", "attest"}), "EdDSA", edwards},
		{"invalid certificate", ec.With("x5c", []string{"MII"}).With("x5t", "AA").With("x5u", "http://idp.example/c"), "ES256", nist},
		{"null members", ed.With("alg", jsonNull{}).With("use", jsonNull{}).With("key_ops", jsonNull{}).With("d", jsonNull{}), "EdDSA", edwards},
		{"unknown members", rs.With("x5c", []int{1}).With("x5u", "https://idp.example/c").With("nbf", 1), "RS256", mod},
		{"members of other key types", ed.With("n", "!").With("y", "!"), "EdDSA", edwards},
		{"modulus with a leading zero", rs.With("n", testjwk.Base64URL(append([]byte{0}, mod.N.Bytes()...))), "RS256", mod},
		{"kid of 256 bytes", ed.With("kid", strings.Repeat("k", 256)), "EdDSA", edwards},
		{"no kid", ed.With("kid", nil), "EdDSA", edwards},
	} {
		t.Run(tt.name, func(t *testing.T) {
			usable, unusable, err := ParseSet([]byte(testjwk.SetText(t, tt.key)), weakkey.CheckPublic)
			if err != nil || len(usable) != 1 || len(unusable) != 0 {
				t.Fatalf("got %d usable, %v unusable, error %v; want one usable key", len(usable), unusable, err)
			}
			kid, _ := tt.key["kid"].(string)
			if k := usable[0]; k.ID != kid || k.Algorithm != tt.alg || !equalKeys(k.Public, tt.want) {
				t.Errorf("got kid %q, %s, %T; want %q, %s and the same key", k.ID, k.Algorithm, k.Public, kid, tt.alg)
			}
		})
	}
}

// equalKeys reports whether two public keys are equal.
func equalKeys(a, b crypto.PublicKey) bool {
	k, ok := a.(interface{ Equal(x crypto.PublicKey) bool })
	return ok && k.Equal(b)
}

// jsonNull as the value of a member is null in JSON; nil removes the member.
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
		{"algorithm of another curve", ec.With("alg", "ES384"), "only ES256"},
		{"algorithm of another key type", ed.With("alg", "HS256"), "only EdDSA"},
		{"alg none", ed.With("alg", "none"), `its alg is "none"`},
		{"empty alg", ed.With("alg", ""), `its alg is ""`},
		{"alg in upper case", ed.With("alg", "EDDSA"), "only EdDSA"},
		{"long alg", ed.With("alg", strings.Repeat("x", 1000)), `xxx"…, and of`},
		{"use for encryption", rs.With("use", "enc"), `its use is "enc", not sig`},
		{"empty use", rs.With("use", ""), `its use is ""`},
		{"key_ops without verify", rs.With("key_ops", []string{"encrypt"}), "do not hold verify"},
		{"empty key_ops", ed.With("key_ops", []string{}), "do not hold verify"},

		{"private Ed25519 key", ed.With("d", "AA"), "not public"},
		{"private RSA key", rs.With("p", "AA"), "not public"},
		{"private member that is a number", ed.With("d", 1), "not public"},
		{"further primes", rs.With("oth", []string{}), "not public"},
		{"shared secret", testjwk.Members{"kty": "oct", "kid": "k", "alg": "HS256", "k": testjwk.Base64URL(make([]byte, 64))}, "not public"},
		{"shared secret without a value", testjwk.Members{"kty": "oct", "kid": "k"}, "shared secret"},

		{"no kty", ed.With("kty", nil), `its kty is "", not`},
		{"unknown kty", ed.With("kty", "AKP"), `its kty is "AKP"`},
		{"kty in lower case", ed.With("kty", "okp"), `its kty is "okp"`},
		{"kty EC with curve Ed25519", ed.With("kty", "EC"), `its curve is "Ed25519", not P-256`},
		{"another curve", ec.With("crv", "P-384"), `its curve is "P-384"`},
		{"curve for key agreement", ed.With("crv", "X25519"), `its curve is "X25519"`},
		{"no curve", ed.With("crv", nil), `its curve is ""`},

		{"short Ed25519 key", ed.With("x", testjwk.Base64URL(make([]byte, 31))), "should be 32 bytes"},
		{"long Ed25519 key", ed.With("x", testjwk.Base64URL(make([]byte, 33))), "should be 32 bytes"},
		{"Ed25519 key without x", ed.With("x", nil), `requires parameters "crv" and "x"`},
		{"point of small order", ed.With("x", testjwk.Base64URL(make([]byte, 32))), "small order"},
		{"published key", testjwk.Members{
			"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", // RFC 8037, appendix A.2
		}, "whose private part is published"},
		{"point not on the curve", ec.With("y", testjwk.Base64URL(bytes.Repeat([]byte{1}, 32))), "point is not on the specified curve"},
		{"coordinate not in the field", ec.With("x", testjwk.Base64URL(bytes.Repeat([]byte{255}, 32))), "point is not on the specified curve"},
		{"short coordinate", ec.With("x", testjwk.Base64URL(make([]byte, 31))), "its x is 31 bytes long, not 32"},
		{"long coordinate", ec.With("x", testjwk.Base64URL(make([]byte, 33))), "its x is 33 bytes long, not 32"},
		{"P-256 key without y", ec.With("y", nil), "its y is 0 bytes long, not 32"},

		{"RSA, 2047 bits", testjwk.Of(t, "k", testjwk.RSA(t, 2047)), "has 2047 bits, not 2048 to 8192"},
		{"RSA, 8193 bits", testjwk.Of(t, "k", testjwk.RSA(t, 8193)), "has 8193 bits"},
		{"RSA, few bits in many bytes", rs.With("n", testjwk.Base64URL(append(make([]byte, 256), 1))), "has 1 bits"},
		{"no modulus", rs.With("n", nil), `requires parameters "n" and "e"`},
		{"even modulus", rs.With("n", testjwk.Base64URL(new(big.Int).SetBit(mod.N, 0, 0).Bytes())), "modulus is even"},
		{"ROCA modulus", testjwk.Of(t, "k", &rsa.PublicKey{N: factorable(), E: 65537}), "CVE-2017-15361"},
		{"exponent 1", rs.With("e", "AQ"), `parameter "e" is out of range`},
		{"exponent 3", rs.With("e", "Aw"), "its exponent is not"},
		{"even exponent", rs.With("e", testjwk.Base64URL([]byte{1, 0, 2})), "its exponent is not"},
		{"exponent of 32 bits", rs.With("e", testjwk.Base64URL([]byte{128, 0, 0, 1})), `parameter "e" is out of range`},
		{"exponent that is 65537 modulo 2^64", rs.With("e", testjwk.Base64URL([]byte{1, 0, 0, 0, 0, 0, 1, 0, 1})), "E in marshal does not match"},
		{"exponent of 64 bits", rs.With("e", testjwk.Base64URL(bytes.Repeat([]byte{255}, 8))), `parameter "e" is out of range`},
		{"no exponent", rs.With("e", nil), `requires parameters "n" and "e"`},

		{"padding", ec.With("x", x+"="), "its x is not base64url"},
		{"line break", ec.With("x", x[:4]+"\n"+x[4:]), "its x is not base64url"},
		{"base64 instead of base64url", rs.With("n", n[:8]+"+/+/"+n[12:]), "its n is not base64url"},
		{"non-zero trailing bits", ed.With("x", strings.Repeat("A", 42)+"B"), "its x is not base64url"},

		{"kid of 257 bytes", ed.With("kid", strings.Repeat("k", 257)), "kid is longer than 256 bytes"},
		{"kid is a number", ed.With("kid", 1), "must be a string"},
		{"key_ops is a string", ed.With("key_ops", "verify"), "must be an array"},
		{"member in upper case", ed.With("KTY", "OKP"), `differs from "kty" only by case`},
		{"private member in upper case", ed.With("D", "AA"), `differs from "d" only by case`},
		{"key is a number", 1, "must be an object"},
		{"key is null", nil, `its kty is ""`},
	}
	good := testjwk.Ed25519(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := testjwk.Text(t, map[string]any{"keys": []any{tt.key, testjwk.Of(t, "good", good)}})
			usable, unusable, err := ParseSet([]byte(text), weakkey.CheckPublic)
			if err != nil {
				t.Fatalf("got error %v, want the valid key of the set", err)
			}
			if len(usable) != 1 || !equalKeys(usable[0].Public, good) {
				t.Errorf("got %d usable keys, want the valid one", len(usable))
			}
			if len(unusable) != 1 || unusable[0].Index != 0 || !strings.Contains(unusable[0].Reason.Error(), tt.want) {
				t.Errorf("got %v, want the first key unusable: %s", unusable, tt.want)
			}
			for _, u := range unusable {
				if why := u.Reason.Error(); len(why) > 300 || strings.Contains(why, "\n") {
					t.Errorf("got a reason of %d bytes, want one line of at most 300: %q", len(why), why)
				}
			}
		})
	}
}

// factorable returns a 2048-bit modulus that is vulnerable to ROCA (CVE-2017-15361): modulo
// the product of the small primes, it is a power of 65537.
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
