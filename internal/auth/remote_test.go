package auth

import (
	"bytes"
	"context"
	"crypto"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/testkit/testjwk"
)

const (
	remoteIssuer = "https://idp.example"
	remoteURL    = "https://idp.example/jwks"
)

// keyHost is an identity provider without a network.
type keyHost struct {
	mu      sync.Mutex
	body    string
	err     error
	delay   time.Duration
	fetches []time.Time
	log     bytes.Buffer // of the RemoteKeys
}

func (h *keyHost) serve(body string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.body, h.err = body, err
}

func (h *keyHost) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.fetches)
}

func (h *keyHost) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	h.fetches = append(h.fetches, time.Now())
	body, err, delay := h.body, h.err, h.delay
	h.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}}, nil
}

// Write records the log.
func (h *keyHost) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log.Write(p)
}

func (h *keyHost) logged(text string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Count(h.log.String(), text)
}

func (h *keyHost) keys(t testing.TB) *RemoteKeys {
	t.Helper()
	r, err := NewRemoteKeys(RemoteConfig{
		Issuer: remoteIssuer, URL: remoteURL, Audience: "caprouter", TenantClaim: "tenant",
		Client: &http.Client{Transport: h}, Logger: slog.New(slog.NewTextHandler(h, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// start returns keys that are refreshed until the test ends.
func (h *keyHost) start(t *testing.T) *RemoteKeys {
	t.Helper()
	r := h.keys(t)
	startRun(t, r)
	return r
}

func startRun(t *testing.T, r *RemoteKeys) {
	t.Helper()
	g := run.New(t.Context())
	g.Go("keep keys fresh", r.Run)
	t.Cleanup(func() {
		g.Stop(nil)
		if err := g.Wait(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// advance waits in the time of the bubble.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// wantKey looks up a key that must exist.
func wantKey(t *testing.T, r *RemoteKeys, kid string, want crypto.PublicKey) *verifyKey {
	t.Helper()
	k, err := r.findKey(t.Context(), kid, "EdDSA", time.Now())
	if err != nil || k == nil || !equalKeys(k.key, want) {
		t.Fatalf("find(%q) = %v, error %v; want the key", kid, k, err)
	}
	return k
}

// wantNone looks up a key that must not exist, or cannot be looked up now if
// cannotTell is set.
func wantNone(t *testing.T, r *RemoteKeys, kid string, cannotTell bool) {
	t.Helper()
	k, err := r.findKey(t.Context(), kid, "EdDSA", time.Now())
	if k != nil || (err != nil) != cannotTell {
		t.Fatalf("find(%q) = %v, error %v; want no key, an error: %v", kid, k, err, cannotTell)
	}
	if err != nil && (!strings.Contains(err.Error(), remoteIssuer) || strings.Contains(err.Error(), remoteURL)) {
		t.Errorf("error %v, want one that names the issuer only", err)
	}
}

func TestRemoteKeys_FindsKeyWithItsIssuer(t *testing.T) {
	ed, ec, rs := testjwk.Ed25519(t), testjwk.P256(t), testjwk.RSA(t, 2048)
	synctest.Test(t, func(t *testing.T) {
		h := &keyHost{delay: time.Second}
		h.serve(testjwk.SetText(t, testjwk.Of(t, "ed", ed), testjwk.Of(t, "ec", ec), testjwk.Of(t, "rs", rs), testjwk.Of(t, "rs2", rs)), nil)
		r := h.start(t)
		k := wantKey(t, r, "ed", ed)
		if k.issuer != remoteIssuer || k.audience != "caprouter" || k.tenantClaim != "tenant" {
			t.Errorf("got key for %q, %q, %q; want the configured values", k.issuer, k.audience, k.tenantClaim)
		}
		for _, tt := range []struct {
			kid, alg string
			want     crypto.PublicKey // nil = no key
		}{
			{"", "EdDSA", ed},
			{"", "ES256", ec},
			{"", "RS256", nil}, // two keys match
			{"", "HS256", nil},
			{"", "none", nil},
			{"ec", "EdDSA", ec}, // the verifier compares the algorithms
			{"ED", "EdDSA", nil},
		} {
			k, err := r.findKey(t.Context(), tt.kid, tt.alg, time.Now())
			if err != nil || (k == nil) != (tt.want == nil) || k != nil && !equalKeys(k.key, tt.want) {
				t.Errorf("find(%q, %q) = %v, error %v; want %v", tt.kid, tt.alg, k, err, tt.want)
			}
		}
		if got := h.count(); got != 1 {
			t.Errorf("%d fetches, want 1", got)
		}
	})
}

func TestRemoteKeys_UnknownKIDsFetchOnceAMinute(t *testing.T) {
	key := testjwk.Ed25519(t)
	for _, atOnce := range []int{1, 100} {
		t.Run(fmt.Sprint(atOnce, " at once"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &keyHost{delay: time.Second}
				h.serve(testjwk.SetText(t, testjwk.Of(t, "k", key)), nil)
				r := h.start(t)
				ask := func() {
					run.ForEach(t.Context(), atOnce, 10_000, func(ctx context.Context, i int) {
						if k, err := r.findKey(ctx, fmt.Sprint("random-", i), "EdDSA", time.Now()); k != nil || err != nil {
							t.Errorf("find of a random kid = %v, error %v; want none", k, err)
						}
					})
				}
				for minute := range 3 {
					began := time.Now()
					ask()
					if got := h.count(); got != minute+1 {
						t.Errorf("minute %d: %d fetches, want %d", minute, got, minute+1)
					}
					wantKey(t, r, "k", key)
					advance(time.Minute + time.Second - time.Since(began))
				}
			})
		})
	}
}

func TestRemoteKeys_FollowsKeyRotation(t *testing.T) {
	first, second, other := testjwk.Ed25519(t), testjwk.Ed25519(t), testjwk.Ed25519(t)
	synctest.Test(t, func(t *testing.T) {
		h := &keyHost{}
		h.serve(testjwk.SetText(t, testjwk.Of(t, "1", first), testjwk.Of(t, "stays", other)), nil)
		r := h.start(t)
		old, stays := wantKey(t, r, "1", first), wantKey(t, r, "stays", other)
		h.serve(testjwk.SetText(t, testjwk.Of(t, "stays", other), testjwk.Of(t, "2", second)), nil)
		wantNone(t, r, "2", false)
		advance(time.Minute)
		if !r.isValid(old, time.Now()) {
			t.Error("got a key not held before another one was looked up")
		}
		wantKey(t, r, "2", second)
		if r.isValid(old, time.Now()) {
			t.Error("a key holds that has left the set")
		}
		if again := wantKey(t, r, "stays", other); again != stays || !r.isValid(stays, time.Now()) {
			t.Error("got a key of the set that is another one, or not held")
		}
		wantNone(t, r, "1", false)

		// The kid is unchanged, but the key is another one.
		h.serve(testjwk.SetText(t, testjwk.Of(t, "stays", first)), nil)
		advance(time.Minute)
		wantNone(t, r, "3", false)
		if r.isValid(stays, time.Now()) {
			t.Error("got a key held whose kid belongs to another one now")
		}
		if got := h.count(); got != 3 {
			t.Errorf("%d fetches, want 3", got)
		}
	})
}

func TestRemoteKeys_HoldsOwnKeysOnly(t *testing.T) {
	key := testjwk.Ed25519(t)
	synctest.Test(t, func(t *testing.T) {
		h, other := &keyHost{}, &keyHost{}
		h.serve(testjwk.SetText(t, testjwk.Of(t, "k", key)), nil)
		other.serve(testjwk.SetText(t, testjwk.Of(t, "k", key)), nil)
		r, s := h.start(t), other.start(t)
		k := wantKey(t, r, "k", key)
		wantKey(t, s, "k", key)
		if s.isValid(k, time.Now()) {
			t.Error("got a key of another issuer held")
		}
		if n := testing.AllocsPerRun(100, func() { r.isValid(k, time.Time{}) }); n != 0 {
			t.Errorf("holds allocates %v times, want 0", n)
		}
	})
}

func TestNewRemoteKeys_RejectsInvalidConfig(t *testing.T) {
	good := RemoteConfig{Issuer: remoteIssuer, URL: remoteURL, Audience: "caprouter"}
	for _, tt := range []struct {
		name   string
		change func(*RemoteConfig)
		want   string // "" = valid
	}{
		{"nothing wrong", func(*RemoteConfig) {}, ""},
		{"loopback", func(c *RemoteConfig) { c.URL = "http://127.0.0.1:80/jwks" }, ""},
		{"no issuer", func(c *RemoteConfig) { c.Issuer = "" }, "has no name"},
		{"no audience", func(c *RemoteConfig) { c.Audience = "" }, "no audience"},
		{"no URL", func(c *RemoteConfig) { c.URL = "" }, "is not the https URL"},
		{"a path", func(c *RemoteConfig) { c.URL = "/jwks" }, "is not the https URL"},
		{"a file", func(c *RemoteConfig) { c.URL = "file:///jwks" }, "is not the https URL"},
		{"no host", func(c *RemoteConfig) { c.URL = "https://:443/jwks" }, "is not the https URL"},
		{"plain http", func(c *RemoteConfig) { c.URL = "http://idp.example/jwks" }, "use https"},
		{"a tenant claim", func(c *RemoteConfig) { c.TenantClaim = "https://idp.example/org id" }, ""},
		{"a tenant claim with a space before it", func(c *RemoteConfig) { c.TenantClaim = " org" }, `tenant claim " org"`},
		{"a tenant claim with a space behind it", func(c *RemoteConfig) { c.TenantClaim = "org\u00a0" }, "tenant claim"},
		{"a tenant claim of spaces", func(c *RemoteConfig) { c.TenantClaim = "  " }, "tenant claim"},
		{"a tenant claim with a line break", func(c *RemoteConfig) { c.TenantClaim = "or\ng" }, `tenant claim "or\ng"`},
		{"a tenant claim that is no text", func(c *RemoteConfig) { c.TenantClaim = "\xff" }, "tenant claim"},
		{"an issuer no token names", func(c *RemoteConfig) { c.Issuer = "https://idp.example\x00" }, "no token could name it"},
		{"a password", func(c *RemoteConfig) { c.URL = "https://u:p@idp.example/jwks" }, "user name or password"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := good
			tt.change(&cfg)
			_, err := NewRemoteKeys(cfg)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want %q", err, tt.want)
			}
		})
	}
}
