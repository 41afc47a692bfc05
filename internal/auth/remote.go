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

	"github.com/caprouter/caprouter/internal/egress"
)

const (
	// minFetchInterval bounds what tokens with an invented kid can cause, and a
	// server that is down.
	minFetchInterval = time.Minute
	// refreshAfter is how old the set gets while it is used.
	refreshAfter = 10 * time.Minute
	// usableFor is how long it is used while it cannot be fetched again.
	// After that a key that was withdrawn must be dead.
	usableFor = time.Hour
	// fetchTimeout bounds one fetch, remoteWait the wait for one: longer only
	// when nobody fetches.
	fetchTimeout     = 5 * time.Second
	fetchWaitTimeout = fetchTimeout + time.Second
)

// RemoteConfig names an identity provider.
type RemoteConfig struct {
	Issuer      string       // its iss, to the letter
	URL         string       // of its key set: https, or loopback
	Audience    string       // who we are in its tokens
	TenantClaim string       // the claim with the tenant, without which a token is refused; "" = no caller has one
	Client      *http.Client // nil = one that uses no proxy; redirects are never followed
	Logger      *slog.Logger // nil = silent
	Now         func() time.Time
}

// RemoteKeys are the keys an identity provider publishes. Run fetches them, and
// nothing else does: whoever misses a key asks Run and waits for the answer. A
// fetch therefore ends with no caller's request, and belongs to all who wait.
//
//	find ── the set has the key ──────────────────────────▶ the key
//	  │
//	  └─ no ── within a minute of the last fetch ─────────▶ none, or not now
//	       └── later: ask, or join who asked ── Run ──────▶ look again, once
type RemoteKeys struct {
	cfg    RemoteConfig
	client *http.Client

	set  atomic.Pointer[remoteKeySet] // replaced, never changed; nil = never fetched
	used atomic.Bool                  // the set was asked since the last fetch began

	fetchRequests chan struct{} // tells Run of a new pending; holds one

	mu        sync.Mutex
	pending   chan struct{} // closed when the fetch that was asked for ends; nil = none
	attempted time.Time     // when the last fetch began; zero = never
	failing   bool          // it failed
	ended     bool          // Run has returned
}

// remoteKeySet is the key set as it was at a time.
type remoteKeySet struct {
	keys    []*verifyKey
	fetched time.Time
	sum     [sha256.Size]byte // of its text
}

// isUsable reports whether the set is young enough to be believed.
func (s *remoteKeySet) isUsable(now time.Time) bool {
	return s != nil && now.Sub(s.fetched) < usableFor
}

// findKey returns the key with the kid, or the only one of the algorithm.
func (s *remoteKeySet) findKey(kid, alg string) *verifyKey {
	var found *verifyKey
	for _, k := range s.keys {
		switch {
		case kid != "" && k.kid == kid:
			return k
		case kid != "" || k.method.Alg() != alg:
		case found != nil:
			return nil // several
		default:
			found = k
		}
	}
	return found
}

// NewRemoteKeys returns keys that Run has yet to fetch.
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
	case !printableName(c.Issuer):
		return fmt.Errorf("no token could name it: it %w", checkName(c.Issuer))
	case c.Audience == "":
		return errors.New("no audience: its tokens for everybody else would be taken")
	case !printableName(c.TenantClaim) || strings.TrimSpace(c.TenantClaim) != c.TenantClaim:
		return fmt.Errorf("tenant claim %.64q is not the name of a claim: it has spaces around it, or what no name has", c.TenantClaim)
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("%q is not the https URL of a key set", c.URL)
	case u.User != nil:
		return errors.New("the URL of its key set must not hold a user name or password")
	case u.Scheme == "http" && !egress.IsLoopback(u.Hostname()):
		return fmt.Errorf("%s: keys that come over plain http could be anybody's: use https", c.URL)
	}
	return nil
}

// Run fetches the set: now, whenever a key is missed, and every 10 minutes while
// it is used; never more than once a minute. It returns when ctx ends and is
// called once. Until it is, whoever needs a key waits for it, some seconds.
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
			r.finishFetch(false)
			tick.Reset(minFetchInterval) // or it would come just too early for another
		}
	}
}

// isRefreshDue reports whether the set should be renewed unasked: it is used, and it is
// old or was never there.
func (r *RemoteKeys) isRefreshDue(now time.Time) bool {
	set := r.set.Load()
	return r.used.Load() && (set == nil || now.Sub(set.fetched) >= refreshAfter)
}

// requestFetch has Run fetch the set and returns what is closed when that is done; nil
// when there will be no fetch now.
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
	r.fetchRequests <- struct{}{} // never blocks: it was taken before the last pending ended
	return r.pending
}

// finishFetch lets those go who wait for a fetch: for good, when Run has ended.
func (r *RemoteKeys) finishFetch(ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = ended
	if r.pending != nil {
		close(r.pending)
		r.pending = nil
	}
}

// findKey is keySource's. A key that is not in the set may be a new one: the set is
// fetched, unless it was within a minute.
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
	set = r.set.Load() // also when there was no need to ask: somebody else did
	if !set.isUsable(now) {
		return nil, r.unavailableError()
	}
	k := set.findKey(kid, alg)
	if k == nil && r.mayBeStale() {
		return nil, r.unavailableError()
	}
	return k, nil
}

// mayBeStale reports whether a key may be missed only because the set could not
// be fetched.
func (r *RemoteKeys) mayBeStale() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failing || r.ended
}

// unavailableError is what a caller may know; the log says more.
func (r *RemoteKeys) unavailableError() error {
	return fmt.Errorf("the keys of issuer %q are not there now: try again in a minute", r.cfg.Issuer)
}

// isValid is keySource's.
func (r *RemoteKeys) isValid(k *verifyKey, now time.Time) bool {
	r.markUsed()
	set := r.set.Load()
	// A key that stays in the set stays the same pointer; see renew.
	return set.isUsable(now) && slices.Contains(set.keys, k)
}

// markUsed writes only when it must: every verified token comes by here.
func (r *RemoteKeys) markUsed() {
	if !r.used.Load() {
		r.used.Store(true)
	}
}
