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

// fakeKeyServer is the key set endpoint of an identity provider, without a network. It also
// collects the log of the RemoteKeys.
type fakeKeyServer struct {
	mu      sync.Mutex
	body    string
	err     error
	delay   time.Duration
	fetches []time.Time
	log     bytes.Buffer // of the RemoteKeys
}

func (h *fakeKeyServer) setResponse(body string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.body, h.err = body, err
}

func (h *fakeKeyServer) fetchCount() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.fetches)
}

func (h *fakeKeyServer) RoundTrip(r *http.Request) (*http.Response, error) {
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

// Write collects the log.
func (h *fakeKeyServer) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log.Write(p)
}

func (h *fakeKeyServer) logCount(text string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Count(h.log.String(), text)
}

func (h *fakeKeyServer) newRemoteKeys(t testing.TB) *RemoteKeys {
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

// startRemoteKeys returns keys that are refreshed until the test ends.
func (h *fakeKeyServer) startRemoteKeys(t *testing.T) *RemoteKeys {
	t.Helper()
	r := h.newRemoteKeys(t)
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

// advance advances the fake clock of the synctest bubble.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// wantKey looks up a key that must exist.
func wantKey(t *testing.T, r *RemoteKeys, kid string, want crypto.PublicKey) *verifyKey {
	t.Helper()
	k, err := r.findKey(t.Context(), kid, "EdDSA", time.Now())
	if err != nil || k == nil || !equalKeys(k.key, want) {
		t.Fatalf("findKey(%q) = %v, error %v; want the key", kid, k, err)
	}
	return k
}

// wantNoKey looks up a key that must not be found. The lookup must return an error if wantErr
// is set, because the key may exist.
func wantNoKey(t *testing.T, r *RemoteKeys, kid string, wantErr bool) {
	t.Helper()
	k, err := r.findKey(t.Context(), kid, "EdDSA", time.Now())
	if k != nil || (err != nil) != wantErr {
		t.Fatalf("findKey(%q) = %v, error %v; want no key, an error: %v", kid, k, err, wantErr)
	}
	if err != nil && (!strings.Contains(err.Error(), remoteIssuer) || strings.Contains(err.Error(), remoteURL)) {
		t.Errorf("got error %v, want one with the issuer and without the URL", err)
	}
}

func TestRemoteKeys_FindsKeysByIDOrAlgorithm(t *testing.T) {
	ed, ec, rs := testjwk.Ed25519(t), testjwk.P256(t), testjwk.RSA(t, 2048)
	synctest.Test(t, func(t *testing.T) {
		h := &fakeKeyServer{delay: time.Second}
		h.setResponse(testjwk.SetText(t, testjwk.Of(t, "ed", ed), testjwk.Of(t, "ec", ec), testjwk.Of(t, "rs", rs), testjwk.Of(t, "rs2", rs)), nil)
		r := h.startRemoteKeys(t)
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
				t.Errorf("findKey(%q, %q) = %v, error %v; want %v", tt.kid, tt.alg, k, err, tt.want)
			}
		}
		if got := h.fetchCount(); got != 1 {
			t.Errorf("got %d fetches, want 1", got)
		}
	})
}

