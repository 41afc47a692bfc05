package auth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/golang-jwt/jwt/v5"

	"github.com/caprouter/caprouter/internal/auth/jwk"
)

// The algorithms of tokens for agents.
const (
	AlgEdDSA = "EdDSA" // with an Ed25519 key
	AlgES256 = "ES256" // with a P-256 key, for agents whose libraries do not have Ed25519
)

// es256KeyLabel separates the P-256 key from other derived keys.
const es256KeyLabel = "caprouter agent token ES256 v1"

// agentKey signs tokens for agents with one algorithm.
type agentKey struct {
	kid    string // RFC 7638 thumbprint
	jwk    []byte // the public half, as an entry of a key set
	point  []byte // the public half of a P-256 key, uncompressed (SEC 1)
	header string // encoded header of every token
	sign   func(signed []byte) ([]byte, error)
}

func newAgentKey(alg, kid string, jwk []byte, sign func(signed []byte) ([]byte, error)) (*agentKey, error) {
	header, err := accessTokenHeader(alg, kid)
	if err != nil {
		return nil, err
	}
	return &agentKey{kid: kid, jwk: jwk, header: header, sign: sign}, nil
}

// newES256Key returns the P-256 key that belongs to an Ed25519 key. It is derived
// (HKDF, RFC 5869) instead of stored, so that one file holds the secret of both, and
// both are rotated and revoked in one step. Both are always published, so that agents
// already have the key when the operator changes the algorithm, in either direction.
func newES256Key(key ed25519.PrivateKey) (*agentKey, error) {
	private, err := deriveP256(key.Seed())
	if err != nil {
		return nil, err
	}
	kid, entry, err := jwk.EncodeP256(&private.PublicKey)
	if err != nil {
		return nil, err
	}
	agent, err := newAgentKey(AlgES256, kid, entry, func(signed []byte) ([]byte, error) {
		return jwt.SigningMethodES256.Sign(string(signed), private)
	})
	if err == nil {
		agent.point, err = private.PublicKey.Bytes()
	}
	return agent, err
}

// deriveP256 derives a private key by rejection sampling (FIPS 186-5, appendix A.2.2):
// a candidate is rejected if it is 0 or not below the order of the curve, which one of
// 2^32 is.
func deriveP256(seed []byte) (*ecdsa.PrivateKey, error) {
	const candidates, scalarBytes = 4, 32
	derived, err := hkdf.Key(sha256.New, seed, nil, es256KeyLabel, candidates*scalarBytes)
	if err != nil {
		return nil, fmt.Errorf("derive P-256 key: %w", err)
	}
	for candidate := range slices.Chunk(derived, scalarBytes) {
		if key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), candidate); err == nil {
			return key, nil
		}
	}
	return nil, errors.New("derive P-256 key: no candidate is below the order of the curve") // one seed of 2^128
}

// agentKey returns the key that signs tokens for agents with the algorithm.
func (p *privateKey) agentKey(alg string) *agentKey {
	if alg == AlgES256 {
		return p.es256
	}
	return p.eddsa
}

// WithAgentAlg returns a Signer with the same keys that signs tokens for agents with
// alg instead of EdDSA. Everything else is signed as before.
func (s *Signer) WithAgentAlg(alg string) (*Signer, error) {
	if alg != AlgEdDSA && alg != AlgES256 {
		return nil, fmt.Errorf("algorithm %q of tokens for agents: want %s or %s", alg, AlgEdDSA, AlgES256)
	}
	return &Signer{store: s.store, agentAlg: alg}, nil
}
