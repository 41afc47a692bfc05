package auth

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/auth/strictjwt"
)

const (
	// clockLeeway is the clock skew that is permitted for the time of issue. There
	// is none for the expiry, which the router's clock decides.
	clockLeeway = time.Minute

	scopeAllAgents = "agent:*"
)

// claimSet contains the claims of a token that the router uses.
type claimSet struct {
	issuer, audience string
	subject, tenant  string
	scopes           []string
	tokenValidity
}

// tokenValidity is the period in which a token may be used, in seconds since 1970.
type tokenValidity struct {
	issued    int64
	notBefore int64 // 0 = since it was issued
	expires   int64
}

// readClaims reads the claims that the router uses and ignores all others.
func readClaims(m strictjwt.Claims, t *trustedKey) (*claimSet, error) {
	c := &claimSet{}
	var err error
	if c.issuer, err = m.Name("iss"); err != nil {
		return nil, err
	}
	if c.subject, err = m.Name("sub"); err != nil {
		return nil, err
	}
	profile := &t.key.profile
	if id, ok := m.Text("jti"); !ok || id == "" && !profile.JTIOptional {
		return nil, errors.New("has no jti that is a string")
	}
	if c.audience, err = profile.readAudience(m); err != nil {
		return nil, err
	}
	if c.tokenValidity, err = validityClaims(m); err != nil {
		return nil, err
	}
	if c.scopes, err = profile.readScopes(m); err != nil {
		return nil, err
	}
	if c.tenant, err = tenantClaim(m, t.tenantClaim); err != nil {
		return nil, err
	}
	// Without this check, all callers whose tenant is missing would share their
	// data.
	if t.needsTenant && c.tenant == "" {
		return nil, fmt.Errorf("has no tenant: its claim %q is missing or empty", t.tenantClaim)
	}
	return c, nil
}

// validityClaims returns the period of the token.
func validityClaims(m strictjwt.Claims) (tokenValidity, error) {
	var v tokenValidity
	var err error
	if v.issued, err = m.Date("iat"); err != nil {
		return v, err
	}
	if v.expires, err = m.Date("exp"); err != nil {
		return v, err
	}
	if _, ok := m["nbf"]; !ok {
		return v, nil
	}
	v.notBefore, err = m.Date("nbf")
	return v, err
}

// tenantClaim returns the claim with that name, "" if there is none or if tokens
// of this key have no tenant.
func tenantClaim(m strictjwt.Claims, claim string) (string, error) {
	if claim == "" {
		return "", nil
	}
	if err := m.CheckSpelling(claim); err != nil {
		return "", err
	}
	s, ok := m.Text(claim)
	if !ok || strictjwt.CheckName(s) != nil {
		return "", fmt.Errorf("has a tenant that is not a string of at most %d bytes without control characters", strictjwt.MaxNameBytes)
	}
	return s, nil
}

// checkTrust returns an error if issuer, audience or lifetime do not match the
// key, or if the token is not valid now.
func (c *claimSet) checkTrust(t *trustedKey, now clockReading) error {
	switch {
	case t.issuer != "" && c.issuer != t.issuer:
		return errors.New("has another iss than the issuer of its key")
	case t.key.profile.Audiences == nil && c.audience != t.audience:
		return errors.New("is for another audience")
	case c.expires <= c.issued:
		return errors.New("expires before it was issued")
	case c.expires-c.issued > int64(keyring.MaxCallerTokenLife/time.Second):
		return fmt.Errorf("is valid for more than %d hours", keyring.MaxCallerTokenLife/time.Hour)
	}
	return c.checkTime(now)
}

// checkTime returns an error if the token is not valid now. It is called for every
// use of the token.
func (v *tokenValidity) checkTime(now clockReading) error {
	soon := now.wall.Unix() + int64(clockLeeway/time.Second)
	switch {
	// The token is already invalid in the second of its expiry.
	case v.expires <= now.latest.Unix():
		return errors.New("has expired")
	case v.issued > soon:
		return errors.New("was issued in the future")
	case v.notBefore > soon:
		return errors.New("is not valid yet")
	}
	return nil
}

// newCaller returns the caller that the token identifies.
func (c *claimSet) newCaller() *contract.Caller {
	return &contract.Caller{
		Subject: c.subject, Issuer: c.issuer, Tenant: c.tenant,
		Scopes: c.scopes, AllAgents: slices.Contains(c.scopes, scopeAllAgents),
	}
}
