package auth

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"

	"github.com/caprouter/caprouter/contract"
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

// claimMap contains the claims of a token as the parser decodes them: numbers as
// jsonNumber, lists as []any. The dates and lists that jwt.MapClaims returns are not
// used: a claim of another type is an empty list there, and 1e400 is a date.
type claimMap jwt.MapClaims

// jsonNumber is the text of a number. Float64 returns an error if it is out of range.
type jsonNumber interface{ Float64() (float64, error) }

// text returns a claim that is a text, "" if it is absent. null is not a text.
func (m claimMap) text(claim string) (s string, ok bool) {
	value, found := m[claim]
	if !found {
		return "", true
	}
	s, ok = value.(string)
	return s, ok
}

// list returns a claim that is a list of texts.
func (m claimMap) list(claim string) (texts []string, ok bool) {
	values, ok := m[claim].([]any)
	for _, value := range values {
		s, isText := value.(string)
		texts, ok = append(texts, s), ok && isText
	}
	return texts, ok
}

// readClaims reads the claims that the router uses and ignores all others.
func readClaims(m claimMap, t *trustedKey) (*claimSet, error) {
	c := &claimSet{}
	var err error
	if c.issuer, err = m.nameClaim("iss"); err != nil {
		return nil, err
	}
	if c.subject, err = m.nameClaim("sub"); err != nil {
		return nil, err
	}
	profile := &t.key.profile
	if id, ok := m.text("jti"); !ok || id == "" && !profile.JTIOptional {
		return nil, errors.New("has no jti that is a string")
	}
	if c.audience, err = profile.readAudience(m); err != nil {
		return nil, err
	}
	if c.tokenValidity, err = m.validityClaims(); err != nil {
		return nil, err
	}
	if c.scopes, err = profile.readScopes(m); err != nil {
		return nil, err
	}
	if c.tenant, err = m.tenantClaim(t.tenantClaim); err != nil {
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
func (m claimMap) nameClaim(claim string) (string, error) {
	s, ok := m.text(claim)
	if !ok || s == "" || !printableName(s) {
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
func (m claimMap) audienceClaim() (string, error) {
	audience, ok := m.text("aud")
	if list, isList := m.list("aud"); isList && len(list) == 1 {
		audience, ok = list[0], true
	}
	if !ok || audience == "" {
		return "", errors.New("has no aud that is one string")
	}
	return audience, nil
}

func (m claimMap) validityClaims() (tokenValidity, error) {
	var v tokenValidity
	var err error
	if v.issued, err = m.dateClaim("iat"); err != nil {
		return v, err
	}
	if v.expires, err = m.dateClaim("exp"); err != nil {
		return v, err
	}
	if _, ok := m["nbf"]; !ok {
		return v, nil
	}
	v.notBefore, err = m.dateClaim("nbf")
	return v, err
}

// dateClaim returns a claim that is a number of seconds, without its fraction (RFC
// 7519, section 2).
func (m claimMap) dateClaim(claim string) (int64, error) {
	if number, ok := m[claim].(jsonNumber); ok {
		if n, err := number.Float64(); err == nil && n >= 1 && n <= latestDate {
			return int64(n), nil
		}
	}
	return 0, fmt.Errorf("has no %s that is a number of seconds since 1970", claim)
}

// scopeClaim returns the scopes of the claim, none if it is empty (RFC 6749, section
// 3.3).
func (m claimMap) scopeClaim(claim string) ([]string, error) {
	s, ok := m.text(claim)
	if !ok {
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
func (m claimMap) tenantClaim(claim string) (string, error) {
	if claim == "" {
		return "", nil
	}
	if err := m.checkSpelling(claim); err != nil {
		return "", err
	}
	s, ok := m.text(claim)
	if !ok || !printableName(s) {
		return "", fmt.Errorf("has a tenant that is not a string of at most %d bytes without control characters", maxNameBytes)
	}
	return s, nil
}

// checkSpelling returns an error if a claim has the name in another case.
func (m claimMap) checkSpelling(claim string) error {
	for name := range m {
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
