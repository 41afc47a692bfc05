package agentkit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caprouter/caprouter/agentkit"
)

// transport serves key sets without a network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}}
}

// offlineAgent returns an agent that needs no network, and a token for it.
func offlineAgent(t *testing.T, work agentkit.Work) (http.Handler, string) {
	t.Helper()
	k := newKeyService()
	return k.agent(t, work), k.router.token(validClaims())
}

// keyService serves a key set that changes, and has its own clock.
type keyService struct {
	router  *fakeRouter
	fetches atomic.Int64
	mu      sync.Mutex
	set     string
	err     error
	now     time.Time
}

func newKeyService() *keyService {
	r := newKeyOnly()
	return &keyService{router: r, set: `{"keys":[` + r.jwk("k1") + `]}`, now: time.Now()}
}

func (k *keyService) change(set string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.set, k.err = set, err
}

func (k *keyService) clock() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now
}

func (k *keyService) advance(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now = k.now.Add(d)
}

func (k *keyService) RoundTrip(*http.Request) (*http.Response, error) {
	k.fetches.Add(1)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil {
		return nil, k.err
	}
	return answer(http.StatusOK, k.set), nil
}

func (k *keyService) agent(t *testing.T, work agentkit.Work) http.Handler {
	t.Helper()
	return newAgent(t, nil, nil, work, func(c *agentkit.Config) {
		c.JWKSURL, c.Client, c.Now = "http://router.example/jwks.json", &http.Client{Transport: k}, k.clock
	})
}

// token returns a token of key kid that is valid at the service's time.
func (k *keyService) token(kid string) string {
	now := k.clock().Unix()
	return k.router.sign(k.router.header().with("kid", kid).json(),
		validClaims().with("iat", now).with("exp", now+60).with("task_id", nil).json())
}

// statusOf sends a cancellation, the shortest request that verifies a token.
func statusOf(h http.Handler, token string) int {
	return serve(h, post("/"+taskID+"/cancel", token, "")).Code
}

func TestKeyCache_FetchesOnce(t *testing.T) {
	k := newKeyService()
	h := k.agent(t, countWords)
	for range 50 {
		if got := statusOf(h, k.token("k1")); got != http.StatusNoContent {
			t.Fatalf("valid token: got %d, want 204", got)
		}
	}
	if got := k.fetches.Load(); got != 1 {
		t.Errorf("got %d fetches, want 1", got)
	}
}

func TestKeyCache_FetchesForUnknownKidOnceAMinute(t *testing.T) {
	k := newKeyService()
	h := k.agent(t, countWords)
	statusOf(h, k.token("k1"))
	for i := range 100 {
		if got := statusOf(h, k.token(fmt.Sprintf("invented-%d", i))); got != http.StatusUnauthorized {
			t.Fatalf("unknown kid: got %d, want 401", got)
		}
	}
	if got := k.fetches.Load(); got != 1 {
		t.Errorf("got %d fetches in the first minute, want 1", got)
	}
	k.change(`{"keys":[`+k.router.jwk("k1")+`,`+k.router.jwk("k2")+`]}`, nil)
	if got := statusOf(h, k.token("k2")); got != http.StatusUnauthorized {
		t.Errorf("new key within a minute: got %d, want 401", got)
	}
	k.advance(time.Minute)
	for range 10 {
		if got := statusOf(h, k.token("k2")); got != http.StatusNoContent {
			t.Errorf("new key after a minute: got %d, want 204", got)
		}
	}
	if got := k.fetches.Load(); got != 2 {
		t.Errorf("got %d fetches after a minute, want 2", got)
	}
}

func TestKeyCache_RejectsRevokedKey(t *testing.T) {
	k := newKeyService()
	h := k.agent(t, countWords)
	statusOf(h, k.token("k1"))
	k.change(`{"keys":[`+k.router.jwk("k2")+`]}`, nil)
	k.advance(10*time.Minute - time.Second)
	if got := statusOf(h, k.token("k1")); got != http.StatusNoContent {
		t.Errorf("key of a fresh set: got %d, want 204", got)
	}
	k.advance(time.Second)
	if got := statusOf(h, k.token("k1")); got != http.StatusUnauthorized {
		t.Errorf("removed key after ten minutes: got %d, want 401", got)
	}
}

func TestKeyCache_UsesKeysForAnHourOfOutage(t *testing.T) {
	k := newKeyService()
	h := k.agent(t, countWords)
	statusOf(h, k.token("k1"))
	k.change("", errors.New("no route to host"))
	k.advance(time.Hour - time.Second)
	if got := statusOf(h, k.token("k1")); got != http.StatusNoContent {
		t.Errorf("key during an outage: got %d, want 204", got)
	}
	k.advance(time.Second)
	if got := statusOf(h, k.token("k1")); got != http.StatusUnauthorized {
		t.Errorf("key after an hour's outage: got %d, want 401", got)
	}
	k.change(`{"keys":[`+k.router.jwk("k1")+`]}`, nil)
	k.advance(time.Minute)
	if got := statusOf(h, k.token("k1")); got != http.StatusNoContent {
		t.Errorf("key after the outage: got %d, want 204", got)
	}
}

