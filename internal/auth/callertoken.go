package auth

import (
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/caprouter/caprouter/internal/auth/jwk"
)

// callerKeyLabel separates the key of callers' tokens from the signing key and
// from other derived keys.
const callerKeyLabel = "caprouter caller token v1"

// addCallerKey derives the key that signs callers' tokens (HKDF, RFC 5869). It is
// not in the published key set, so that no agent accepts a caller's token as one
// of the router's.
func (p *privateKey) addCallerKey(key ed25519.PrivateKey) error {
	seed, err := hkdf.Key(sha256.New, key.Seed(), nil, callerKeyLabel, ed25519.SeedSize)
	if err != nil {
		return fmt.Errorf("derive key of callers' tokens: %w", err)
	}
	derived := ed25519.NewKeyFromSeed(seed)
	p.caller = newCallerKey(derived.Public().(ed25519.PublicKey))
	if p.callerHeader, err = accessTokenHeader(AlgEdDSA, p.caller.kid); err != nil {
		return err
	}
	p.signCaller = func(signed string) ([]byte, error) { return jwt.SigningMethodEdDSA.Sign(signed, derived) }
	return nil
}

func newCallerKey(public ed25519.PublicKey) *verifyKey {
	return &verifyKey{kid: jwk.Thumbprint(public), alg: AlgEdDSA, key: public}
}

// CallerGrant is the content of a caller's token.
type CallerGrant struct {
	Issuer   string // the router
	Audience string // the router, as callers name it
	Subject  string // the caller
	Tenant   string // "" = none
	Scopes   []string
	Expires  time.Time // in whole seconds, rounded down; at most a day from now
}

// callerClaims are the claims of a caller's token.
type callerClaims struct {
	Issuer   string `json:"iss"`
	Audience string `json:"aud"`
	Subject  string `json:"sub"`
	Scope    string `json:"scope"`
	Tenant   string `json:"tenant,omitempty"`
	IssuedAt int64  `json:"iat"`
	Expires  int64  `json:"exp"`
	ID       string `json:"jti"`
}

// CallerToken returns a token for a caller of this router and its replicas. Other
// routers and agents do not accept it.
func (s *Signer) CallerToken(g CallerGrant) (string, error) {
	now := s.store.now()
	if err := g.Check(now); err != nil {
		return "", fmt.Errorf("token for caller %q: %w", g.Subject, err)
	}
	claims, err := encodeSegment(callerClaims{
		Issuer: g.Issuer, Audience: g.Audience, Subject: g.Subject,
		Scope: strings.Join(g.Scopes, " "), Tenant: g.Tenant,
		IssuedAt: now.Unix(), Expires: g.Expires.Unix(), ID: rand.Text(),
	})
	if err != nil {
		return "", err
	}
	key := s.store.viewAt(now).signing.private
	signed := key.callerHeader + "." + claims
	signature, err := key.signCaller(signed)
	if err != nil {
		return "", fmt.Errorf("sign token for caller %q: %w", g.Subject, err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// ClaimError reports a claim of a grant that no verifier would accept.
type ClaimError struct {
	Claim  string // "sub", "tenant", "scope", "iss" or "aud"
	reason string
}

func (e *ClaimError) Error() string { return e.Claim + " " + e.reason }

// maxScopeBytes bounds all scopes together, so that a token with the longest names
// stays below the verifier's limit.
const maxScopeBytes = 3 << 10

// Check returns an error if a token for the grant would be valid for any caller,
// or if no verifier would accept it.
func (g *CallerGrant) Check(now time.Time) error {
	life := g.Expires.Unix() - now.Unix() // as in the token
	switch {
	case g.Issuer == "":
		return errors.New("no issuer")
	case g.Audience == "":
		return errors.New("no audience")
	case g.Subject == "":
		return errors.New("no subject")
	case life <= 0:
		return errors.New("it would have expired already")
	case life > int64(maxCallerTokenLife/time.Second):
		return fmt.Errorf("it would live longer than %s", maxCallerTokenLife)
	}
	for _, claim := range [][2]string{{"iss", g.Issuer}, {"aud", g.Audience}, {"sub", g.Subject}, {"tenant", g.Tenant}} {
		if err := checkName(claim[1]); err != nil {
			return &ClaimError{claim[0], err.Error()}
		}
	}
	if i := slices.IndexFunc(g.Scopes, func(s string) bool { return !validScope(s) }); i >= 0 {
		return &ClaimError{"scope", fmt.Sprintf("%.64q: a scope is printable ASCII without spaces, quotes and backslashes", g.Scopes[i])}
	}
	if len(strings.Join(g.Scopes, " ")) > maxScopeBytes {
		return &ClaimError{"scope", fmt.Sprintf("is longer than %d bytes: name fewer", maxScopeBytes)}
	}
	return nil
}

// findKey returns the caller key with the kid, if its signing key is accepted.
// Tokens of this router always have a kid.
func (s *Signer) findKey(_ context.Context, kid, _ string, now time.Time) (*verifyKey, error) {
	if k := s.callerKey(kid, now); k != nil {
		return k, nil
	}
	return nil, nil //nolint:nilnil // the source has no such key, see keySource
}

// isValid reports whether the key belongs to a signing key whose tokens are
// accepted.
func (s *Signer) isValid(k *verifyKey, now time.Time) bool { return s.callerKey(k.kid, now) != nil }

func (s *Signer) isRevoked(kid string, now time.Time) bool { return s.callerKey(kid, now) == nil }

func (s *Signer) callerKey(kid string, now time.Time) *verifyKey {
	for _, k := range s.store.viewAt(now).accepted {
		if k.private.caller.kid == kid {
			return k.private.caller
		}
	}
	if k := s.store.peer(s.store.peers.Load().ofCallers(kid)); k != nil {
		return k.caller
	}
	return nil
}
