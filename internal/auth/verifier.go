package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/auth/strictjwt"
)

// VerifierConfig lists the keys and issuers that a Verifier accepts.
type VerifierConfig struct {
	Audience string           // the router's name in tokens of Keys and Own
	Keys     []StaticKey      // sign tokens of any issuer except those in Issuers; see StaticKey.ForIssuer
	Own      *keyring.Ring    // signs the router's own tokens for callers; nil = none
	Issuer   string           // issuer of the tokens of Own
	Issuers  []*RemoteKeys    // identity providers
	Logger   *slog.Logger     // masks personal data and secrets; nil = silent
	Now      func() time.Time // nil = time.Now
}

// Verifier identifies callers by their tokens. It is safe for concurrent use.
type Verifier struct {
	audience string
	issuer   string
	static   staticKeys
	own      keySource // nil = none
	remote   map[string]keySource
	parser   *strictjwt.Parser
	clock    *monotonicClock
	cache    *tokenCache

	unknownIssuers *unknownIssuerLog
}

// NewVerifier returns a Verifier, or an error if the configuration is ambiguous
// about the key of a token.
func NewVerifier(cfg VerifierConfig) (*Verifier, error) {
	v := &Verifier{audience: cfg.Audience, issuer: cfg.Issuer, remote: map[string]keySource{}}
	for _, k := range cfg.Keys {
		if k.key == nil {
			return nil, errors.New("verifier: a static key without a key: make it with NewStaticKey")
		}
		v.static = append(v.static, k.key)
	}
	if cfg.Own != nil {
		v.own = ownKeys{cfg.Own}
	}
	for _, r := range cfg.Issuers {
		issuer := r.cfg.Issuer
		if _, twice := v.remote[issuer]; twice {
			return nil, fmt.Errorf("verifier: issuer %q is configured twice", issuer)
		}
		v.remote[issuer] = r
	}
	if err := cmp.Or(v.check(), v.initialize(cfg.Now, tokenCacheBytes)); err != nil {
		return nil, fmt.Errorf("verifier: %w", err)
	}
	if cfg.Logger != nil {
		v.unknownIssuers.logger = cfg.Logger
	}
	return v, nil
}

// check returns an error if two keys could match the same token, or if no token could be
// accepted.
func (v *Verifier) check() error {
	kids := map[string]bool{}
	for _, k := range v.static {
		if kids[k.kid] {
			return fmt.Errorf("two keys have the kid %q: give each its own", k.kid)
		}
		kids[k.kid] = true
		if _, taken := v.remote[k.issuer]; taken && k.issuer != "" {
			return fmt.Errorf("the key %q is for the issuer %q, whose tokens are signed by the keys of its key set only", k.kid, k.issuer)
		}
	}
	_, taken := v.remote[v.issuer]
	_, nameless := v.remote[""]
	switch {
	case v.audience == "":
		return errors.New("no audience: tokens for other services would be accepted")
	case strictjwt.CheckName(v.audience) != nil:
		return fmt.Errorf("the audience %.64q cannot be in a token: it %w", v.audience, strictjwt.CheckName(v.audience))
	case v.own != nil && v.issuer == "":
		return errors.New("no issuer for our own tokens")
	case v.own != nil && strictjwt.CheckName(v.issuer) != nil:
		return fmt.Errorf("the issuer %.64q cannot be in a token: it %w", v.issuer, strictjwt.CheckName(v.issuer))
	case v.own != nil && taken:
		return fmt.Errorf("issuer %q is our own: an identity provider needs another", v.issuer)
	case nameless:
		return errors.New("an identity provider without an issuer")
	case v.own == nil && len(v.static)+len(v.remote) == 0:
		return errors.New("no keys: every caller would be rejected")
	}
	return nil
}

// initialize creates the parts that do not depend on the keys. The cache of tokens gets at
// most cacheBytes.
func (v *Verifier) initialize(now func() time.Time, cacheBytes uint64) error {
	if now == nil {
		now = time.Now
	}
	v.parser = strictjwt.NewParser()
	v.clock = newMonotonicClock(now)
	v.unknownIssuers = &unknownIssuerLog{logger: slog.New(slog.DiscardHandler), configured: slices.Sorted(maps.Keys(v.remote))}
	var err error
	v.cache, err = newTokenCache(cacheBytes, v.clock)
	return err
}

