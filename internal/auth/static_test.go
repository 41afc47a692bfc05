package auth

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
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

func TestNewStaticKey_AcceptsEveryAlgorithm(t *testing.T) {
	for _, alg := range algorithms() {
		k := newMintKey(t, "k", alg)
		key := k.static(t).key
		token := k.sign(t, k.header().text(), "{}")
		if err := verifySignature(key, token); err != nil {
			t.Errorf("%s: verifySignature: %v", alg, err)
		}
		if key.kid != "k" || key.issuer != "" || key.tenantClaim != "tenant" {
			t.Errorf("%s: kid %q, issuer %q, tenant claim %q", alg, key.kid, key.issuer, key.tenantClaim)
		}
		if _, err := key.method.Sign("x", key.key); err == nil {
			t.Errorf("%s: got a signer from a key for verification", alg)
		}
	}
	// The caller may overwrite the key afterwards.
	secret := newMintKey(t, "k", "HS256")
	key := secret.static(t).key
	token := secret.sign(t, secret.header().text(), "{}")
	clear(secret.public.([]byte))
	if err := verifySignature(key, token); err != nil {
		t.Errorf("secret overwritten after NewStaticKey: got %v", err)
	}
}

func TestNewStaticKey_RejectsInvalidKeys(t *testing.T) {
	ed, es, rs := newMintKey(t, "k", "EdDSA"), newMintKey(t, "k", "ES256"), newMintKey(t, "k", "RS256")
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
		{"a kid with a line break", "a\nb", "EdDSA", ed.pem(t), "a kid is 1 to 256"},
		{"a kid that is not ASCII", "ké", "EdDSA", ed.pem(t), "a kid is 1 to 256"},
		{"a kid of 257 bytes", strings.Repeat("k", 257), "EdDSA", ed.pem(t), "a kid is 1 to 256"},
		{"no algorithm", "k", "", ed.pem(t), "is not one of"},
		{"alg none", "k", "none", nil, "is not one of"},
		{"alg PS256", "k", "PS256", rs.pem(t), "is not one of"},
		{"alg in lower case", "k", "eddsa", ed.pem(t), "is not one of"},
		{"no file", "k", "EdDSA", nil, notOne},
		{"no PEM", "k", "EdDSA", ed.der(t), notOne},
		{"two keys", "k", "EdDSA", append(ed.pem(t), ed.pem(t)...), notOne},
		{"text behind it", "k", "EdDSA", append(ed.pem(t), "x"...), notOne},
		{"text before it", "k", "EdDSA", append([]byte("x\n"), ed.pem(t)...), notOne},
		{"a cut file", "k", "EdDSA", ed.pem(t)[:60], notOne},
		{"no key in it", "k", "EdDSA", pemOf("PUBLIC KEY", []byte("x")), "no public key that can be read"},
		{"a private key", "k", "EdDSA", pkcs8PEM(t, ed.private), private},
		{"a private key of the older form", "k", "ES256", pemOf("EC PRIVATE KEY", ecDER), private},
		{"a private key of RSA", "k", "RS256", pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rs.private.(*rsa.PrivateKey))), private},
		{"an encrypted private key", "k", "RS256", pemOf("ENCRYPTED PRIVATE KEY", []byte("x")), private},
		{"both halves", "k", "EdDSA", append(ed.pem(t), pkcs8PEM(t, ed.private)...), private},
		{"a certificate", "k", "EdDSA", pemOf("CERTIFICATE", []byte("x")), "openssl x509"},
		{"RSA in the older form", "k", "RS256", pemOf("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(rs.public.(*rsa.PublicKey))), "older form"},
		{"something else", "k", "RS256", pemOf("X509 CRL", []byte("x")), `"X509 CRL"`},
		{"a key for another algorithm", "k", "ES256", ed.pem(t), "a key for EdDSA, not ES256"},
		{"an RSA key for EdDSA", "k", "EdDSA", rs.pem(t), "a key for RS256, not EdDSA"},
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
					t.Errorf("got an error that contains the file: %v", err)
				}
			}
		})
	}
}