// If the first fetch fails, for example because the agent starts before its router, it is repeated
// soon, then less often.
func TestKeyCache_RetriesFailedFetch(t *testing.T) {
	k := newKeyService()
	k.change("", errors.New("connection refused"))
	h := k.agent(t, countWords)
	var at []int
	for second := range 240 {
		before := k.fetches.Load()
		if got := statusOf(h, k.token("k1")); got != http.StatusUnauthorized {
			t.Fatalf("token without keys: got %d, want 401", got)
		}
		if k.fetches.Load() > before {
			at = append(at, second)
		}
		k.advance(time.Second)
	}
	if got, want := fmt.Sprint(at), "[0 1 3 7 15 31 63 123 183]"; got != want {
		t.Errorf("got fetches at seconds %s, want %s", got, want)
	}
}

func TestKeyCache_ConcurrentRequestsShareFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeyService()
		inFetch, resume := make(chan struct{}), make(chan struct{})
		slow := transport(func(r *http.Request) (*http.Response, error) {
			close(inFetch)
			<-resume
			if err := r.Context().Err(); err != nil {
				return nil, err
			}
			return k.RoundTrip(r)
		})
		h := newAgent(t, nil, nil, countWords, func(c *agentkit.Config) {
			c.JWKSURL, c.Client = "http://router.example/jwks.json", &http.Client{Transport: slow}
		})
		var wg sync.WaitGroup
		first, cancelFirst := context.WithCancel(t.Context())
		wg.Go(func() {
			r := post("/"+taskID+"/cancel", k.token("k1"), "")
			serve(h, r.WithContext(first))
		})
		<-inFetch
		var good atomic.Int64
		for range 20 {
			wg.Go(func() {
				if statusOf(h, k.token("k1")) == http.StatusNoContent {
					good.Add(1)
				}
			})
		}
		cancelled, giveUp := context.WithCancel(t.Context())
		wg.Go(func() {
			r := post("/"+taskID+"/cancel", k.token("k1"), "")
			if got := serve(h, r.WithContext(cancelled)).Code; got != http.StatusUnauthorized {
				t.Errorf("cancelled request: got %d, want 401", got)
			}
		})
		synctest.Wait()
		giveUp()
		cancelFirst() // the request that started the fetch ends; the others are not affected
		synctest.Wait()
		close(resume)
		wg.Wait()
		if good.Load() != 20 || k.fetches.Load() != 1 {
			t.Errorf("got %d of 20 requests accepted after %d fetches, want all after 1", good.Load(), k.fetches.Load())
		}
	})
}

func TestKeyCache_ParsesKeySets(t *testing.T) {
	r := newKeyOnly()
	good := r.jwk("k1")
	change := func(from, to string) string { return strings.Replace(good, from, to, 1) }
	for _, tc := range []struct {
		name, set string
		ok        bool
	}{
		{"one key", good, true},
		{"without use and alg", change(`,"use":"sig","alg":"EdDSA"`, ""), true},
		{"among keys of other types", `{"kty":"RSA","kid":"r","n":"AQAB","e":"AQAB"},{"kty":"EC","kid":"e"},` + good, true},
		{"with members of a newer router", change(`{`, `{"nbf":1,`), true},
		{"for encryption", change("sig", "enc"), false},
		{"for another algorithm", change("EdDSA", "HS256"), false},
		{"on another curve", change("Ed25519", "Ed448"), false},
		{"of another type", change("OKP", "oct"), false},
		{"without a kid", change(`"kid":"k1"`, `"kid":""`), false},
		{"too short", change(b64(r.public()), "AAAA"), false},
		{"with padding", change(b64(r.public()), b64(r.public())+"="), false},
		{"duplicate name", good + "," + good, false},
		{"none", "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := newKeyService()
			k.change(`{"keys":[`+tc.set+`]}`, nil)
			got := statusOf(k.agent(t, countWords), k.token("k1"))
			if want := map[bool]int{true: http.StatusNoContent, false: http.StatusUnauthorized}[tc.ok]; got != want {
				t.Errorf("got %d for a token with the keys [%s], want %d", got, tc.set, want)
			}
		})
	}
	for name, set := range map[string]string{
		"not JSON":              "<html>",
		"duplicate keys member": `{"keys":[],"keys":[` + good + `]}`,
		"KEYS":                  `{"KEYS":[` + good + `]}`,
		"body too long":         `{"keys":[` + good + `],"pad":"` + strings.Repeat("x", 256<<10) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeyService()
			k.change(set, nil)
			if got := statusOf(k.agent(t, countWords), k.token("k1")); got != http.StatusUnauthorized {
				t.Errorf("token: got %d, want 401", got)
			}
		})
	}
}

