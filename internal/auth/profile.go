package auth

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/internal/auth/strictjwt"
)

// TokenProfile contains what an identity provider does differently than RFC 9068. The
// zero value is strict.
type TokenProfile struct {
	// Audiences are names of the router, of which a token needs one; it may then name
	// other audiences, too. nil = the audience of the issuer only.
	Audiences []string
	// ScopeClaim is the name of the claim with the scopes, a text or a list; "" = scope,
	// a text.
	ScopeClaim string
	// DefaultScopes are the scopes of a token without that claim.
	DefaultScopes []string
	// JTIOptional accepts tokens without jti.
	JTIOptional bool
	// Types are the accepted values of typ in the header, "" = none; nil = at+jwt and JWT.
	Types []string
	// TolerateHeaders are header parameters that are ignored: x5t and x5t#S256, which
	// repeat which key is meant.
	TolerateHeaders []string
}

func (p *TokenProfile) validate() error {
	for _, name := range p.TolerateHeaders {
		if !slices.Contains(strictjwt.CertificateHashes(), name) {
			return fmt.Errorf("the header %.64q is never tolerated, only %s", name, strings.Join(strictjwt.CertificateHashes(), " and "))
		}
	}
	for _, scope := range p.DefaultScopes {
		if !strictjwt.ValidScope(scope) {
			return fmt.Errorf("the default scope %.64q is not printable ASCII without spaces, quotes and backslashes", scope)
		}
	}
	for _, audience := range p.Audiences {
		if audience == "" || strictjwt.CheckName(audience) != nil {
			return fmt.Errorf("the audience %.64q cannot be in a token", audience)
		}
	}
	if strictjwt.CheckName(p.ScopeClaim) != nil || strings.TrimSpace(p.ScopeClaim) != p.ScopeClaim {
		return fmt.Errorf("scope claim %.64q is not the name of a claim", p.ScopeClaim)
	}
	return nil
}

// checkHeader returns an error if the issuer of the key does not write such headers.
func (p *TokenProfile) checkHeader(h *strictjwt.Header) error {
	types := p.Types
	if types == nil {
		types = []string{"at+jwt", "JWT"}
	}
	if !slices.Contains(types, h.Type) {
		return fmt.Errorf("has another typ in its header than %q", types)
	}
	for _, name := range h.Hashes {
		if !slices.Contains(p.TolerateHeaders, name) {
			return fmt.Errorf("has %s in its header, which is not accepted", name)
		}
	}
	return nil
}

// readScopes returns the scopes of a token.
func (p *TokenProfile) readScopes(m strictjwt.Claims) ([]string, error) {
	name := p.ScopeClaim
	if name == "" {
		name = "scope"
	}
	if _, ok := m[name]; !ok {
		return p.DefaultScopes, m.CheckSpelling(name)
	}
	list, ok := m.List(name)
	if p.ScopeClaim == "" || !ok {
		return m.Scopes(name)
	}
	if slices.ContainsFunc(list, func(s string) bool { return !strictjwt.ValidScope(s) }) {
		return nil, errors.New("has a scope that is not printable ASCII without spaces")
	}
	return list, nil
}

// readAudience returns the audience of the token that the router answers to.
func (p *TokenProfile) readAudience(m strictjwt.Claims) (string, error) {
	if p.Audiences == nil {
		return m.Audience()
	}
	list, ok := m.List("aud")
	if s, isText := m.Text("aud"); isText {
		list, ok = []string{s}, true
	}
	if !ok {
		return "", errors.New("has no aud that is a string or a list of strings")
	}
	for _, audience := range list {
		if slices.Contains(p.Audiences, audience) {
			return audience, nil
		}
	}
	return "", errors.New("is for another audience")
}
