package auth

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

const (
	// maxNameBytes bounds the names in a token, because they are part of the logs
	// and records of every request.
	maxNameBytes = 256
	// maxLifetime bounds the lifetime of a token.
	maxLifetime = 24 * time.Hour
	// clockLeeway is the clock skew that is permitted for the time of issue. There
	// is none for the expiry, which the router's clock decides.
	clockLeeway = time.Minute
	// latestDate is the end of the year 9999, in seconds since 1970.
	latestDate = 253402300799

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

// claimNames returns the claims that are read from every token. The name of the
// tenant claim depends on the key.
func claimNames() []string {
	return []string{"iss", "sub", "aud", "exp", "nbf", "iat", "jti", "scope"}
}

// readClaims reads the claims that the router uses and ignores all others.
func readClaims(o jsonObject, t *trustedKey) (*claimSet, error) {
	c := &claimSet{}
	var err error
	if c.issuer, err = o.nameClaim("iss"); err != nil {
		return nil, err
	}
	if c.subject, err = o.nameClaim("sub"); err != nil {
		return nil, err
	}
	profile := &t.key.profile
	if id, err := o.stringMember("jti"); err != nil || id == "" && !profile.JTIOptional {
		return nil, errors.New("has no jti that is a string")
	}
	if c.audience, err = profile.readAudience(o); err != nil {
		return nil, err
	}
	if c.tokenValidity, err = o.validityClaims(); err != nil {
		return nil, err
	}
	if c.scopes, err = profile.readScopes(o); err != nil {
		return nil, err
	}
	if c.tenant, err = o.tenantClaim(t.tenantClaim); err != nil {
		return nil, err
	}
	// Without this check, all callers whose tenant is missing would share their
	// data.
	if t.needsTenant && c.tenant == "" {
		return nil, fmt.Errorf("names no tenant: its claim %q is missing or empty", t.tenantClaim)
	}
	return c, nil
}

// nameClaim returns a claim that identifies a principal.
func (o jsonObject) nameClaim(claim string) (string, error) {
	s, err := o.stringMember(claim)
	if err != nil || s == "" || !printableName(s) {
		return "", fmt.Errorf("has no %s that is a string of 1 to %d bytes without control characters", claim, maxNameBytes)
	}
	return s, nil
}

func printableName(s string) bool { return checkName(s) == nil }

// checkName returns an error if a name is too long or contains control characters.
// The name may be empty.
func checkName(s string) error {
	switch {
	case len(s) > maxNameBytes:
		return fmt.Errorf("is longer than %d bytes", maxNameBytes)
	case !utf8.ValidString(s):
		return errors.New("is not UTF-8")
	case strings.ContainsFunc(s, unicode.IsControl):
		return errors.New("has control characters")
	}
	return nil
}

// audienceClaim returns the single audience, a string or a list of one. A token
// with several audiences is rejected, because another of them could use it here.
func (o jsonObject) audienceClaim() (string, error) {
	if s, err := o.stringMember("aud"); err == nil && s != "" {
		return s, nil
	}
	var list []string
	if err := strictjson.Unmarshal(o["aud"], &list); err != nil || len(list) != 1 || list[0] == "" {
		return "", errors.New("has no aud that is one string")
	}
	return list[0], nil
}

func (o jsonObject) validityClaims() (tokenValidity, error) {
	var v tokenValidity
	var err error
	if v.issued, err = o.dateClaim("iat"); err != nil {
		return v, err
	}
	if v.expires, err = o.dateClaim("exp"); err != nil {
		return v, err
	}
	if _, ok := o["nbf"]; !ok {
		return v, nil
	}
	v.notBefore, err = o.dateClaim("nbf")
	return v, err
}

// dateClaim returns a claim that is a number of seconds, without its fraction (RFC
// 7519, section 2).
func (o jsonObject) dateClaim(claim string) (int64, error) {
	// Valid JSON that parses as a number is a JSON number.
	n, err := strconv.ParseFloat(string(o[claim]), 64)
	if err != nil || n < 1 || n > latestDate {
		return 0, fmt.Errorf("has no %s that is a number of seconds since 1970", claim)
	}
	return int64(n), nil
}

// scopeClaim returns the scopes of the claim, none if it is empty (RFC 6749, section
// 3.3).
func (o jsonObject) scopeClaim(claim string) ([]string, error) {
	s, err := o.stringMember(claim)
	if err != nil {
		return nil, errors.New("has a scope that is not a string")
	}
	if s == "" {
		return nil, nil
	}
	scopes := strings.Split(s, " ")
	for _, scope := range scopes {
		if !validScope(scope) {
			return nil, errors.New("has a scope that is not words of printable ASCII with one space between them")
		}
	}
	return scopes, nil
}

// validScope reports whether s is a scope-token of RFC 6749, section 3.3.
func validScope(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' })
}

// tenantClaim returns the claim with that name, "" if there is none or if tokens
// of this key have no tenant.
func (o jsonObject) tenantClaim(claim string) (string, error) {
	if claim == "" {
		return "", nil
	}
	if err := o.checkSpelling(claim); err != nil {
		return "", err
	}
	s, err := o.stringMember(claim)
	if err != nil || !printableName(s) {
		return "", fmt.Errorf("has a tenant that is not a string of at most %d bytes without control characters", maxNameBytes)
	}
	return s, nil
}

// checkSpelling returns an error if a claim has the name in another case.
func (o jsonObject) checkSpelling(claim string) error {
	for name := range o {
		if name != claim && strings.EqualFold(name, claim) {
			return fmt.Errorf("has a claim %s that is spelled in another case", claim)
		}
	}
	return nil
}

// checkTrust returns an error if issuer, audience or lifetime do not match the
// key, or if the token is not valid now.
func (c *claimSet) checkTrust(t *trustedKey, now clockReading) error {
	switch {
	case t.issuer != "" && c.issuer != t.issuer:
		return errors.New("names another issuer than its key belongs to")
	case t.key.profile.Audiences == nil && c.audience != t.audience:
		return errors.New("is for another audience")
	case c.expires <= c.issued:
		return errors.New("expires before it was issued")
	case c.expires-c.issued > int64(maxLifetime/time.Second):
		return fmt.Errorf("is good for longer than %d hours", maxLifetime/time.Hour)
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
