package agentkit

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
)

// The algorithms of the router's tokens.
const (
	algEdDSA = "EdDSA"
	algES256 = "ES256"
)

// publicKey is a public key of the router. The algorithm belongs to the key; the header
// of a token must match it and selects nothing.
type publicKey struct {
	alg    string
	verify func(signed string, signature []byte) bool
}

// jwk is one key of a JWK set (RFC 7517): an Ed25519 key (RFC 8037) or a P-256 key
// (RFC 7518, section 6.2).
type jwk struct {
	Type      string `json:"kty"`
	Curve     string `json:"crv"`
	X         string `json:"x"`
	Y         string `json:"y"`
	KeyID     string `json:"kid"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
}

// parseKeySet returns the signing keys of a key set by kid. It skips keys of other
// types, because a newer router may have further types.
func parseKeySet(body []byte) (map[string]*publicKey, error) {
	var set struct {
		Keys []jwk `json:"keys"`
	}
	if err := decodeStrict(body, &set); err != nil {
		return nil, err
	}
	found := map[string]*publicKey{}
	for i := range set.Keys {
		k := &set.Keys[i]
		alg := k.typeAlg()
		if alg == "" || k.KeyID == "" || k.Use != "" && k.Use != "sig" || k.Algorithm != "" && k.Algorithm != alg {
			continue
		}
		key, err := k.parse(alg)
		if err != nil {
			return nil, fmt.Errorf("key %.40q: %w", k.KeyID, err)
		}
		if _, duplicate := found[k.KeyID]; duplicate {
			return nil, fmt.Errorf("two keys have the kid %.40q", k.KeyID)
		}
		found[k.KeyID] = key
	}
	if len(found) == 0 {
		return nil, errors.New("no Ed25519 or P-256 key in the key set")
	}
	return found, nil
}

// typeAlg returns the algorithm for keys of this type, "" if there is none.
func (k *jwk) typeAlg() string {
	switch {
	case k.Type == "OKP" && k.Curve == "Ed25519":
		return algEdDSA
	case k.Type == "EC" && k.Curve == "P-256":
		return algES256
	default:
		return ""
	}
}

func (k *jwk) parse(alg string) (*publicKey, error) {
	if alg == algES256 {
		return k.parseP256()
	}
	x, err := base64.RawURLEncoding.Strict().DecodeString(k.X)
	if err != nil || len(x) != ed25519.PublicKeySize {
		return nil, errors.New("it is not an Ed25519 key")
	}
	return &publicKey{alg: alg, verify: func(signed string, signature []byte) bool {
		return len(signature) == ed25519.SignatureSize && ed25519.Verify(x, []byte(signed), signature)
	}}, nil
}

// p256Bytes is the length of a coordinate, and of each half of a signature.
const p256Bytes = 32

func (k *jwk) parseP256() (*publicKey, error) {
	point := []byte{4} // uncompressed (SEC 1, section 2.3.3)
	for _, text := range []string{k.X, k.Y} {
		coordinate, err := base64.RawURLEncoding.Strict().DecodeString(text)
		if err != nil || len(coordinate) != p256Bytes {
			return nil, errors.New("it is not a P-256 key")
		}
		point = append(point, coordinate...)
	}
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point) // checks that the point is on the curve
	if err != nil {
		return nil, errors.New("it is not a P-256 key")
	}
	return &publicKey{alg: algES256, verify: func(signed string, signature []byte) bool {
		return verifyES256(key, signed, signature)
	}}, nil
}

// verifyES256 verifies a signature of RFC 7518, section 3.4: r and s, 32 bytes each.
func verifyES256(key *ecdsa.PublicKey, signed string, signature []byte) bool {
	if len(signature) != 2*p256Bytes {
		return false
	}
	digest := sha256.Sum256([]byte(signed))
	r, s := new(big.Int).SetBytes(signature[:p256Bytes]), new(big.Int).SetBytes(signature[p256Bytes:])
	return ecdsa.Verify(key, digest[:], r, s)
}
