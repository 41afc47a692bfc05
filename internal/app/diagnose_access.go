package app

import (
	"fmt"
	"net"

	"github.com/caprouter/caprouter/internal/auth"
	"github.com/caprouter/caprouter/internal/egress"
)

// diagnoseCallers reports how callers are authenticated, and checks the configured
// keys. It does not contact identity providers.
func diagnoseCallers(cfg *Config, lookup func(string) (string, bool)) Finding {
	f := Finding{Check: "callers", Level: LevelOK, Detail: "auth.mode is none: everybody on this machine may do everything"}
	if cfg.Auth.Mode == authNone {
		return f
	}
	keys, err := cfg.Auth.staticKeys(lookup)
	var own *auth.Signer
	if err == nil {
		own, err = auth.NewSigner() // any key, because no token is verified
	}
	if err == nil {
		_, err = auth.NewVerifier(auth.VerifierConfig{Audience: cfg.Auth.Audience, Issuer: cfg.Auth.Issuer, Keys: keys, Own: own})
	}
	if err != nil {
		f.Level, f.Detail, f.Fix = LevelFail, err.Error(), "mend the key that is named; docs/security.md says what is good enough"
		return f
	}
	f.Detail = fmt.Sprintf("tokens of %s and %s, and of caprouter token", countNoun(len(keys), "key"), countNoun(len(cfg.Auth.Issuers), "issuer"))
	return f
}

func countNoun(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// diagnoseTLS checks the certificate of the server.
func diagnoseTLS(cfg *Config) Finding {
	f := Finding{Check: "tls", Level: LevelOK}
	host, _, _ := net.SplitHostPort(cfg.Listen)
	switch _, err := openCertificate(cfg.TLS); {
	case err != nil:
		f.Level, f.Detail, f.Fix = LevelFail, err.Error(), "mend the file that is named"
	case cfg.TLS.enabled():
		f.Detail = cfg.TLS.CertFile + " and its key fit"
	case egress.IsLoopback(host):
		f.Detail = "plain http, on this machine only"
	default:
		f.Level, f.Detail = LevelWarn, "plain http: tokens of callers travel in clear text"
		f.Fix = "set tls, or put a proxy with TLS in front"
	}
	return f
}
