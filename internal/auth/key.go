package auth

import (
	"context"
	"crypto"
	"time"
)

// verifyKey is a key that verifies callers' tokens. The algorithm belongs to the
// key; the header of a token must match it and selects nothing.
type verifyKey struct {
	kid string
	alg string // EdDSA, ES256, RS256 or HS256
	key any    // ed25519.PublicKey, *ecdsa.PublicKey, *rsa.PublicKey or sharedSecret

	issuer      string // the only accepted iss; "" = any
	audience    string // the only accepted aud
	tenantClaim string // name of the claim with the tenant
	profile     TokenProfile
}

// sharedSecret returns the secret of HS256. It is a closure, because fmt prints
// unexported fields, also through pointers.
type sharedSecret func() []byte

// material returns the key as its method needs it.
func (k *verifyKey) material() any {
	if secret, ok := k.key.(sharedSecret); ok {
		return secret()
	}
	return k.key
}

// keySource finds keys by the unverified header of a token.
type keySource interface {
	// findKey returns the key for the token, nil if the source has none. If kid is
	// "", it returns the only key of the algorithm, or nil if there are several.
	// It returns an error if the source cannot decide now.
	findKey(ctx context.Context, kid, alg string, now time.Time) (*verifyKey, error)

	// isValid reports whether the key is still accepted. It is called for every
	// cached token, so it does not allocate and does not block.
	isValid(k *verifyKey, now time.Time) bool

	// isRevoked reports whether the source is certain that it accepts no key with the
	// kid.
	isRevoked(kid string, now time.Time) bool
}

// equalKeys reports whether two public keys are equal.
func equalKeys(a, b any) bool {
	k, ok := a.(interface{ Equal(x crypto.PublicKey) bool })
	return ok && k.Equal(b)
}
