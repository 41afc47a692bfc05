package config

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/caprouter/caprouter/internal/auth"
	"github.com/caprouter/caprouter/internal/auth/jwk"
	"github.com/caprouter/caprouter/internal/egress"
)

// The values of auth.mode.
const (
	AuthNone = "none" // loopback only: the local caller has all rights
	AuthJWT  = "jwt"  // callers send tokens
)

// Auth specifies how callers are authenticated.
type Auth struct {
	Mode     string   `yaml:"mode" validate:"oneof=none jwt"`
	Issuer   string   `yaml:"issuer" validate:"required"`   // "iss" of tokens that this router mints
	Audience string   `yaml:"audience" validate:"required"` // "aud" of tokens of callers
	Keys     []Key    `yaml:"keys" validate:"dive"`         // verify tokens of any issuer
	Issuers  []Issuer `yaml:"issuers" validate:"dive"`      // identity providers with key sets at URLs

	AgentTokens AgentTokens `yaml:"agent_tokens"`

	// StopOnRevoke ends the waiting requests of callers whose key was revoked.
	StopOnRevoke bool `yaml:"stop_on_revoke"`
}

// AgentTokens specifies the tokens that the router signs for agents.
type AgentTokens struct {
	Alg string `yaml:"alg" validate:"oneof=EdDSA ES256"` // EdDSA or ES256
}

func defaultAuthConfig() Auth {
	return Auth{
		Mode: AuthNone, Issuer: "caprouter", Audience: "caprouter", Keys: []Key{}, Issuers: []Issuer{},
		AgentTokens: AgentTokens{Alg: jwk.EdDSA},
	}
}

// RequiresTokens reports whether callers must send tokens.
func (c *Config) RequiresTokens() bool { return c.Auth.Mode != AuthNone }

// TenantShare returns the part of the store that one tenant may use. Without tokens
// there is one caller.
func (c *Config) TenantShare() float64 {
	if c.Auth.Mode == AuthNone {
		return 1
	}
	return c.Store.TenantShare
}

// LocalAddresses returns the addresses that agents may register without being listed in
// dispatch.allow_private. Without authentication, all callers are programs of this
// machine, which reach its loopback addresses themselves.
func (c *Config) LocalAddresses() []netip.Prefix {
	if c.Auth.Mode != AuthNone {
		return nil
	}
	return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
}

// Key specifies a key that signs tokens of callers. Exactly one of the key
// file and the secrets is set, depending on the algorithm.
type Key struct {
	KID           string `yaml:"kid" json:"kid" validate:"required"`
	Alg           string `yaml:"alg" json:"alg" validate:"oneof=EdDSA ES256 RS256 HS256"` // EdDSA, ES256, RS256 or HS256
	PublicKeyFile string `yaml:"public_key_file" json:"public_key_file"`                  // PEM
	SecretEnv     string `yaml:"secret_env" json:"secret_env"`                            // HS256: the variable with the secret
	SecretFile    string `yaml:"secret_file" json:"secret_file"`                          // HS256: or the file, readable by its owner only
	Issuer        string `yaml:"issuer" json:"issuer"`                                    // only accepted "iss" of its tokens; "" = any
}

// Issuer specifies an identity provider.
type Issuer struct {
	Issuer      string `yaml:"issuer" json:"issuer" validate:"required"` // exact "iss" of its tokens
	JWKSURL     string `yaml:"jwks_url" json:"jwks_url"`                 // https, or loopback
	Audience    string `yaml:"audience" json:"audience"`                 // "" = auth.audience
	TenantClaim string `yaml:"tenant_claim" json:"tenant_claim"`         // "" = its callers have no tenant

	// How its tokens differ from RFC 9068; see docs/security.md.
	Audiences        []string `yaml:"audiences" json:"audiences"`                 // instead of audience: a token needs one of them
	ScopeClaim       string   `yaml:"scope_claim" json:"scope_claim"`             // a text or a list; "" = scope, a text
	DefaultScopes    []string `yaml:"default_scopes" json:"default_scopes"`       // of a token without that claim
	RequireJTI       *bool    `yaml:"require_jti" json:"require_jti"`             // nil = true
	Typ              []string `yaml:"typ" json:"typ"`                             // "" = none; nil = at+jwt and JWT
	ToleratedHeaders []string `yaml:"tolerated_headers" json:"tolerated_headers"` // x5t, x5t#S256
}

// Profile returns how the tokens of the issuer differ from RFC 9068.
func (c *Issuer) Profile() auth.TokenProfile {
	return auth.TokenProfile{
		Audiences: c.Audiences, ScopeClaim: c.ScopeClaim, DefaultScopes: c.DefaultScopes,
		JTIOptional: c.RequireJTI != nil && !*c.RequireJTI, Types: c.Typ, TolerateHeaders: c.ToleratedHeaders,
	}
}

// TLS specifies the certificate of the server. Both files are set or none.
type TLS struct {
	CertFile string `yaml:"cert_file"` // PEM, the chain
	KeyFile  string `yaml:"key_file"`  // PEM, not readable by other users
}

// Enabled reports whether the server uses TLS.
func (c *TLS) Enabled() bool { return c.CertFile != "" || c.KeyFile != "" }

func (c *TLS) validate() error {
	if (c.CertFile == "") != (c.KeyFile == "") {
		return errors.New("tls: cert_file and key_file belong together, one of them is missing")
	}
	return nil
}

func (c *Auth) validate() error {
	var errs []error
	if c.Mode == AuthNone && len(c.Keys)+len(c.Issuers) > 0 {
		errs = append(errs, errors.New("auth.mode: none ignores tokens, but auth.keys or auth.issuers are set: use auth.mode jwt"))
	}
	for i := range c.Keys {
		errs = append(errs, c.Keys[i].validateKey(i))
	}
	for i := range c.Issuers {
		errs = append(errs, c.Issuers[i].validateIssuer(i))
	}
	return errors.Join(errs...)
}

func (k *Key) validateKey(i int) error {
	at := fmt.Sprintf("auth.keys[%d]", i)
	named := 0
	for _, s := range []string{k.PublicKeyFile, k.SecretEnv, k.SecretFile} {
		if s != "" {
			named++
		}
	}
	errs := []error{checkVariableName(at+".secret_env", "secret", k.SecretEnv)}
	switch {
	case named != 1:
		errs = append(errs, fmt.Errorf("%s: name exactly one of public_key_file, secret_env and secret_file", at))
	case (k.Alg == "HS256") == (k.PublicKeyFile != ""):
		errs = append(errs, fmt.Errorf("%s: HS256 takes secret_env or secret_file, every other algorithm public_key_file", at))
	}
	return errors.Join(errs...)
}

func (c *Issuer) validateIssuer(i int) error {
	at := fmt.Sprintf("auth.issuers[%d]", i)
	var errs []error
	if c.Audience != "" && len(c.Audiences) > 0 {
		errs = append(errs, fmt.Errorf("%s: set audience or audiences, not both", at))
	}
	u, ok := parseURL(c.JWKSURL, "http", "https")
	switch {
	case !ok:
		errs = append(errs, fmt.Errorf("%s.jwks_url: %q is not an absolute https URL", at, c.JWKSURL))
	case u.User != nil:
		errs = append(errs, fmt.Errorf("%s.jwks_url: must not contain a user name or password", at))
	case u.Scheme == "http" && !egress.IsLoopback(u.Hostname()):
		errs = append(errs, fmt.Errorf("%s.jwks_url: keys received over plain http could be forged: use https", at))
	}
	return errors.Join(errs...)
}
