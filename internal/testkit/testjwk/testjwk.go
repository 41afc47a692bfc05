// Package testjwk makes public keys and key sets for tests.
package testjwk

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"maps"
	"math/big"
	"testing"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// Members are the members of one key.
type Members map[string]any

// With returns a copy in which one member is replaced; nil removes it.
func (m Members) With(name string, value any) Members {
	c := maps.Clone(m)
	c[name] = value
	if value == nil {
		delete(c, name)
	}
	return c
}

// Text returns v in JSON.
func Text(t testing.TB, v any) string {
	t.Helper()
	text, err := strictjson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// SetText returns a key set in JSON.
func SetText(t testing.TB, keys ...Members) string {
	t.Helper()
	return Text(t, map[string]any{"keys": append([]Members{}, keys...)})
}

// Base64URL encodes a value of a member.
func Base64URL(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// Of returns the whole public key as a provider publishes it.
func Of(t testing.TB, kid string, key crypto.PublicKey) Members {
	t.Helper()
	m := Members{"kid": kid, "use": "sig"}
	switch k := key.(type) {
	case ed25519.PublicKey:
		m["kty"], m["crv"], m["alg"], m["x"] = "OKP", "Ed25519", "EdDSA", Base64URL(k)
	case *ecdsa.PublicKey:
		point, err := k.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		m["kty"], m["crv"], m["alg"], m["x"], m["y"] = "EC", "P-256", "ES256", Base64URL(point[1:33]), Base64URL(point[33:])
	case *rsa.PublicKey:
		m["kty"], m["alg"], m["n"], m["e"] = "RSA", "RS256", Base64URL(k.N.Bytes()), Base64URL(big.NewInt(int64(k.E)).Bytes())
	default:
		t.Fatalf("unsupported public key %T", key)
	}
	return m
}

// Ed25519 returns a new public key.
func Ed25519(t testing.TB) ed25519.PublicKey {
	t.Helper()
	key, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// P256 returns a new public key.
func P256(t testing.TB) *ecdsa.PublicKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &key.PublicKey
}

// RSA returns a key of the size in bits with a modulus of unknown factors, which
// parsing does not need.
func RSA(t testing.TB, size int) *rsa.PublicKey {
	t.Helper()
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), uint(size-1)))
	if err != nil {
		t.Fatal(err)
	}
	n.SetBit(n, size-1, 1)
	n.SetBit(n, 0, 1)
	return &rsa.PublicKey{N: n, E: 65537}
}
