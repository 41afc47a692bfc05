package app

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"

	"github.com/caprouter/caprouter/internal/egress"
)

// The values of auth.mode.
const (
	authNone = "none" // loopback only: one local caller, who may do everything
	authJWT  = "jwt"  // callers come with tokens
)

// AuthConfig says who may call.
type AuthConfig struct {
	Mode     string         `yaml:"mode"`
	Issuer   string         `yaml:"issuer"`   // who we are in tokens we mint
	Audience string         `yaml:"audience"` // who we are in tokens of callers
	Keys     []KeyConfig    `yaml:"keys"`     // that sign tokens of any issuer
	Issuers  []IssuerConfig `yaml:"issuers"`  // whose keys are at a URL
}

// KeyConfig is a key callers' tokens are signed with. Which of the three says
// where it is follows from the algorithm.
type KeyConfig struct {
	KID           string `yaml:"kid" json:"kid"`
	Alg           string `yaml:"alg" json:"alg"`                         // EdDSA, ES256, RS256 or HS256
	PublicKeyFile string `yaml:"public_key_file" json:"public_key_file"` // PEM
	SecretEnv     string `yaml:"secret_env" json:"secret_env"`           // HS256: the variable with the secret
	SecretFile    string `yaml:"secret_file" json:"secret_file"`         // HS256: or the file, readable by its owner only
}

// IssuerConfig is an identity provider.
type IssuerConfig struct {
	Issuer      string `yaml:"issuer" json:"issuer"`             // its "iss", to the letter
	JWKSURL     string `yaml:"jwks_url" json:"jwks_url"`         // https, or loopback
	Audience    string `yaml:"audience" json:"audience"`         // "" = auth.audience
	TenantClaim string `yaml:"tenant_claim" json:"tenant_claim"` // "" = no caller of it has a tenant
}

// TLSConfig is the certificate the server shows; both or neither.
type TLSConfig struct {
	CertFile string `yaml:"cert_file"` // PEM, the chain
	KeyFile  string `yaml:"key_file"`  // PEM, not for everybody to read
}

func (c *TLSConfig) enabled() bool { return c.CertFile != "" || c.KeyFile != "" }

func (c *TLSConfig) validate() error {
	if (c.CertFile == "") != (c.KeyFile == "") {
		return errors.New("tls: cert_file and key_file belong together, one of them is missing")
	}
	return nil
}

func (c *AuthConfig) validate() error {
	errs := []error{
		checkOneOf("auth.mode", c.Mode, authNone, authJWT),
		checkNotEmpty("auth.issuer", c.Issuer),
		checkNotEmpty("auth.audience", c.Audience),
	}
	if c.Mode == authNone && len(c.Keys)+len(c.Issuers) > 0 {
		errs = append(errs, errors.New("auth.mode: none looks at no token, but auth.keys or auth.issuers are set: use auth.mode jwt"))
	}
	for i := range c.Keys {
		errs = append(errs, c.Keys[i].validate(i))
	}
	for i := range c.Issuers {
		errs = append(errs, c.Issuers[i].validate(i))
	}
	return errors.Join(errs...)
}

func (k *KeyConfig) validate(i int) error {
	at := fmt.Sprintf("auth.keys[%d]", i)
	named := 0
	for _, s := range []string{k.PublicKeyFile, k.SecretEnv, k.SecretFile} {
		if s != "" {
			named++
		}
	}
	errs := []error{checkNotEmpty(at+".kid", k.KID), checkOneOf(at+".alg", k.Alg, "EdDSA", "ES256", "RS256", "HS256")}
	switch {
	case named != 1:
		errs = append(errs, fmt.Errorf("%s: name exactly one of public_key_file, secret_env and secret_file", at))
	case (k.Alg == "HS256") == (k.PublicKeyFile != ""):
		errs = append(errs, fmt.Errorf("%s: HS256 takes secret_env or secret_file, every other algorithm public_key_file", at))
	}
	return errors.Join(errs...)
}

