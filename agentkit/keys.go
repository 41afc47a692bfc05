package agentkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	maxKeySetBytes = 256 << 10
	fetchTimeout   = 5 * time.Second

	// freshFor is how long a key set is used before it is fetched again.
	freshFor = 10 * time.Minute
	// usableFor is how long it is used while it cannot be fetched. After that all
	// tokens are rejected, because the router may have revoked a key.
	usableFor = time.Hour
	// minFetchInterval bounds the fetches that tokens with unknown kids cause.
	minFetchInterval = time.Minute
	// minRetryDelay is doubled up to minFetchInterval while fetching fails, so that
	// an agent that starts before its router soon has its keys.
	minRetryDelay = time.Second
)

// keyCache caches the router's public keys by kid. It is safe for concurrent use.
type keyCache struct {
	url    string
	client *http.Client
	now    func() time.Time

	mu         sync.Mutex
	current    map[string]*publicKey // immutable, replaced by each fetch
	fetched    time.Time             // time of the last successful fetch; zero = none
	nextFetch  time.Time             // no fetch before this time
	retryDelay time.Duration         // delay after the next failure
	fetching   chan struct{}         // closed when the fetch in progress ends; nil = none
	failure    error                 // of the last fetch
}

func newKeyCache(cfg Config) *keyCache {
	return &keyCache{url: cfg.JWKSURL, client: cfg.Client, now: cfg.Now, retryDelay: minRetryDelay}
}

// lookupKey returns the key with the kid, from the cache if possible. Concurrent
// calls for an unknown key share one fetch.
func (k *keyCache) lookupKey(ctx context.Context, kid string) (*publicKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for {
		age := k.now().Sub(k.fetched)
		key, known := k.current[kid]
		switch {
		case known && age < freshFor:
			return key, nil
		case k.fetching != nil:
			if err := k.waitForFetch(ctx); err != nil {
				return nil, err
			}
		case !k.now().Before(k.nextFetch):
			k.refreshKeys(ctx)
		case known && age < usableFor:
			return key, nil
		case k.failure != nil:
			return nil, errors.New("the router's keys cannot be fetched now")
		default:
			return nil, errors.New("kid is not a key of the router")
		}
	}
}

// waitForFetch waits for the fetch in progress. The caller holds mu, which is
// released during the wait.
func (k *keyCache) waitForFetch(ctx context.Context) error {
	fetching := k.fetching
	k.mu.Unlock()
	defer k.mu.Lock()
	select {
	case <-fetching:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refreshKeys fetches the keys. The caller holds mu, which is released during the
// fetch.
func (k *keyCache) refreshKeys(ctx context.Context) {
	fetching := make(chan struct{})
	k.fetching = fetching
	defer func() { // deferred, so that waiting calls are released after a panic
		k.fetching = nil
		close(fetching)
	}()
	// Other requests share this fetch, so it must not end with this one.
	fetched, err := k.fetchUnlocked(context.WithoutCancel(ctx))

	now := k.now()
	k.failure = err
	if err != nil {
		k.nextFetch = now.Add(k.retryDelay)
		k.retryDelay = min(2*k.retryDelay, minFetchInterval)
		return
	}
	k.current, k.fetched = fetched, now
	k.nextFetch, k.retryDelay = now.Add(minFetchInterval), minRetryDelay
}

func (k *keyCache) fetchUnlocked(ctx context.Context) (map[string]*publicKey, error) {
	k.mu.Unlock()
	defer k.mu.Lock()
	return k.fetchKeys(ctx)
}

func (k *keyCache) fetchKeys(ctx context.Context) (map[string]*publicKey, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, k.url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	resp, err := k.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("answered %d", resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxKeySetBytes+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxKeySetBytes {
		return nil, fmt.Errorf("more than %d bytes", maxKeySetBytes)
	}
	return parseKeySet(body)
}