func TestNewStaticKey_RejectsSmallOrderKeys(t *testing.T) {
	const smallOrder, noPoint = "small order", "no point on the curve"
	for key, want := range map[string]string{
		"0100000000000000000000000000000000000000000000000000000000000000": smallOrder,
		"0100000000000000000000000000000000000000000000000000000000000080": smallOrder,
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f": smallOrder,
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff": smallOrder,
		"0000000000000000000000000000000000000000000000000000000000000000": smallOrder,
		"0000000000000000000000000000000000000000000000000000000000000080": smallOrder,
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05": smallOrder,
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85": smallOrder,
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a": smallOrder,
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa": smallOrder,
		// Other encodings of 0 and 1.
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f": noPoint,
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f": noPoint,
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff": noPoint,
		"0200000000000000000000000000000000000000000000000000000000000000": noPoint,
	} {
		raw, err := hex.DecodeString(key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewStaticKey("k", "EdDSA", pkixPEM(t, ed25519.PublicKey(raw))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: NewStaticKey = %v, want an error with %q", key, err, want)
		}
	}
	for range 200 {
		public, _, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkEd25519(public); err != nil {
			t.Errorf("%x: %v", public, err)
		}
	}
}

// rfc7515Secret is the key of RFC 7515, appendix A.1.
const rfc7515Secret = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"

func rfcOctets(t *testing.T, text string) []byte {
	t.Helper()
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// rfc8037Key is the public key of RFC 8037, appendix A.2.
func rfc8037Key() ed25519.PublicKey {
	key, _ := hex.DecodeString("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
	return key
}

func TestNewStaticKey_RejectsWellKnownKeys(t *testing.T) {
	ec := func(x, y string) *ecdsa.PublicKey {
		key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, rfcOctets(t, x)...), rfcOctets(t, y)...))
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	rsaKey := func(n string) *rsa.PublicKey {
		return &rsa.PublicKey{N: new(big.Int).SetBytes(rfcOctets(t, n)), E: 65537}
	}
	std := func(text string) any {
		der, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		key, err := x509.ParsePKIXPublicKey(der)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	for _, tc := range []struct {
		source, alg string
		key         any
	}{
		{"RFC 7515, appendix A.2", "RS256", rsaKey("ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ")},
		{"RFC 7515, appendix A.3", "ES256", ec("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0")},
		{"RFC 7517, appendix A.2", "ES256", ec("MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM")},
		{"RFC 7517, appendix A.2", "RS256", rsaKey("0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw")},
		{"RFC 8037, appendix A.1", "EdDSA", rfc8037Key()},
		{"jwt.io", "ES256", std("MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEVs/o5+uQbTjL3chynL4wXgUg2R9q9UU8I5mEovUf86QZ7kOBIjJwqnzD1omageEHWwHdBO6B+dFabmdT9POxg==")},
		{"jwt.io", "RS256", std("MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAu1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0gunVTLw7onLRnrq0/IzW7yWR7QkrmBL7jTKEn5u+qKhbwKfBstIs+bMY2Zkp18gnTxKLxoS2tFczGkPLPgizskuemMghRniWaoLcyehkd3qqGElvW/VDL5AaWTg0nLVkjRo9z+40RQzuVaE8AkAFmxZzow3x+VJYKdjykkJ0iT9wCS0DRTXu269V264Vf/3jvredZiKRkgwlL9xNAwxXFg0x/XFw005UWVRIkdgcKWTjpBP2dPwVZ4WWC+9aGVd+Gyn1o0CLelf4rEjGoXbAAEgAqeGUxrcIlbjXfbcmwIDAQAB")},
	} {
		if _, err := NewStaticKey("k", tc.alg, pkixPEM(t, tc.key)); err == nil || !strings.Contains(err.Error(), "the key of "+tc.source) {
			t.Errorf("%s of %s: NewStaticKey = %v, want the error of a well-known key", tc.alg, tc.source, err)
		}
	}
}