func (c *IssuerConfig) validate(i int) error {
	at := fmt.Sprintf("auth.issuers[%d]", i)
	errs := []error{checkNotEmpty(at+".issuer", c.Issuer)}
	u, err := url.Parse(c.JWKSURL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		errs = append(errs, fmt.Errorf("%s.jwks_url: %q is not an absolute https URL", at, c.JWKSURL))
	case u.User != nil:
		errs = append(errs, fmt.Errorf("%s.jwks_url: must not hold a user name or password", at))
	case u.Scheme == "http" && !egress.IsLoopback(u.Hostname()):
		errs = append(errs, fmt.Errorf("%s.jwks_url: keys that come over plain http could be anybody's: use https", at))
	}
	return errors.Join(errs...)
}

// LimitsConfig bounds what callers may ask for.
type LimitsConfig struct {
	Classify         RateConfig `yaml:"classify"`        // routing and classifying, each caller
	FallbackAnswer   RateConfig `yaml:"fallback_answer"` // answers of policy A, each caller
	MaxInFlight      int        `yaml:"max_in_flight"`   // requests at a time
	LLMTokensPerHour int        `yaml:"llm_tokens_per_hour"`
}

// RateConfig is how often one caller may do something.
type RateConfig struct {
	RPS   RateSetting `yaml:"rps"`   // a second, on average; 0 = no limit
	Burst int         `yaml:"burst"` // at once
}

// RateSetting is a number of times a second, or "auto": what is sensible for a
// caller who came with a token, and no limit for the one local caller of
// auth.mode none.
type RateSetting string

const frequencyAuto RateSetting = "auto"

func defaultLimitsConfig() LimitsConfig {
	return LimitsConfig{
		Classify:       RateConfig{RPS: frequencyAuto, Burst: 40},
		FallbackAnswer: RateConfig{RPS: frequencyAuto, Burst: 5},
		MaxInFlight:    512,
	}
}

// What auto means in auth.mode jwt, a second.
const (
	autoClassify       = 20
	autoFallbackAnswer = 2
)

func (c *LimitsConfig) validate() error {
	return errors.Join(
		c.Classify.validate("limits.classify"),
		c.FallbackAnswer.validate("limits.fallback_answer"),
		checkRange("limits.max_in_flight", c.MaxInFlight, 1, 1_000_000),
		checkRange("limits.llm_tokens_per_hour", c.LLMTokensPerHour, 0, 1_000_000_000_000),
	)
}

// validateBudget refuses a budget under which the model is never asked.
func (c *Config) validateBudget() error {
	if n := c.Limits.LLMTokensPerHour; n > 0 && n <= c.LLM.MaxOutputTokens {
		return fmt.Errorf("limits.llm_tokens_per_hour: one call may take more than %d tokens (llm.max_output_tokens is %d), so the model would never be asked", n, c.LLM.MaxOutputTokens)
	}
	return nil
}

func (c *RateConfig) validate(key string) error {
	if c.RPS != frequencyAuto {
		if n, err := strconv.ParseFloat(string(c.RPS), 64); err != nil || !(n >= 0 && n <= 1e6) || n > 0 && n < 1e-4 {
			return fmt.Errorf("%s.rps: %q is not auto, 0 (no limit) or a number of times a second between 0.0001 and 1000000", key, c.RPS)
		}
	}
	return checkRange(key+".burst", c.Burst, 1, 1_000_000)
}

// perSecond is the rate, where auto says what a caller with a token gets; 0 is
// no limit.
func (c *RateConfig) perSecond(authMode string, auto float64) float64 {
	if c.RPS != frequencyAuto {
		n, _ := strconv.ParseFloat(string(c.RPS), 64) // validate has seen it
		return n
	}
	if authMode == authNone {
		return 0
	}
	return auto
}

// parsePrefixes reads dispatch.allow_private: ranges, or single addresses.
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
			return nil, fmt.Errorf("dispatch.allow_private: %q is a range of IPv4 in the clothes of IPv6; write it as IPv4", s)
		}
		if p != p.Masked() {
			return nil, fmt.Errorf("dispatch.allow_private: %q names an address within a range; the range is %s", s, p.Masked())
		}
		out = append(out, p)
	}
	return out, nil
}
