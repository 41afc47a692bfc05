package weakkey_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"math/big"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/auth/weakkey"
)

func decodeBase64(t *testing.T, text string) []byte {
	t.Helper()
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestCheckPublic_RejectsSmallOrderKeys(t *testing.T) {
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
		if err := weakkey.CheckPublic(ed25519.PublicKey(raw)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: CheckPublic = %v, want an error with %q", key, err, want)
		}
	}
	for range 200 {
		public, _, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if err := weakkey.CheckPublic(public); err != nil {
			t.Errorf("%x: CheckPublic = %v, want nil for a random key", public, err)
		}
	}
}

func TestCheckPublic_RejectsPublishedKeys(t *testing.T) {
	ec := func(x, y string) *ecdsa.PublicKey {
		key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, decodeBase64(t, x)...), decodeBase64(t, y)...))
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	rsaKey := func(n string) *rsa.PublicKey {
		return &rsa.PublicKey{N: new(big.Int).SetBytes(decodeBase64(t, n)), E: 65537}
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
		source string
		key    any
	}{
		{"RFC 7515, appendix A.2", rsaKey("ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ")},
		{"RFC 7515, appendix A.3", ec("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0")},
		{"RFC 7517, appendix A.2", ec("MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM")},
		{"RFC 7517, appendix A.2", rsaKey("0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw")},
		{"RFC 8037, appendix A.1", ed25519.PublicKey(decodeBase64(t, "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"))},
		{"jwt.io", std("MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEVs/o5+uQbTjL3chynL4wXgUg2R9q9UU8I5mEovUf86QZ7kOBIjJwqnzD1omageEHWwHdBO6B+dFabmdT9POxg==")},
		{"jwt.io", std("MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAu1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0gunVTLw7onLRnrq0/IzW7yWR7QkrmBL7jTKEn5u+qKhbwKfBstIs+bMY2Zkp18gnTxKLxoS2tFczGkPLPgizskuemMghRniWaoLcyehkd3qqGElvW/VDL5AaWTg0nLVkjRo9z+40RQzuVaE8AkAFmxZzow3x+VJYKdjykkJ0iT9wCS0DRTXu269V264Vf/3jvredZiKRkgwlL9xNAwxXFg0x/XFw005UWVRIkdgcKWTjpBP2dPwVZ4WWC+9aGVd+Gyn1o0CLelf4rEjGoXbAAEgAqeGUxrcIlbjXfbcmwIDAQAB")},
	} {
		if err := weakkey.CheckPublic(tc.key); err == nil || !strings.Contains(err.Error(), "the key of "+tc.source) {
			t.Errorf("%T of %s: CheckPublic = %v, want the error of a published key", tc.key, tc.source, err)
		}
	}
}
