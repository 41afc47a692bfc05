package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/internal/auth/strictjwt"
	"github.com/caprouter/caprouter/internal/egress"
)

const (
	// minFetchInterval bounds the fetches that tokens with an invented kid, or an
	// unavailable server, can cause.
	minFetchInterval = time.Minute
	// refreshAfter is the age at which a set in use is fetched again.
	refreshAfter = 10 * time.Minute
	// usableFor is the age until which a set is used if it cannot be fetched.
	// After that time a withdrawn key is no longer accepted.
	usableFor = time.Hour
	// fetchTimeout bounds one fetch.
	fetchTimeout = 5 * time.Second
	// fetchWaitTimeout bounds how long a request waits for a fetch. It is longer than
	// fetchTimeout, so that it ends the wait only if Run is not active.
	fetchWaitTimeout = fetchTimeout + time.Second
)

// RemoteConfig configures an identity provider.
type RemoteConfig struct {
	Issuer      string       // must equal iss exactly
	URL         string       // of the key set: https, or loopback
	Audience    string       // the router's name in its tokens
	TenantClaim string       // name of the required tenant claim; "" = callers have no tenant
	Profile     TokenProfile // how its tokens differ from the strict form
	Client      *http.Client // nil = a client without proxy; redirects are never followed
	Logger      *slog.Logger // nil = silent
	Now         func() time.Time
}

// RemoteKeys are the published keys of an identity provider. Only Run fetches
// them. If a key is missing, findKey asks Run for a fetch and waits for it. A
// fetch is therefore not cancelled with a request, and all waiting requests share
// it.
//
//	findKey ── the set contains the key ──────────────────▶ the key
//	  │
//	  └─ no ── within a minute of the last fetch ─────────▶ none, or unavailable
//	       └── later: request a fetch, or join one ── Run ▶ look again, once
type RemoteKeys struct {
	cfg    RemoteConfig
	client *http.Client

	set  atomic.Pointer[remoteKeySet] // immutable, replaced as a whole; nil = never fetched
	used atomic.Bool                  // the set was used since the last fetch began

	fetchRequests chan struct{} // wakes Run for a new pending fetch; capacity one

	mu        sync.Mutex
	pending   chan struct{} // closed at the end of the requested fetch; nil = none
	attempted time.Time     // start of the last fetch; zero = never
	failing   bool          // the last fetch failed
	ended     bool          // Run has returned
}

// remoteKeySet is the key set at one point in time.
type remoteKeySet struct {
	keys    []*verifyKey
	fetched time.Time
	sum     [sha256.Size]byte // hash of its text
}

// isUsable reports whether the set is recent enough to be used.
func (s *remoteKeySet) isUsable(now time.Time) bool {
	return s != nil && now.Sub(s.fetched) < usableFor
}

// findKey returns the key with the kid, or the only key of the algorithm.
func (s *remoteKeySet) findKey(kid, alg string) *verifyKey {
	var found *verifyKey
	for _, k := range s.keys {
		switch {
		case kid != "" && k.kid == kid:
			return k
		case kid != "" || k.alg != alg:
		case found != nil:
			return nil // several keys match
		default:
			found = k
		}
	}
	return found
}

// NewRemoteKeys returns keys that Run will fetch.
func NewRemoteKeys(cfg RemoteConfig) (*RemoteKeys, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("issuer %q: %w", cfg.Issuer, err)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Logger = cfg.Logger.With("issuer", cfg.Issuer, "url", cfg.URL)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &RemoteKeys{cfg: cfg, client: keySetClient(cfg.Client), fetchRequests: make(chan struct{}, 1)}, nil
}

func (c *RemoteConfig) validate() error {
	u, err := url.Parse(c.URL)
	switch {
	case c.Issuer == "":
		return errors.New("it has no name: set the iss of its tokens")
	case strictjwt.CheckName(c.Issuer) != nil:
		return fmt.Errorf("its name cannot be in a token: it %w", strictjwt.CheckName(c.Issuer))
	case c.Audience == "":
		return errors.New("no audience: its tokens for other services would be accepted")
	case strictjwt.CheckName(c.TenantClaim) != nil || strings.TrimSpace(c.TenantClaim) != c.TenantClaim:
		return fmt.Errorf("tenant claim %.64q is not the name of a claim: it has spaces around it, or what no name has", c.TenantClaim)
	case c.Profile.validate() != nil:
		return c.Profile.validate()
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("%q is not the https URL of a key set", c.URL)
	case u.User != nil:
		return errors.New("the URL of its key set must not hold a user name or password")
	case u.Scheme == "http" && !egress.IsLoopback(u.Hostname()):
		return fmt.Errorf("%s: keys fetched over plain http can be replaced by an attacker: use https", c.URL)
	}
	return nil
}

