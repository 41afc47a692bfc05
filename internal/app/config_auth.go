package app

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/caprouter/caprouter/internal/auth"
	"github.com/caprouter/caprouter/internal/egress"
	"github.com/caprouter/caprouter/internal/limits"
)

// The values of auth.mode.
const (
	authNone = "none" // loopback only: the local caller has all rights
	authJWT  = "jwt"  // callers send tokens
)

// AuthConfig specifies how callers are authenticated.
type AuthConfig struct {
	Mode     string         `yaml:"mode" validate:"oneof=none jwt"`
	Issuer   string         `yaml:"issuer" validate:"required"`   // "iss" of tokens that this router mints
	Audience string         `yaml:"audience" validate:"required"` // "aud" of tokens of callers
	Keys     []KeyConfig    `yaml:"keys" validate:"dive"`         // verify tokens of any issuer
	Issuers  []IssuerConfig `yaml:"issuers" validate:"dive"`      // identity providers with key sets at URLs

	AgentTokens AgentTokensConfig `yaml:"agent_tokens"`

	// StopOnRevoke ends the waiting requests of callers whose key was revoked.
	StopOnRevoke bool `yaml:"stop_on_revoke"`
}

// AgentTokensConfig specifies the tokens that the router signs for agents.
type AgentTokensConfig struct {
	Alg string `yaml:"alg" validate:"oneof=EdDSA ES256"` // EdDSA or ES256
}

func defaultAuthConfig() AuthConfig {
	return AuthConfig{
		Mode: authNone, Issuer: "caprouter", Audience: "caprouter", Keys: []KeyConfig{}, Issuers: []IssuerConfig{},
		AgentTokens: AgentTokensConfig{Alg: auth.AlgEdDSA},
	}
}

// KeyConfig specifies a key that signs tokens of callers. Exactly one of the key
// file and the secrets is set, depending on the algorithm.
type KeyConfig struct {
	KID           string `yaml:"kid" json:"kid" validate:"required"`
	Alg           string `yaml:"alg" json:"alg" validate:"oneof=EdDSA ES256 RS256 HS256"` // EdDSA, ES256, RS256 or HS256
	PublicKeyFile string `yaml:"public_key_file" json:"public_key_file"`                  // PEM
	SecretEnv     string `yaml:"secret_env" json:"secret_env"`                            // HS256: the variable with the secret
	SecretFile    string `yaml:"secret_file" json:"secret_file"`                          // HS256: or the file, readable by its owner only
	Issuer        string `yaml:"issuer" json:"issuer"`                                    // only accepted "iss" of its tokens; "" = any
}

