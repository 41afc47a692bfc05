package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/caprouter/caprouter/internal/auth/jwk"
	"github.com/caprouter/caprouter/internal/auth/weakkey"
	"github.com/caprouter/caprouter/internal/egress"
)

// keySetClient returns a copy of the client, or a new one, without redirects and
// cookies.
func keySetClient(client *http.Client) *http.Client {
	if client == nil {
		transport := egress.NewTransport(egress.Unrestricted{})
		transport.DisableKeepAlives = true // the next fetch is minutes away
		client = egress.NewClient(transport)
	}
	own := *client
	own.Jar = nil
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// refreshSet fetches the set. If that fails, the previous set stays in use until
// it is too old.
func (r *RemoteKeys) refreshSet(ctx context.Context) {
	began := r.cfg.Now()
	r.used.Store(false) // a use from now on counts for the next fetch
	r.mu.Lock()
	r.attempted = began
	wasFailing := r.failing
	r.mu.Unlock()

	text, err := r.downloadSet(ctx)
	if err == nil {
		err = r.replaceSet(ctx, text, began)
	}
	if ctx.Err() != nil {
		return // stopped: not a failure of the issuer
	}
	r.mu.Lock()
	r.failing = err != nil
	r.mu.Unlock()
	switch {
	case err != nil && !wasFailing: // log once, not every minute
		r.cfg.Logger.Warn("fetching the issuer's keys", "error", err, "usable_until", r.usableUntil())
	case err == nil && wasFailing:
		r.cfg.Logger.Info("the issuer's keys are fetched again")
	}
}

// usableUntil returns until when the issuer's tokens are verified without another
// fetch.
func (r *RemoteKeys) usableUntil() time.Time {
	if set := r.set.Load(); set != nil {
		return set.fetched.Add(usableFor)
	}
	return r.cfg.Now()
}

// downloadSet returns the response body.
func (r *RemoteKeys) downloadSet(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.cfg.URL, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	switch to := resp.Header.Get("Location"); {
	case to != "" && resp.StatusCode/100 == 3:
		return nil, fmt.Errorf("answered %d, and redirects are not followed: set jwks_url to the final address, maybe %.256q", resp.StatusCode, to)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("answered %d, not 200; %s", resp.StatusCode, jwk.AddressHint)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, jwk.MaxSetBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read key set: %w", err)
	}
	return text, nil
}

// replaceSet stores the parsed text as the current set. A key of the previous set
// keeps its pointer, so that isValid compares pointers only.
func (r *RemoteKeys) replaceSet(ctx context.Context, text []byte, at time.Time) error {
	old, sum := r.set.Load(), sha256.Sum256(text)
	if old != nil && old.sum == sum {
		r.set.Store(&remoteKeySet{keys: old.keys, fetched: at, sum: sum})
		return nil
	}
	parsed, unusable, err := jwk.ParseSet(text, weakkey.CheckPublic)
	if err != nil {
		return err
	}
	keys := make([]*verifyKey, len(parsed))
	for i, k := range parsed {
		keys[i] = old.reuseKey(&verifyKey{
			kid: k.ID, alg: k.Algorithm, key: k.Public,
			issuer: r.cfg.Issuer, audience: r.cfg.Audience, tenantClaim: r.cfg.TenantClaim, profile: r.cfg.Profile,
		})
	}
	r.logUnusableKeys(ctx, keys, unusable)
	r.set.Store(&remoteKeySet{keys: keys, fetched: at, sum: sum})
	return nil
}

// reuseKey returns the equal key of the set if there is one, else k.
func (s *remoteKeySet) reuseKey(k *verifyKey) *verifyKey {
	if s == nil {
		return k
	}
	for _, have := range s.keys {
		if have.kid == k.kid && have.alg == k.alg && equalKeys(have.key, k.key) {
			return have
		}
	}
	return k
}

// logUnusableKeys logs the keys of a new set that are not used. Keys for other
// purposes are normal; keys that the issuer should correct are warnings.
func (r *RemoteKeys) logUnusableKeys(ctx context.Context, keys []*verifyKey, unusable []jwk.UnusableKey) {
	for _, u := range unusable {
		level := slog.LevelWarn
		if _, ok := errors.AsType[jwk.OtherUseError](u.Reason); ok {
			level = slog.LevelDebug
		}
		r.cfg.Logger.Log(ctx, level, "a key of the issuer is not used", "index", u.Index, "kid", u.ID, "reason", u.Reason)
	}
	if len(keys) == 0 {
		reason := "the set is empty"
		if len(unusable) > 0 {
			reason = fmt.Sprintf("key %d: %v", unusable[0].Index, unusable[0].Reason)
		}
		r.cfg.Logger.Warn("the issuer's tokens are rejected: its set has no key for EdDSA, ES256 or RS256; "+
			"correct jwks_url, or publish such a key", "keys", len(unusable), "reason", reason)
	}
}