// Verify returns the caller that the token identifies. The Caller is shared by all
// requests with the same token and must not be changed. An error is a
// [*contract.Error] with the code unauthenticated. Its message never contains the
// token, and no claim if the signature is not verified.
//
// Results are cached until the token expires or its key is no longer accepted.
func (v *Verifier) Verify(ctx context.Context, token string) (*contract.Caller, error) {
	now := v.clock.readClock()
	if r, ok := v.cache.lookupToken(token); ok {
		if r.validity.checkTime(now) == nil && r.keys.isValid(r.key, now.wall) {
			return r.caller, nil
		}
		v.cache.removeToken(token)
	}
	r, err := v.verifyToken(ctx, token, now)
	if err != nil {
		return nil, &contract.Error{Code: contract.CodeUnauthenticated, Message: "the token " + err.Error()}
	}
	v.cache.storeToken(token, r)
	return r.caller, nil
}

// IsKeyRevoked reports whether the key that signed the token of a caller, some time
// ago, is not accepted any more.
func (v *Verifier) IsKeyRevoked(caller *contract.Caller) bool {
	now := v.clock.readClock().wall
	keys, remote := v.remote[caller.Issuer]
	switch {
	case caller.KeyID == "": // the only key of its issuer, which has no name
		return false
	case remote:
		return keys.isRevoked(caller.KeyID, now)
	case caller.Issuer == v.issuer && v.own != nil && !v.own.isRevoked(caller.KeyID, now):
		return false
	}
	return v.static.isRevoked(caller.KeyID, now)
}

// verifyToken performs the complete verification: the form, the signature, and then the
// claims.
func (v *Verifier) verifyToken(ctx context.Context, token string, now clockReading) (*verifiedToken, error) {
	var t *trustedKey
	m, err := v.parser.Parse(token, func(h *strictjwt.Header, unverified strictjwt.Claims) (key strictjwt.Key, err error) {
		if t, err = v.findTrustedKey(ctx, h, unverified, now); err != nil {
			return key, err
		}
		return strictjwt.Key{Algorithm: t.key.alg, Material: t.key.material()}, nil
	})
	if err != nil {
		return nil, err
	}
	claims, err := readClaims(m, t)
	if err != nil {
		return nil, err
	}
	if err := claims.checkTrust(t, now); err != nil {
		return nil, err
	}
	caller := claims.newCaller()
	caller.KeyID = t.key.kid
	return &verifiedToken{caller: caller, validity: claims.tokenValidity, keys: t.keys, key: t.key}, nil
}

// trustedKey is a key with the claims that its tokens may have.
type trustedKey struct {
	keys        keySource
	key         *verifyKey
	issuer      string // "" = any
	audience    string
	tenantClaim string
	needsTenant bool // tokens without a tenant are rejected
}

// findTrustedKey returns the key that must have signed the token, if the header is one
// that the issuer of the key writes.
func (v *Verifier) findTrustedKey(ctx context.Context, h *strictjwt.Header, m strictjwt.Claims, now clockReading) (*trustedKey, error) {
	issuer, err := m.Name("iss")
	if err != nil {
		return nil, err
	}
	t, err := v.findKey(ctx, h, issuer, now)
	if err != nil {
		return nil, err
	}
	return t, t.key.profile.checkHeader(h)
}

// findKey returns the key for a token of the issuer. The unverified content of a token
// only narrows the search: the key of an identity provider is valid for its own issuer
// only, and no other key is valid for that issuer.
func (v *Verifier) findKey(ctx context.Context, h *strictjwt.Header, issuer string, now clockReading) (*trustedKey, error) {
	if keys, ok := v.remote[issuer]; ok {
		k, err := keys.findKey(ctx, h.KeyID, h.Algorithm, now.wall)
		if err != nil {
			return nil, errors.New("cannot be checked: the keys of its issuer are not available now")
		}
		if k == nil {
			return nil, errUnknownKey
		}
		return &trustedKey{
			keys: keys, key: k, issuer: issuer, audience: k.audience, tenantClaim: k.tenantClaim, needsTenant: k.tenantClaim != "",
		}, nil
	}
	if v.own != nil && h.KeyID != "" { // the router's own tokens always have a kid
		k, err := v.own.findKey(ctx, h.KeyID, h.Algorithm, now.wall)
		if err != nil {
			return nil, errors.New("cannot be checked now")
		}
		if k != nil {
			return &trustedKey{keys: v.own, key: k, issuer: v.issuer, audience: v.audience, tenantClaim: defaultTenantClaim}, nil
		}
	}
	k, err := v.static.findKey(ctx, h.KeyID, h.Algorithm, now.wall)
	if err != nil || k == nil {
		if issuer != v.issuer && !v.static.hasIssuer(issuer) {
			v.unknownIssuers.report(ctx, issuer)
		}
		return nil, errUnknownKey
	}
	return &trustedKey{keys: v.static, key: k, issuer: k.issuer, audience: v.audience, tenantClaim: k.tenantClaim}, nil
}

var errUnknownKey = errors.New("is signed with a key that is not known here")