// Run fetches the set at once, if a key is missing, and every 10 minutes while the
// set is used, but never more than once a minute. It returns when ctx ends, and is
// called once. Before Run is called, requests wait a few seconds for a key.
func (r *RemoteKeys) Run(ctx context.Context) error {
	defer r.finishFetch(true)
	r.requestFetch()
	tick := time.NewTicker(minFetchInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if r.isRefreshDue(r.cfg.Now()) {
				r.requestFetch()
			}
		case <-r.fetchRequests:
			r.refreshSet(ctx)
			if ctx.Err() != nil { // a lookup must not take a cancelled fetch for one without the key
				return nil
			}
			r.finishFetch(false)
			tick.Reset(minFetchInterval) // otherwise the tick would be slightly too early for the next fetch
		}
	}
}

// isRefreshDue reports whether the set is in use and old, or was never fetched.
func (r *RemoteKeys) isRefreshDue(now time.Time) bool {
	set := r.set.Load()
	return r.used.Load() && (set == nil || now.Sub(set.fetched) >= refreshAfter)
}

// requestFetch asks Run to fetch the set and returns a channel that is closed at
// the end of the fetch; nil if there will be no fetch now.
func (r *RemoteKeys) requestFetch() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending != nil {
		return r.pending
	}
	if r.ended || !r.attempted.IsZero() && r.cfg.Now().Sub(r.attempted) < minFetchInterval {
		return nil
	}
	r.pending = make(chan struct{})
	r.fetchRequests <- struct{}{} // never blocks: Run receives it before the last pending fetch ends
	return r.pending
}

// finishFetch wakes the requests that wait for a fetch. If ended is true, Run has
// returned and no fetch follows.
func (r *RemoteKeys) finishFetch(ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = ended
	if r.pending != nil {
		close(r.pending)
		r.pending = nil
	}
}

// findKey implements keySource. If a key is missing, it may be new, so the set is
// fetched unless the last fetch was within a minute.
func (r *RemoteKeys) findKey(ctx context.Context, kid, alg string, now time.Time) (*verifyKey, error) {
	r.markUsed()
	set := r.set.Load()
	if set.isUsable(now) {
		if k := set.findKey(kid, alg); k != nil {
			return k, nil
		}
	}
	if fetched := r.requestFetch(); fetched != nil {
		ctx, cancel := context.WithTimeout(ctx, fetchWaitTimeout)
		defer cancel()
		select {
		case <-fetched:
		case <-ctx.Done():
			return nil, r.unavailableError()
		}
	}
	set = r.set.Load() // load it even if no fetch was requested: another request may have fetched it
	if !set.isUsable(now) {
		return nil, r.unavailableError()
	}
	k := set.findKey(kid, alg)
	if k == nil && r.mayBeStale() {
		return nil, r.unavailableError()
	}
	return k, nil
}

// mayBeStale reports whether a key may be missing because the last fetch failed.
func (r *RemoteKeys) mayBeStale() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failing || r.ended
}

// unavailableError is the error for the caller; the log contains the details.
func (r *RemoteKeys) unavailableError() error {
	return fmt.Errorf("the keys of issuer %q are not available now: try again in a minute", r.cfg.Issuer)
}

// isValid implements keySource.
func (r *RemoteKeys) isValid(k *verifyKey, now time.Time) bool {
	r.markUsed()
	set := r.set.Load()
	// A key that stays in the set keeps its pointer; see replaceSet.
	return set.isUsable(now) && slices.Contains(set.keys, k)
}

// isRevoked implements keySource: a key that the issuer has withdrawn counts as
// revoked. Without a recent set, nothing is certain.
func (r *RemoteKeys) isRevoked(kid string, now time.Time) bool {
	set := r.set.Load()
	return set.isUsable(now) && !slices.ContainsFunc(set.keys, func(k *verifyKey) bool { return k.kid == kid })
}

// markUsed writes the flag only if it is not set, because every verification calls
// it.
func (r *RemoteKeys) markUsed() {
	if !r.used.Load() {
		r.used.Store(true)
	}
}
