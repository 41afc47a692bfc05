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
	// maxNameBytes bounds who a token speaks of: such names go into logs and
	// records with every request.
	maxNameBytes = 256
	// maxLifetime is how long a token may be good for.
	maxLifetime = 24 * time.Hour
	// clockLeeway is how far the clock of who made a token may be ahead of ours.
	// There is none for its end: it has expired when we say so.
	clockLeeway = time.Minute
	// latestDate is the end of the year 9999, in seconds since 1970.
	latestDate = 253402300799

	scopeAllAgents = "agent:*"
)

// claimSet is what a token says of its bearer and of itself.
type claimSet struct {
	issuer, audience string
	subject, tenant  string
	scopes           []string
	tokenValidity
}

// tokenValidity is when a token may be used, in seconds since 1970.
type tokenValidity struct {
	issued    int64
	notBefore int64 // 0 = since it was issued
	expires   int64
}

// claimNames are those every token's claims are looked at for. The name of the
// tenant's claim depends on the key.
func claimNames() []string {
	return []string{"iss", "sub", "aud", "exp", "nbf", "iat", "jti", "scope"}
}

// readClaims reads what we look at; what else a token claims is ignored.
func readClaims(o jsonObject, t *trustedKey) (*claimSet, error) {
	c := &claimSet{}
	var err error
	if c.issuer, err = o.nameClaim("iss"); err != nil {
		return nil, err
	}
	if c.subject, err = o.nameClaim("sub"); err != nil {
		return nil, err
	}
	if id, err := o.stringMember("jti"); err != nil || id == "" {
		return nil, errors.New("has no jti that is a string")
	}
	if c.audience, err = o.audienceClaim(); err != nil {
		return nil, err
	}
	if c.tokenValidity, err = o.validityClaims(); err != nil {
		return nil, err
	}
	if c.scopes, err = o.scopeClaim(); err != nil {
		return nil, err
	}
	if c.tenant, err = o.tenantClaim(t.tenantClaim); err != nil {
		return nil, err
	}
	// Else all whose tenant is not known would share one, and what is in it.
	if t.needsTenant && c.tenant == "" {
		return nil, fmt.Errorf("names no tenant: its claim %q is missing or empty", t.tenantClaim)
	}
	return c, nil
}

// nameClaim returns a claim that says who somebody is.
func (o jsonObject) nameClaim(claim string) (string, error) {
	s, err := o.stringMember(claim)
	if err != nil || s == "" || !printableName(s) {
		return "", fmt.Errorf("has no %s that is a string of 1 to %d bytes without control characters", claim, maxNameBytes)
	}
	return s, nil
}

func printableName(s string) bool { return checkName(s) == nil }

// checkName says why no claim with a name could be this; it may be empty.
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

// audienceClaim returns the one audience, alone or in a list. A token for several is
// one that another of them could use here.
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

// dateClaim returns a claim that is a number of seconds, without its fraction
// (RFC 7519, section 2).
func (o jsonObject) dateClaim(claim string) (int64, error) {
	// What is valid JSON and parses as a number is a JSON number.
	n, err := strconv.ParseFloat(string(o[claim]), 64)
	if err != nil || n < 1 || n > latestDate {
		return 0, fmt.Errorf("has no %s that is a number of seconds since 1970", claim)
	}
	return int64(n), nil
}

// scopeClaim returns the words of the claim scope, none when it is absent or empty
// (RFC 6749, section 3.3).
func (o jsonObject) scopeClaim() ([]string, error) {
	s, err := o.stringMember("scope")
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

// validScope is the scope-token of RFC 6749, section 3.3.
func validScope(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' })
}

// tenantClaim returns the claim of that name, "" when there is none or the key's
// tokens name no tenant.
func (o jsonObject) tenantClaim(claim string) (string, error) {
	if claim == "" {
		return "", nil
	}
	for name := range o {
		if name != claim && strings.EqualFold(name, claim) {
			return "", errors.New("has a tenant claim that is spelled in another case")
		}
	}
	s, err := o.stringMember(claim)
	if err != nil || !printableName(s) {
		return "", fmt.Errorf("has a tenant that is not a string of at most %d bytes without control characters", maxNameBytes)
	}
	return s, nil
}

// checkTrust says what keeps the token from being good for us, now.
func (c *claimSet) checkTrust(t *trustedKey, now clockReading) error {
	switch {
	case t.issuer != "" && c.issuer != t.issuer:
		return errors.New("names another issuer than its key belongs to")
	case c.audience != t.audience:
		return errors.New("is for another audience")
	case c.expires <= c.issued:
		return errors.New("expires before it was issued")
	case c.expires-c.issued > int64(maxLifetime/time.Second):
		return fmt.Errorf("is good for longer than %d hours", maxLifetime/time.Hour)
	}
	return c.tokenValidity.checkTime(now)
}

// checkTime says why the time for the token is not now. It is asked again for every
// use.
func (v *tokenValidity) checkTime(now clockReading) error {
	soon := now.wall.Unix() + int64(clockLeeway/time.Second)
	switch {
	// A second in which a token expires is not its own any more.
	case v.expires <= now.latest.Unix():
		return errors.New("has expired")
	case v.issued > soon:
		return errors.New("was issued in the future")
	case v.notBefore > soon:
		return errors.New("is not valid yet")
	}
	return nil
}

// newCaller returns whom the token speaks for.
func (c *claimSet) newCaller() *contract.Caller {
	return &contract.Caller{
		Subject: c.subject, Issuer: c.issuer, Tenant: c.tenant,
		Scopes: c.scopes, AllAgents: slices.Contains(c.scopes, scopeAllAgents),
	}
}