func TestKeyCache_ParsesP256Keys(t *testing.T) {
	r := newES256KeyOnly()
	good := r.jwk("k1")
	x, y := r.point()
	change := func(from, to string) string { return strings.Replace(good, from, to, 1) }
	for _, tc := range []struct {
		name, set string
		ok        bool
	}{
		{"one key", good, true},
		{"without use and alg", change(`,"use":"sig","alg":"ES256"`, ""), true},
		{"next to an Ed25519 key", newKeyOnly().jwk("k2") + "," + good, true},
		{"for encryption", change("sig", "enc"), false},
		{"for another algorithm", change("ES256", "EdDSA"), false},
		{"for a secret", change("ES256", "HS256"), false},
		{"on another curve", change("P-256", "P-384"), false},
		{"curve of the other type", change("P-256", "Ed25519"), false},
		{"of the other type", change("EC", "OKP"), false},
		{"not on the curve", change(b64(y), b64(x)), false},
		{"point at infinity", change(b64(x), b64(make([]byte, 32))), false},
		{"without y", change(b64(y), ""), false},
		{"with a short x", change(b64(x), b64(x[1:])), false},
		{"with a long x", change(b64(x), b64(append([]byte{0}, x...))), false},
		{"with padding", change(b64(x), b64(x)+"="), false},
		{"kid of an Ed25519 key", newKeyOnly().jwk("k1") + "," + good, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := newKeyService()
			k.router = r
			k.change(`{"keys":[`+tc.set+`]}`, nil)
			got := statusOf(k.agent(t, countWords), k.token("k1"))
			if want := map[bool]int{true: http.StatusNoContent, false: http.StatusUnauthorized}[tc.ok]; got != want {
				t.Errorf("got %d for a token with the keys [%s], want %d", got, tc.set, want)
			}
		})
	}
}

// The key set of the router contains a key for each algorithm. The key determines the algorithm:
// the header of a token selects neither another algorithm nor another key.
func TestTokenVerifier_TakesAlgorithmFromKey(t *testing.T) {
	ed, ec := newKeyOnly(), newES256KeyOnly()
	ed.kid, ec.kid = "ed", "ec"
	k := newKeyService()
	k.change(`{"keys":[`+ed.jwk("ed")+`,`+ec.jwk("ec")+`]}`, nil)
	h := k.agent(t, countWords)
	for _, r := range []*fakeRouter{ed, ec} {
		for _, kid := range []string{"ed", "ec"} {
			for _, alg := range []string{"EdDSA", "ES256", "HS256", "none"} {
				token := r.sign(r.header().with("kid", kid).with("alg", alg).json(), validClaims().json())
				want := http.StatusUnauthorized
				if kid == r.kid && alg == r.alg() {
					want = http.StatusNoContent
				}
				if got := statusOf(h, token); got != want {
					t.Errorf("signature with %s, kid %s and alg %s: got %d, want %d", r.alg(), kid, alg, got, want)
				}
			}
		}
	}
}

func TestKeyCache_FetchesOverHTTP(t *testing.T) {
	t.Run("error page", func(t *testing.T) {
		r := newFakeRouter(t)
		r.status.Store(http.StatusInternalServerError)
		if got := statusOf(newAgent(t, r, nil, countWords), r.token(validClaims())); got != http.StatusUnauthorized {
			t.Errorf("token: got %d, want 401", got)
		}
	})
	t.Run("redirect not followed", func(t *testing.T) {
		target, r := newFakeRouter(t), newFakeRouter(t)
		r.redirect = target.server.URL
		h := newAgent(t, r, nil, countWords, func(c *agentkit.Config) { c.Client = nil })
		if got := statusOf(h, r.token(validClaims())); got != http.StatusUnauthorized || target.fetches.Load() != 0 {
			t.Errorf("got %d after %d fetches from the target of the redirect, want 401 after none", got, target.fetches.Load())
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	t.Run("panic in the client", func(t *testing.T) {
		k := newKeyService()
		h := newAgent(t, nil, nil, countWords, func(c *agentkit.Config) {
			c.JWKSURL = "http://router.example"
			c.Client = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
				if k.fetches.Load() == 0 {
					k.fetches.Add(1)
					panic("boom")
				}
				return k.RoundTrip(r)
			})}
		})
		func() {
			defer func() { _ = recover() }()
			statusOf(h, k.token("k1"))
			t.Error("got no panic, want the client's")
		}()
		if got := statusOf(h, k.token("k1")); got != http.StatusNoContent {
			t.Errorf("next token: got %d, want 204", got)
		}
	})
}

func FuzzKeySet(f *testing.F) {
	r := newKeyOnly()
	f.Add(`{"keys":[` + r.jwk("k1") + `]}`)
	f.Add(`{"keys":[` + newES256KeyOnly().jwk("k1") + `]}`)
	f.Add(`{"keys":[{}]}`)
	f.Add(`{"keys":null}`)
	token := r.token(validClaims())
	f.Fuzz(func(t *testing.T, set string) {
		h := newAgent(t, nil, nil, countWords, func(c *agentkit.Config) {
			c.JWKSURL = "http://router.example"
			c.Client = &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) { return answer(200, set), nil })}
		})
		if statusOf(h, token) == http.StatusNoContent && !strings.Contains(set, b64(r.public())) {
			t.Errorf("got a token accepted with the key set %q, which does not contain its key", set)
		}
	})
}
