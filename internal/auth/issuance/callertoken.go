package issuance

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/auth/strictjwt"
	"github.com/caprouter/caprouter/internal/strictjson"
)

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
func (i *Issuer) CallerToken(g CallerGrant) (string, error) {
	now := time.Now()
	if err := g.Check(now); err != nil {
		return "", fmt.Errorf("token for caller %q: %w", g.Subject, err)
	}
	claims, err := strictjson.Marshal(callerClaims{
		Issuer: g.Issuer, Audience: g.Audience, Subject: g.Subject,
		Scope: strings.Join(g.Scopes, " "), Tenant: g.Tenant,
		IssuedAt: now.Unix(), Expires: g.Expires.Unix(), ID: rand.Text(),
	})
	if err != nil {
		return "", fmt.Errorf("encode token: %w", err)
	}
	token, err := signToken(i.keys.TokenKeys(now).Caller, claims)
	if err != nil {
		return "", fmt.Errorf("sign token for caller %q: %w", g.Subject, err)
	}
	return token, nil
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
	case life > int64(keyring.MaxCallerTokenLife/time.Second):
		return fmt.Errorf("it would be valid for more than %s", keyring.MaxCallerTokenLife)
	}
	for _, claim := range [][2]string{{"iss", g.Issuer}, {"aud", g.Audience}, {"sub", g.Subject}, {"tenant", g.Tenant}} {
		if err := strictjwt.CheckName(claim[1]); err != nil {
			return &ClaimError{claim[0], err.Error()}
		}
	}
	if i := slices.IndexFunc(g.Scopes, func(s string) bool { return !strictjwt.ValidScope(s) }); i >= 0 {
		return &ClaimError{"scope", fmt.Sprintf("%.64q: a scope is printable ASCII without spaces, quotes and backslashes", g.Scopes[i])}
	}
	if len(strings.Join(g.Scopes, " ")) > maxScopeBytes {
		return &ClaimError{"scope", fmt.Sprintf("is longer than %d bytes: name fewer", maxScopeBytes)}
	}
	return nil
}
