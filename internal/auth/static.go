package auth

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/caprouter/caprouter/internal/auth/jwk"
	"github.com/caprouter/caprouter/internal/auth/strictjwt"
	"github.com/caprouter/caprouter/internal/auth/weakkey"
)

// defaultTenantClaim is the tenant claim in tokens of static keys and of the
// router.
const defaultTenantClaim = "tenant"

// redacted replaces a secret in all output.
const redacted = "<redacted>"

// StaticKey is a key of the configuration. It never prints its secret.
type StaticKey struct {
	key *verifyKey
}

// NewStaticKey returns a key: EdDSA (Ed25519), ES256 (P-256) and RS256 with a
// public key in PEM, HS256 with the bytes of a secret. It returns an error if the
// key is weak, published or guessable. The caller may change material afterwards.
func NewStaticKey(kid, alg string, material []byte) (StaticKey, error) {
	if !strictjwt.ValidKeyID(kid) {
		return StaticKey{}, fmt.Errorf("key %q: a kid is 1 to %d printable ASCII characters", kid, strictjwt.MaxKeyIDBytes)
	}
	k, err := newStaticKey(alg, material)
	if err != nil {
		return StaticKey{}, fmt.Errorf("key %q: %w", kid, err)
	}
	k.kid, k.tenantClaim = kid, defaultTenantClaim
	return StaticKey{k}, nil
}

// ForIssuer returns the key for tokens of one issuer only; "" is any issuer.
func (k StaticKey) ForIssuer(issuer string) (StaticKey, error) {
	if err := strictjwt.CheckName(issuer); err != nil {
		return StaticKey{}, fmt.Errorf("key %q: the issuer %.64q cannot be in a token: it %w", k.key.kid, issuer, err)
	}
	restricted := *k.key
	restricted.issuer = issuer
	return StaticKey{&restricted}, nil
}

func newStaticKey(alg string, material []byte) (*verifyKey, error) {
	switch alg {
	case "HS256":
		if err := weakkey.CheckSecret(material); err != nil {
			return nil, fmt.Errorf("%w; make one with: openssl rand -base64 48", err)
		}
		secret := slices.Clone(material)
		return &verifyKey{alg: alg, key: sharedSecret(func() []byte { return secret })}, nil
	case "EdDSA", "ES256", "RS256":
		public, err := parsePublicPEM(material)
		if err != nil {
			return nil, err
		}
		if err := weakkey.CheckPublic(public); err != nil {
			return nil, err
		}
		if got := jwk.AlgorithmOf(public); got != alg {
			return nil, fmt.Errorf("it is a key for %s, not %s", got, alg)
		}
		return &verifyKey{alg: alg, key: public}, nil
	default:
		return nil, fmt.Errorf("algorithm %q is not one of %s", alg, strings.Join(strictjwt.Algorithms(), ", "))
	}
}

// Format prints the redaction for every verb.
func (StaticKey) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue logs the redaction.
func (StaticKey) LogValue() slog.Value { return slog.StringValue(redacted) }

// staticKeys are the keys of the configuration. They are immutable.
type staticKeys []*verifyKey

// findKey implements keySource with a linear search, because there are few keys.
func (s staticKeys) findKey(_ context.Context, kid, alg string, _ time.Time) (*verifyKey, error) {
	var found *verifyKey
	for _, k := range s {
		if k.alg != alg || kid != "" && k.kid != kid {
			continue
		}
		if found != nil {
			return nil, nil // no kid, and several keys of the algorithm
		}
		found = k
	}
	return found, nil
}

// hasIssuer reports whether one of the keys is for tokens of the issuer only.
func (s staticKeys) hasIssuer(issuer string) bool {
	return slices.ContainsFunc(s, func(k *verifyKey) bool { return k.issuer == issuer && issuer != "" })
}

func (staticKeys) isValid(*verifyKey, time.Time) bool { return true }

func (s staticKeys) isRevoked(kid string, _ time.Time) bool {
	return !slices.ContainsFunc(s, func(k *verifyKey) bool { return k.kid == kid })
}
