package keyring

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/caprouter/caprouter/internal/auth/jwk"
)

// The labels separate the derived keys from each other.
const (
	es256KeyLabel  = "caprouter agent token ES256 v1"
	callerKeyLabel = "caprouter caller token v1"
)

// TokenKeys are the keys that sign tokens.
type TokenKeys struct {
	EdDSA, ES256 *TokenKey // of tokens for agents, published in the key set
	Caller       *TokenKey // of tokens for callers, EdDSA, in no key set
}

// TokenKey signs tokens with one algorithm. It is immutable.
type TokenKey struct {
	ID        string // kid: the RFC 7638 thumbprint
	Algorithm string // jwk.EdDSA or jwk.ES256
	sign      func(input []byte) ([]byte, error)
}

// Sign returns the signature of the input of a token (RFC 7518, section 3.4; RFC 8037,
// section 3.1).
func (k *TokenKey) Sign(input []byte) ([]byte, error) { return k.sign(input) }

// TokenKeys returns the keys that sign tokens now.
func (r *Ring) TokenKeys(now time.Time) TokenKeys {
	return r.store.viewAt(now).signing.private.TokenKeys
}

// CallerPublicKey returns the public half of the key of tokens for callers with the kid,
// if its signing key or that of another replica is accepted; otherwise nil.
func (r *Ring) CallerPublicKey(kid string, now time.Time) ed25519.PublicKey {
	for _, k := range r.store.viewAt(now).accepted {
		if k.private.Caller.ID == kid {
			return k.private.callerPublic
		}
	}
	if k := r.store.peer(r.store.peers.Load().ofCallers(kid)); k != nil {
		return k.callerPublic
	}
	return nil
}

func newEd25519TokenKey(id string, key ed25519.PrivateKey) *TokenKey {
	return &TokenKey{ID: id, Algorithm: jwk.EdDSA, sign: func(input []byte) ([]byte, error) { return ed25519.Sign(key, input), nil }}
}

// addES256Key derives the P-256 key that signs tokens for agents (HKDF, RFC 5869). It is
// derived instead of stored, so that one file holds the secret of both, and both are
// rotated and revoked in one step. Both are always published, so that agents already have
// the key when the operator changes the algorithm, in either direction.
func (p *privateKey) addES256Key(key ed25519.PrivateKey) error {
	private, err := deriveP256(key.Seed())
	if err != nil {
		return err
	}
	id, entry, err := jwk.EncodeP256(&private.PublicKey)
	if err != nil {
		return err
	}
	p.es256Entry = entry
	p.ES256 = &TokenKey{ID: id, Algorithm: jwk.ES256, sign: func(input []byte) ([]byte, error) {
		return jwt.SigningMethodES256.Sign(string(input), private)
	}}
	p.es256Point, err = private.PublicKey.Bytes()
	return err
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

// addCallerKey derives the key that signs callers' tokens (HKDF, RFC 5869). It is
// not in the published key set, so that no agent accepts a caller's token as one
// of the router's.
func (p *privateKey) addCallerKey(key ed25519.PrivateKey) error {
	seed, err := hkdf.Key(sha256.New, key.Seed(), nil, callerKeyLabel, ed25519.SeedSize)
	if err != nil {
		return fmt.Errorf("derive key of callers' tokens: %w", err)
	}
	derived := ed25519.NewKeyFromSeed(seed)
	p.callerPublic = derived.Public().(ed25519.PublicKey)
	p.Caller = newEd25519TokenKey(jwk.Thumbprint(p.callerPublic), derived)
	return nil
}
