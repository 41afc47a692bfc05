package auth

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"github.com/caprouter/caprouter/internal/auth/strictjwt"
)

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func pkixPEM(t *testing.T, public any) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return pemOf("PUBLIC KEY", der)
}

func pkcs8PEM(t *testing.T, private any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pemOf("PRIVATE KEY", der)
}

// verifySignature verifies the form and the signature of a token, but not its claims.
func verifySignature(k *verifyKey, token string) error {
	_, err := strictjwt.NewParser().Parse(token, func(*strictjwt.Header, strictjwt.Claims) (strictjwt.Key, error) {
		return strictjwt.Key{Algorithm: k.alg, Material: k.material()}, nil
	})
	return err
}

func TestNewStaticKey_AcceptsEveryAlgorithm(t *testing.T) {
	for _, alg := range strictjwt.Algorithms() {
		k := newTestKey(t, "k", alg)
		key := k.static(t).key
		token := k.sign(t, k.header().text(), "{}")
		if err := verifySignature(key, token); err != nil {
			t.Errorf("%s: verifySignature: %v", alg, err)
		}
		if key.kid != "k" || key.issuer != "" || key.tenantClaim != "tenant" {
			t.Errorf("%s: got kid %q, issuer %q, tenant claim %q; want k, no issuer and tenant", alg, key.kid, key.issuer, key.tenantClaim)
		}
		if _, err := jwt.GetSigningMethod(key.alg).Sign("x", key.key); err == nil {
			t.Errorf("%s: the verification key can sign, want an error", alg)
		}
	}
	// The caller may overwrite the key afterwards.
	secret := newTestKey(t, "k", "HS256")
	key := secret.static(t).key
	token := secret.sign(t, secret.header().text(), "{}")
	clear(secret.public.([]byte))
	if err := verifySignature(key, token); err != nil {
		t.Errorf("secret overwritten after NewStaticKey: verifySignature = %v, want nil", err)
	}
}

