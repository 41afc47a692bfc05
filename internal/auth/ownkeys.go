package auth

import (
	"context"
	"time"

	"github.com/caprouter/caprouter/internal/auth/jwk"
	"github.com/caprouter/caprouter/internal/auth/keyring"
)

// ownKeys are the keys of the router's own tokens for callers. These tokens always have a
// kid.
type ownKeys struct{ ring *keyring.Ring }

// findKey returns the key with the kid, if its signing key is accepted.
func (o ownKeys) findKey(_ context.Context, kid, _ string, now time.Time) (*verifyKey, error) {
	public := o.ring.CallerPublicKey(kid, now)
	if public == nil {
		return nil, nil //nolint:nilnil // the source has no such key, see keySource
	}
	return &verifyKey{kid: kid, alg: jwk.EdDSA, key: public}, nil
}

// isValid reports whether the key belongs to a signing key whose tokens are accepted.
func (o ownKeys) isValid(k *verifyKey, now time.Time) bool {
	return o.ring.CallerPublicKey(k.kid, now) != nil
}

func (o ownKeys) isRevoked(kid string, now time.Time) bool {
	return o.ring.CallerPublicKey(kid, now) == nil
}
