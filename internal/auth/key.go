package auth

import (
	"context"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// verifyKey is one key that callers' tokens may be signed with. The algorithm
// belongs to the key: what a token's header says is compared with it and chooses
// nothing.
type verifyKey struct {
	kid    string
	method jwt.SigningMethod // EdDSA, ES256, RS256 or HS256
	key    any               // ed25519.PublicKey, *ecdsa.PublicKey, *rsa.PublicKey or []byte

	issuer      string // the only iss it vouches for; "" = any
	audience    string // the only aud
	tenantClaim string // names the claim with the tenant
}

// keySource finds keys by what an unverified token says of itself.
type keySource interface {
	// find returns the key the token should be signed with, nil when the source
	// has none. kid is "" when the token names none: then the only key of the
	// algorithm is meant, and none if there are several. An error says why the
	// source cannot tell now.
	findKey(ctx context.Context, kid, alg string, now time.Time) (*verifyKey, error)

	// holds reports whether the key still counts: it asked for each token that
	// was verified before, so it does not allocate and does not block.
	isValid(k *verifyKey, now time.Time) bool
}
