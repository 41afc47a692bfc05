package auth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// VerifierConfig says whose tokens are taken.
type VerifierConfig struct {
	Audience string           // who we are in tokens of Keys and Own
	Keys     []StaticKey      // sign tokens of any issuer but those of Issuers
	Own      *Signer          // signs tokens we make for callers ourselves; nil = none
	Issuer   string           // who we are in tokens of Own
	Issuers  []*RemoteKeys    // identity providers
	Now      func() time.Time // nil = time.Now
}

// Verifier tells whom a token speaks for. It may be used from any goroutine.
type Verifier struct {
	audience string
	issuer   string
	static   staticKeys
	own      keySource // nil = none
	remote   map[string]keySource
	clock    *monotonicClock
	cache    *tokenCache
}

// NewVerifier returns a Verifier, or says why the configuration leaves it open
// which key is meant.
func NewVerifier(cfg VerifierConfig) (*Verifier, error) {
	v := &Verifier{audience: cfg.Audience, issuer: cfg.Issuer, remote: map[string]keySource{}}
	for _, k := range cfg.Keys {
		if k.key == nil {
			return nil, errors.New("verifier: a static key without a key: make it with NewStaticKey")
		}
		v.static = append(v.static, k.key)
	}
	if cfg.Own != nil {
		v.own = cfg.Own
	}
	for _, r := range cfg.Issuers {
		issuer := r.cfg.Issuer
		if _, twice := v.remote[issuer]; twice {
			return nil, fmt.Errorf("verifier: issuer %q is configured twice", issuer)
		}
		v.remote[issuer] = r
	}
	if err := v.validate(cfg.Now, tokenCacheBytes); err != nil {
		return nil, fmt.Errorf("verifier: %w", err)
	}
	return v, nil
}

// validate checks that no token could be meant for two keys, and makes what the
// verifier works with.
func (v *Verifier) validate(now func() time.Time, memoryBytes uint64) error {
	if now == nil {
		now = time.Now
	}
	kids := map[string]bool{}
	for _, k := range v.static {
		if kids[k.kid] {
			return fmt.Errorf("two keys have the kid %q: give each its own", k.kid)
		}
		kids[k.kid] = true
	}
	_, taken := v.remote[v.issuer]
	_, nameless := v.remote[""]
	switch {
	case v.audience == "":
		return errors.New("no audience: a token for anybody would be one for us")
	case !printableName(v.audience):
		return fmt.Errorf("no token could be for the audience %.64q: it %w", v.audience, checkName(v.audience))
	case v.own != nil && v.issuer == "":
		return errors.New("no issuer for our own tokens")
	case v.own != nil && !printableName(v.issuer):
		return fmt.Errorf("no token could be of the issuer %.64q: it %w", v.issuer, checkName(v.issuer))
	case v.own != nil && taken:
		return fmt.Errorf("issuer %q is our own: an identity provider needs another", v.issuer)
	case nameless:
		return errors.New("an identity provider without an issuer")
	case v.own == nil && len(v.static)+len(v.remote) == 0:
		return errors.New("no keys: nobody could get in")
	}
	v.clock = newMonotonicClock(now)
	var err error
	v.cache, err = newTokenCache(memoryBytes, v.clock)
	return err
}

// Verify returns whom the token speaks for. The Caller is shared by all who come
// with the same token: it must not be changed. An error is a [*contract.Error]
// with the code unauthenticated, whose message never repeats the token; before
// the signature holds it says nothing of what the token claims.
//
// What was verified once is remembered: until the token expires, and as long as
// its key counts.
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

// verifyToken does what takes time. What needs no key comes first, because it is
// cheap; then the signature; only then what the token says.
func (v *Verifier) verifyToken(ctx context.Context, token string, now clockReading) (*verifiedToken, error) {
	c, err := parseCompact(token)
	if err != nil {
		return nil, err
	}
	if c.typ != "at+jwt" && c.typ != "JWT" {
		return nil, errors.New(`has another typ in its header than "at+jwt" or "JWT"`)
	}
	o, err := parseObject(c.payload, claimNames()...)
	if err != nil {
		return nil, fmt.Errorf("has claims that are %w", err)
	}
	issuer, err := o.nameClaim("iss")
	if err != nil {
		return nil, err
	}
	t, err := v.findTrustedKey(ctx, c, issuer, now)
	if err != nil {
		return nil, err
	}
	if err := c.verifySignature(t.key); err != nil {
		return nil, err
	}
	claims, err := readClaims(o, t)
	if err != nil {
		return nil, err
	}
	if err := claims.checkTrust(t, now); err != nil {
		return nil, err
	}
	return &verifiedToken{caller: claims.newCaller(), validity: claims.tokenValidity, keys: t.keys, key: t.key}, nil
}

// trustedKey is a key, and what it vouches for.
type trustedKey struct {
	keys        keySource
	key         *verifyKey
	issuer      string // "" = any
	audience    string
	tenantClaim string
	needsTenant bool // a token that names none is refused
}

// findTrustedKey returns the key the token has to be signed with. What a token says of
// itself narrows which key that is, and can do no more: an identity provider's
// key vouches for its own issuer alone, and nobody else's key for it.
func (v *Verifier) findTrustedKey(ctx context.Context, c *compactToken, issuer string, now clockReading) (*trustedKey, error) {
	if keys, ok := v.remote[issuer]; ok {
		k, err := keys.findKey(ctx, c.kid, c.alg, now.wall)
		if err != nil {
			return nil, errors.New("cannot be checked: the keys of its issuer are not to be had now")
		}
		if k == nil {
			return nil, errUnknownKey
		}
		return &trustedKey{keys, k, issuer, k.audience, k.tenantClaim, k.tenantClaim != ""}, nil
	}
	if v.own != nil && c.kid != "" { // our own tokens name their key
		k, err := v.own.findKey(ctx, c.kid, c.alg, now.wall)
		if err != nil {
			return nil, errors.New("cannot be checked now")
		}
		if k != nil {
			return &trustedKey{v.own, k, v.issuer, v.audience, defaultTenantClaim, false}, nil
		}
	}
	k, err := v.static.findKey(ctx, c.kid, c.alg, now.wall)
	if err != nil || k == nil {
		return nil, errUnknownKey
	}
	return &trustedKey{v.static, k, "", v.audience, k.tenantClaim, false}, nil
}

var errUnknownKey = errors.New("is signed with a key that is not known here")
