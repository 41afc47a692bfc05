package agentkit

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
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

	// keysFresh is how long a key set is used without asking again.
	keysFresh = 10 * time.Minute
	// keysUsable is how long it is used while it cannot be fetched again. After
	// that everything is refused: a key the router has withdrawn must die.
	keysUsable = time.Hour
	// refetchEvery bounds what tokens with an invented kid can cause.
	refetchEvery = time.Minute
	// firstRetry is doubled up to refetchEvery while fetching fails, so that an
	// agent started before its router is not deaf for a minute.
	firstRetry = time.Second
)

// keys are the router's public keys by kid.
type keys struct {
	url    string
	client *http.Client
	now    func() time.Time

	mu      sync.Mutex
	current map[string]ed25519.PublicKey // replaced, never changed
	fetched time.Time                    // when current was; zero = never
	next    time.Time                    // no fetch before
	retry   time.Duration                // after the next failure
	pending chan struct{}                // closed when the fetch under way ends; nil = none
	failure error                        // of the latest fetch
}

func newKeys(cfg Config) *keys {
	return &keys{url: cfg.JWKSURL, client: cfg.Client, now: cfg.Now, retry: firstRetry}
}

// get returns the key with the kid, from memory when it can. However many ask
// for a key that is not there, one fetch is made for all of them.
func (k *keys) get(ctx context.Context, kid string) (ed25519.PublicKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for {
		age := k.now().Sub(k.fetched)
		key, known := k.current[kid]
		switch {
		case known && age < keysFresh:
			return key, nil
		case k.pending != nil:
			if err := k.await(ctx); err != nil {
				return nil, err
			}
		case !k.now().Before(k.next):
			k.refresh(ctx)
		case known && age < keysUsable:
			return key, nil
		case k.failure != nil:
			return nil, errors.New("the router's keys cannot be fetched now")
		default:
			return nil, errors.New("kid is not a key of the router")
		}
	}
}

// await waits for the fetch under way. mu is held, but for the wait.
func (k *keys) await(ctx context.Context) error {
	pending := k.pending
	k.mu.Unlock()
	defer k.mu.Lock()
	select {
	case <-pending:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refresh fetches the keys. mu is held, but for the fetch.
func (k *keys) refresh(ctx context.Context) {
	pending := make(chan struct{})
	k.pending = pending
	defer func() { // deferred: those who wait must not wait on a panic
		k.pending = nil
		close(pending)
	}()
	// Others wait for this fetch: it must not end with one caller's request.
	fetched, err := k.fetchUnlocked(context.WithoutCancel(ctx))

	now := k.now()
	k.failure = err
	if err != nil {
		k.next = now.Add(k.retry)
		k.retry = min(2*k.retry, refetchEvery)
		return
	}
	k.current, k.fetched = fetched, now
	k.next, k.retry = now.Add(refetchEvery), firstRetry
}

func (k *keys) fetchUnlocked(ctx context.Context) (map[string]ed25519.PublicKey, error) {
	k.mu.Unlock()
	defer k.mu.Lock()
	return k.fetch(ctx)
}

func (k *keys) fetch(ctx context.Context) (map[string]ed25519.PublicKey, error) {
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

// keySet is a JWK set (RFC 7517) as far as Ed25519 keys (RFC 8037) go.
type keySet struct {
	Keys []struct {
		Type      string `json:"kty"`
		Curve     string `json:"crv"`
		X         string `json:"x"`
		KeyID     string `json:"kid"`
		Use       string `json:"use"`
		Algorithm string `json:"alg"`
	} `json:"keys"`
}

// parseKeySet returns the Ed25519 signing keys of a key set. Others are passed
// over: a router may have keys this version does not know.
func parseKeySet(body []byte) (map[string]ed25519.PublicKey, error) {
	var set keySet
	if err := decodeStrict(body, &set); err != nil {
		return nil, err
	}
	found := map[string]ed25519.PublicKey{}
	for _, k := range set.Keys {
		if k.Type != "OKP" || k.Curve != "Ed25519" || k.KeyID == "" ||
			k.Use != "" && k.Use != "sig" || k.Algorithm != "" && k.Algorithm != tokenAlg {
			continue
		}
		x, err := base64.RawURLEncoding.Strict().DecodeString(k.X)
		if err != nil || len(x) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("key %.40q is not an Ed25519 key", k.KeyID)
		}
		if _, twice := found[k.KeyID]; twice {
			return nil, fmt.Errorf("two keys have the kid %.40q", k.KeyID)
		}
		found[k.KeyID] = x
	}
	if len(found) == 0 {
		return nil, errors.New("no Ed25519 key in the key set")
	}
	return found, nil
}
