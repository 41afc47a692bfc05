package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/auth"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/egress"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/limits"
	"github.com/caprouter/caprouter/internal/run"
)

// accessControl authenticates the server to callers and callers to the server, and
// limits the rate of requests.
type accessControl struct {
	certificate   *certificate           // nil = plain http
	verifier      *auth.Verifier         // nil = all callers are the local principal
	issuers       []*auth.RemoteKeys     // of the verifier
	classifyLimit httpserver.RateLimiter // nil = no limit
	checkLimit    httpserver.RateLimiter // nil = no limit
	readLimit     httpserver.RateLimiter // likewise
	registerLimit httpserver.RateLimiter // likewise

	lastError atomic.Pointer[error] // why changed keys or a changed certificate cannot be used; nil if they can
}

// openAccess checks keys, secrets and the certificate. It opens no connection.
func (c *serverCore) openAccess(opts *Options) (_ *accessControl, err error) {
	a := &accessControl{}
	if l := newCallerLimit("classify", c.cfg.ClassifyRate()); l != nil {
		a.classifyLimit = l
	}
	if l := newCallerLimit("check", c.cfg.CheckRate()); l != nil {
		a.checkLimit = l
	}
	if l := newCallerLimit("read", c.cfg.ReadRate()); l != nil {
		a.readLimit = l
	}
	if l := newCallerLimit("register", c.cfg.RegisterRate()); l != nil {
		a.registerLimit = l
	}
	if a.certificate, err = openCertificate(c.cfg.TLS); err != nil {
		return nil, err
	}
	if c.cfg.Auth.Mode == config.AuthNone {
		return a, nil
	}
	keys, err := c.cfg.Auth.StaticKeys(opts.EnvLookup())
	if err != nil {
		return nil, err
	}
	for i := range c.cfg.Auth.Issuers {
		is := &c.cfg.Auth.Issuers[i]
		remote, err := auth.NewRemoteKeys(auth.RemoteConfig{
			Issuer: is.Issuer, URL: is.JWKSURL, Audience: cmp.Or(is.Audience, c.cfg.Auth.Audience), TenantClaim: is.TenantClaim,
			Profile: is.Profile(), Logger: c.log,
		})
		if err != nil {
			return nil, fmt.Errorf("auth.issuers[%d]: %w", i, err)
		}
		a.issuers = append(a.issuers, remote)
	}
	a.verifier, err = auth.NewVerifier(auth.VerifierConfig{
		Audience: c.cfg.Auth.Audience, Keys: keys, Own: c.keys, Issuer: c.cfg.Auth.Issuer, Issuers: a.issuers,
		Logger: c.log,
	})
	if err != nil {
		return nil, fmt.Errorf("auth: %w", err)
	}
	return a, nil
}

// startReloading reloads changed keys and certificates, and refreshes the key sets of
// issuers, until the group stops.
func (a *accessControl) startReloading(c *serverCore, g *run.Group) {
	for _, remote := range a.issuers {
		g.Go("key set", remote.Run)
	}
	g.Go("keys", func(ctx context.Context) error {
		for now := range run.Ticks(ctx, keyReloadInterval) {
			a.reloadKeys(ctx, c, now)
			if c.cfg.Auth.StopOnRevoke {
				c.router.StopRevoked(ctx)
			}
		}
		return nil
	})
}

// keyReloadInterval is the interval of checks for changed keys and certificates.
const keyReloadInterval = 2 * time.Second

// reloadKeys reloads changed keys and a changed certificate. An error is logged once,
// and reported by the readiness until it is resolved.
func (a *accessControl) reloadKeys(ctx context.Context, c *serverCore, now time.Time) {
	before := c.keys.Keys(now)
	changed, err := c.keys.Reload(now)
	if changed {
		c.log.InfoContext(ctx, "signing keys changed", "signs_with", c.keys.KeyID())
		c.warnOfRevokedKeys(now)
		if note := describeKeyChange(before, c.keys.Keys(now)); note != "" {
			actRecorder{c.persistence.auditLog, c.log}.record(ctx, audit.Act{Event: audit.EventRotateKeys, Note: note}, &contract.Caller{})
		}
	}
	renewed, wrong := a.certificate.reloadFiles()
	if renewed {
		c.log.InfoContext(ctx, "certificate renewed", "file", c.cfg.TLS.CertFile)
	}
	if err = errors.Join(err, wrong); err == nil {
		a.lastError.Store(nil)
		return
	}
	if last := a.lastError.Swap(&err); last == nil || (*last).Error() != err.Error() {
		c.log.ErrorContext(ctx, "keys cannot be reloaded, the last valid ones stay in use", "error", err)
	}
}

// warnOfRevokedKeys logs revoked keys that are valid again: a file was restored, or the
// revocation was interrupted.
func (c *serverCore) warnOfRevokedKeys(now time.Time) {
	for _, k := range c.keys.Keys(now) {
		if k.RevocationFailed() {
			c.log.Warn("a revoked signing key counts again: run caprouter keys rotate --revoke", "kid", k.ID, "revoked", k.Revoked)
		}
	}
}

// logWarnings logs settings that an operator may have overlooked.
func (a *accessControl) logWarnings(c *serverCore, addr string) {
	c.warnOfRevokedKeys(time.Now())
	host, _, _ := net.SplitHostPort(addr)
	if a.verifier != nil && a.certificate == nil && !egress.IsLoopback(host) {
		c.log.Warn("tokens of callers travel in clear text: set tls, or put a proxy with TLS in front", "listen", addr)
	}
}

// callerLimit limits the rate of each principal.
type callerLimit struct{ limiter *limits.Limiter }

// Take implements httpserver.RateLimiter and fallbackpolicy.AnswerLimit.
func (l *callerLimit) Take(caller *contract.Caller) (contract.Limit, bool) {
	return l.limiter.Take(limits.PrincipalOf(caller), time.Now())
}

// newCallerLimit returns the limit of a policy, nil if it has none.
func newCallerLimit(policy string, rate limits.Rate) *callerLimit {
	limiter := limits.New(policy, rate)
	if limiter.Unlimited() {
		return nil
	}
	return &callerLimit{limiter}
}

// logRateLimits logs the limits of one caller in words: "200/s, burst 400".
func (c *serverCore) logRateLimits() {
	describe := func(r limits.Rate) string {
		if r.PerSecond == 0 {
			return "none"
		}
		return fmt.Sprintf("%v/s, burst %d", r.PerSecond, r.Burst)
	}
	c.log.Info("rate limits of each caller", "classify", describe(c.cfg.ClassifyRate()), "fallback_answer", describe(c.cfg.AnswerRate()),
		"check", describe(c.cfg.CheckRate()), "read", describe(c.cfg.ReadRate()), "register", describe(c.cfg.RegisterRate()))
}