func TestRemoteKeys_UnknownKIDsFetchOnceAMinute(t *testing.T) {
	key := testjwk.Ed25519(t)
	for _, concurrent := range []int{1, 100} {
		t.Run(fmt.Sprint(concurrent, " concurrent"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &fakeKeyServer{delay: time.Second}
				h.setResponse(testjwk.SetText(t, testjwk.Of(t, "k", key)), nil)
				r := h.startRemoteKeys(t)
				findRandomKIDs := func() {
					run.ForEach(t.Context(), concurrent, 10_000, func(ctx context.Context, i int) {
						if k, err := r.findKey(ctx, fmt.Sprint("random-", i), "EdDSA", time.Now()); k != nil || err != nil {
							t.Errorf("findKey of a random kid = %v, error %v; want none", k, err)
						}
					})
				}
				for minute := range 3 {
					began := time.Now()
					findRandomKIDs()
					if got := h.fetchCount(); got != minute+1 {
						t.Errorf("minute %d: got %d fetches, want %d", minute, got, minute+1)
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
		h := &fakeKeyServer{}
		h.setResponse(testjwk.SetText(t, testjwk.Of(t, "1", first), testjwk.Of(t, "stays", other)), nil)
		r := h.startRemoteKeys(t)
		old, stays := wantKey(t, r, "1", first), wantKey(t, r, "stays", other)
		h.setResponse(testjwk.SetText(t, testjwk.Of(t, "stays", other), testjwk.Of(t, "2", second)), nil)
		wantNoKey(t, r, "2", false)
		advance(time.Minute)
		if !r.isValid(old, time.Now()) {
			t.Error("isValid = false for a removed key before the next fetch, want true")
		}
		wantKey(t, r, "2", second)
		if r.isValid(old, time.Now()) {
			t.Error("isValid = true for a removed key, want false")
		}
		if found := wantKey(t, r, "stays", other); found != stays || !r.isValid(stays, time.Now()) {
			t.Error("got another or an invalid key for a kid that stayed in the set, want the same key")
		}
		wantNoKey(t, r, "1", false)

		// The set has another key for the same kid.
		h.setResponse(testjwk.SetText(t, testjwk.Of(t, "stays", first)), nil)
		advance(time.Minute)
		wantNoKey(t, r, "3", false)
		if r.isValid(stays, time.Now()) {
			t.Error("isValid = true for a key whose kid has another key now, want false")
		}
		if got := h.fetchCount(); got != 3 {
			t.Errorf("got %d fetches, want 3", got)
		}
	})
}

func TestRemoteKeys_IsValidOnlyForOwnKeys(t *testing.T) {
	key := testjwk.Ed25519(t)
	synctest.Test(t, func(t *testing.T) {
		h, other := &fakeKeyServer{}, &fakeKeyServer{}
		h.setResponse(testjwk.SetText(t, testjwk.Of(t, "k", key)), nil)
		other.setResponse(testjwk.SetText(t, testjwk.Of(t, "k", key)), nil)
		r, s := h.startRemoteKeys(t), other.startRemoteKeys(t)
		k := wantKey(t, r, "k", key)
		wantKey(t, s, "k", key)
		if s.isValid(k, time.Now()) {
			t.Error("isValid = true for a key of another issuer, want false")
		}
		if n := testing.AllocsPerRun(100, func() { r.isValid(k, time.Time{}) }); n != 0 {
			t.Errorf("got %v allocations by isValid, want 0", n)
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
		{"valid", func(*RemoteConfig) {}, ""},
		{"loopback", func(c *RemoteConfig) { c.URL = "http://127.0.0.1:80/jwks" }, ""},
		{"no issuer", func(c *RemoteConfig) { c.Issuer = "" }, "has no name"},
		{"no audience", func(c *RemoteConfig) { c.Audience = "" }, "no audience"},
		{"no URL", func(c *RemoteConfig) { c.URL = "" }, "is not the https URL"},
		{"URL is a path", func(c *RemoteConfig) { c.URL = "/jwks" }, "is not the https URL"},
		{"file URL", func(c *RemoteConfig) { c.URL = "file:///jwks" }, "is not the https URL"},
		{"no host", func(c *RemoteConfig) { c.URL = "https://:443/jwks" }, "is not the https URL"},
		{"plain http", func(c *RemoteConfig) { c.URL = "http://idp.example/jwks" }, "use https"},
		{"tenant claim", func(c *RemoteConfig) { c.TenantClaim = "https://idp.example/org id" }, ""},
		{"tenant claim with a leading space", func(c *RemoteConfig) { c.TenantClaim = " org" }, `tenant claim " org"`},
		{"tenant claim with a trailing no-break space", func(c *RemoteConfig) { c.TenantClaim = "org\u00a0" }, "tenant claim"},
		{"tenant claim of spaces", func(c *RemoteConfig) { c.TenantClaim = "  " }, "tenant claim"},
		{"tenant claim with a line break", func(c *RemoteConfig) { c.TenantClaim = "or\ng" }, `tenant claim "or\ng"`},
		{"tenant claim is not UTF-8", func(c *RemoteConfig) { c.TenantClaim = "\xff" }, "tenant claim"},
		{"issuer with a NUL", func(c *RemoteConfig) { c.Issuer = "https://idp.example\x00" }, "its name cannot be in a token"},
		{"URL with a password", func(c *RemoteConfig) { c.URL = "https://u:p@idp.example/jwks" }, "user name or password"},
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