// IssuerConfig specifies an identity provider.
type IssuerConfig struct {
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

func (c *IssuerConfig) profile() auth.TokenProfile {
	return auth.TokenProfile{
		Audiences: c.Audiences, ScopeClaim: c.ScopeClaim, DefaultScopes: c.DefaultScopes,
		JTIOptional: c.RequireJTI != nil && !*c.RequireJTI, Types: c.Typ, TolerateHeaders: c.ToleratedHeaders,
	}
}

// TLSConfig specifies the certificate of the server. Both files are set or none.
type TLSConfig struct {
	CertFile string `yaml:"cert_file"` // PEM, the chain
	KeyFile  string `yaml:"key_file"`  // PEM, not readable by other users
}

func (c *TLSConfig) enabled() bool { return c.CertFile != "" || c.KeyFile != "" }

func (c *TLSConfig) validate() error {
	if (c.CertFile == "") != (c.KeyFile == "") {
		return errors.New("tls: cert_file and key_file belong together, one of them is missing")
	}
	return nil
}

func (c *AuthConfig) validate() error {
	var errs []error
	if c.Mode == authNone && len(c.Keys)+len(c.Issuers) > 0 {
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

func (k *KeyConfig) validateKey(i int) error {
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

func (c *IssuerConfig) validateIssuer(i int) error {
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

// LimitsConfig specifies rate limits and admission control.
type LimitsConfig struct {
	Classify         RateConfig `yaml:"classify"`                                 // route and classify requests of each caller
	FallbackAnswer   RateConfig `yaml:"fallback_answer"`                          // answers of policy A for each caller
	Check            RateConfig `yaml:"check"`                                    // checks of registry files of each caller
	Read             RateConfig `yaml:"read"`                                     // reads of the decision log and of tickets of each caller
	Register         RateConfig `yaml:"register"`                                 // registrations of each agent; heartbeats are not limited
	MaxInFlight      int        `yaml:"max_in_flight" validate:"range=1 1000000"` // concurrent requests
	LLMTokensPerHour int        `yaml:"llm_tokens_per_hour" validate:"range=0 1000000000000"`
}

// RateConfig specifies the token bucket of one caller.
type RateConfig struct {
	RPS   RateSetting `yaml:"rps"`                              // average rate per second; 0 = no limit
	Burst int         `yaml:"burst" validate:"range=1 1000000"` // size of the bucket
}

// RateSetting is a rate per second, or "auto": a default rate for callers with tokens.
// The rate and the bucket of the local caller of auth.mode none are localFactor times
// as large, because all programs of the machine share it.
type RateSetting string

const localFactor = 10

const frequencyAuto RateSetting = "auto"

func defaultLimitsConfig() LimitsConfig {
	return LimitsConfig{
		Classify:       RateConfig{RPS: frequencyAuto, Burst: 40},
		FallbackAnswer: RateConfig{RPS: frequencyAuto, Burst: 5},
		Check:          RateConfig{RPS: frequencyAuto, Burst: 5},
		Read:           RateConfig{RPS: frequencyAuto, Burst: 40},
		Register:       RateConfig{RPS: frequencyAuto, Burst: 10},
		MaxInFlight:    512,
	}
}

// The rates per second of "auto" for callers with tokens.
const (
	autoClassify       = 20
	autoFallbackAnswer = 2
	autoCheck          = 0.2
	autoRead           = 10
	autoRegister       = 1
)

// classifyRate returns the rate at which one caller may route and classify.
func (c *Config) classifyRate() limits.Rate {
	return c.Limits.Classify.callerRate(c.Auth.Mode, autoClassify)
}

// readRate returns the rate at which one caller may read lists of stored data.
func (c *Config) readRate() limits.Rate { return c.Limits.Read.callerRate(c.Auth.Mode, autoRead) }

// answerRate returns the rate at which one caller gets answers of policy A.
func (c *Config) answerRate() limits.Rate {
	return c.Limits.FallbackAnswer.callerRate(c.Auth.Mode, autoFallbackAnswer)
}

// checkRate returns the rate at which one caller may have registry files checked.
func (c *Config) checkRate() limits.Rate {
	return c.Limits.Check.callerRate(c.Auth.Mode, autoCheck)
}

// registerRate returns the rate at which one agent may register.
func (c *Config) registerRate() limits.Rate {
	return c.Limits.Register.callerRate(c.Auth.Mode, autoRegister)
}

func (c *LimitsConfig) validate() error {
	return errors.Join(
		c.Classify.validateRate("limits.classify"),
		c.FallbackAnswer.validateRate("limits.fallback_answer"),
		c.Check.validateRate("limits.check"),
		c.Read.validateRate("limits.read"),
		c.Register.validateRate("limits.register"),
	)
}

// validateBudget refuses a budget that is too small for a single call.
func (c *Config) validateBudget() error {
	if n := c.Limits.LLMTokensPerHour; n > 0 && n <= c.LLM.MaxOutputTokens {
		return fmt.Errorf("limits.llm_tokens_per_hour: one call may take more than %d tokens (llm.max_output_tokens is %d), so the model would never be asked", n, c.LLM.MaxOutputTokens)
	}
	return nil
}

func (c *RateConfig) validateRate(key string) error {
	if c.RPS != frequencyAuto {
		if n, err := strconv.ParseFloat(string(c.RPS), 64); err != nil || !(n >= 0 && n <= 1e6) || n > 0 && n < 1e-4 {
			return fmt.Errorf("%s.rps: %q is not auto, 0 (no limit) or a number of times a second between 0.0001 and 1000000", key, c.RPS)
		}
	}
	return nil
}

// callerRate returns the rate of one caller, with auto as the rate per second of a
// caller with a token.
func (c *RateConfig) callerRate(authMode string, auto float64) limits.Rate {
	if c.RPS != frequencyAuto {
		n, _ := strconv.ParseFloat(string(c.RPS), 64) // validated
		return limits.Rate{PerSecond: n, Burst: c.Burst}
	}
	if authMode == authNone {
		return limits.Rate{PerSecond: localFactor * auto, Burst: localFactor * c.Burst}
	}
	return limits.Rate{PerSecond: auto, Burst: c.Burst}
}

// parsePrefixes parses dispatch.allow_private: ranges or single addresses.
func parsePrefixes(list []string) ([]netip.Prefix, error) {
	out := make([]netip.Prefix, 0, len(list))
	for _, s := range list {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			addr, err := netip.ParseAddr(s)
			if err != nil || addr.Zone() != "" {
				return nil, fmt.Errorf("dispatch.allow_private: %q is not a range of addresses, e.g. 10.1.0.0/16", s)
			}
			p = netip.PrefixFrom(addr, addr.BitLen())
		}
		if p.Addr().Is4In6() {
			return nil, fmt.Errorf("dispatch.allow_private: %q is an IPv4-mapped IPv6 range; write it as IPv4", s)
		}
		if p != p.Masked() {
			return nil, fmt.Errorf("dispatch.allow_private: %q names an address within a range; the range is %s", s, p.Masked())
		}
		out = append(out, p)
	}
	return out, nil
}