func TestNewStaticKey_RejectsInvalidKeys(t *testing.T) {
	ed, es, rs := newTestKey(t, "k", "EdDSA"), newTestKey(t, "k", "ES256"), newTestKey(t, "k", "RS256")
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ecDER, err := x509.MarshalECPrivateKey(es.private.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	n := rs.public.(*rsa.PublicKey).N
	short := new(big.Int).SetBit(new(big.Int).Rsh(n, 1), 0, 1)
	const private, notOne = "contains a private key", "not exactly one PEM block"
	for _, tc := range []struct {
		name     string
		kid, alg string
		material []byte
		want     string
	}{
		{"no kid", "", "EdDSA", ed.pem(t), "a kid is 1 to 256"},
		{"kid with a line break", "a\nb", "EdDSA", ed.pem(t), "a kid is 1 to 256"},
		{"kid is not ASCII", "ké", "EdDSA", ed.pem(t), "a kid is 1 to 256"},
		{"kid of 257 bytes", strings.Repeat("k", 257), "EdDSA", ed.pem(t), "a kid is 1 to 256"},
		{"no algorithm", "k", "", ed.pem(t), "is not one of"},
		{"alg none", "k", "none", nil, "is not one of"},
		{"alg PS256", "k", "PS256", rs.pem(t), "is not one of"},
		{"alg in lower case", "k", "eddsa", ed.pem(t), "is not one of"},
		{"empty file", "k", "EdDSA", nil, notOne},
		{"DER", "k", "EdDSA", ed.der(t), notOne},
		{"two keys", "k", "EdDSA", append(ed.pem(t), ed.pem(t)...), notOne},
		{"text after the key", "k", "EdDSA", append(ed.pem(t), "x"...), notOne},
		{"text before the key", "k", "EdDSA", append([]byte("x\n"), ed.pem(t)...), notOne},
		{"truncated file", "k", "EdDSA", ed.pem(t)[:60], notOne},
		{"PEM block without a key", "k", "EdDSA", pemOf("PUBLIC KEY", []byte("x")), "no public key that can be read"},
		{"private key", "k", "EdDSA", pkcs8PEM(t, ed.private), private},
		{"EC private key in SEC 1 form", "k", "ES256", pemOf("EC PRIVATE KEY", ecDER), private},
		{"RSA private key in PKCS #1 form", "k", "RS256", pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rs.private.(*rsa.PrivateKey))), private},
		{"encrypted private key", "k", "RS256", pemOf("ENCRYPTED PRIVATE KEY", []byte("x")), private},
		{"public and private key", "k", "EdDSA", append(ed.pem(t), pkcs8PEM(t, ed.private)...), private},
		{"certificate", "k", "EdDSA", pemOf("CERTIFICATE", []byte("x")), "openssl x509"},
		{"RSA public key in PKCS #1 form", "k", "RS256", pemOf("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(rs.public.(*rsa.PublicKey))), "older form"},
		{"unknown PEM type", "k", "RS256", pemOf("X509 CRL", []byte("x")), `"X509 CRL"`},
		{"key for another algorithm", "k", "ES256", ed.pem(t), "a key for EdDSA, not ES256"},
		{"RSA key for EdDSA", "k", "EdDSA", rs.pem(t), "a key for RS256, not EdDSA"},
		{"P-384", "k", "ES256", pkixPEM(t, &p384.PublicKey), "not P-256"},
		{"RSA of 2047 bits", "k", "RS256", pkixPEM(t, &rsa.PublicKey{N: short, E: 65537}), "2047 bits"},
		{"RSA of 8193 bits", "k", "RS256", pkixPEM(t, &rsa.PublicKey{N: new(big.Int).Add(new(big.Int).Lsh(big.NewInt(1), 8192), big.NewInt(1)), E: 65537}), "8193 bits"},
		{"RSA with an even modulus", "k", "RS256", pkixPEM(t, &rsa.PublicKey{N: new(big.Int).Sub(n, big.NewInt(1)), E: 65537}), "modulus is even"},
		{"RSA with e = 3", "k", "RS256", pkixPEM(t, &rsa.PublicKey{N: n, E: 3}), "exponent"},
		{"RSA with e = 1", "k", "RS256", pkixPEM(t, &rsa.PublicKey{N: n, E: 1}), "exponent"},
		{"RSA with an even e", "k", "RS256", pkixPEM(t, &rsa.PublicKey{N: n, E: 65538}), "exponent"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := NewStaticKey(tc.kid, tc.alg, tc.material)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("NewStaticKey = %v, want an error with %q", err, tc.want)
			}
			for line := range bytes.Lines(tc.material) {
				if line = bytes.TrimSpace(line); len(line) > 20 && !bytes.HasPrefix(line, []byte("-----")) && strings.Contains(err.Error(), string(line)) {
					t.Errorf("got error %v, want one without the content of the file", err)
				}
			}
		})
	}
}

func TestNewStaticKey_RejectsWeakSecrets(t *testing.T) {
	for _, secret := range []string{"", "short", "changemechangemechangemechangeme", "the quick brown fox jumps over the lazy dog", rfc7515Secret} {
		_, err := NewStaticKey("k", "HS256", []byte(secret))
		if err == nil || !strings.Contains(err.Error(), "openssl rand") || len(secret) > 5 && strings.Contains(err.Error(), secret) {
			t.Errorf("%q: NewStaticKey = %v, want an error without the secret and with the command that creates one", secret, err)
		}
	}
}

func TestNewStaticKey_RejectsWeakPublicKeys(t *testing.T) {
	for want, public := range map[string]ed25519.PublicKey{
		"small order":  make(ed25519.PublicKey, ed25519.PublicKeySize),
		"is published": rfc8037Key(),
	} {
		if _, err := NewStaticKey("k", "EdDSA", pkixPEM(t, public)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewStaticKey = %v, want an error with %q", err, want)
		}
	}
}

// rfc7515Secret is the key of RFC 7515, appendix A.1.
const rfc7515Secret = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"

// rfc8037Key is the public key of RFC 8037, appendix A.2.
func rfc8037Key() ed25519.PublicKey {
	key, _ := hex.DecodeString("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
	return key
}
