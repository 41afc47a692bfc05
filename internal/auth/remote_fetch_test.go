package auth

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/testkit/testjwk"
)

// newForbiddenServer starts a server that must not be called, and counts its calls.
func newForbiddenServer(t *testing.T) (url string, calls *atomic.Int64) {
	t.Helper()
	calls = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	t.Cleanup(s.Close)
	return s.URL, calls
}

// newLoggedRemoteKeys returns the keys of a real server, and their log.
func newLoggedRemoteKeys(t *testing.T, url string, client *http.Client) (*RemoteKeys, *bytes.Buffer) {
	t.Helper()
	log, now := new(bytes.Buffer), time.Now() // the clock does not advance
	r, err := NewRemoteKeys(RemoteConfig{
		Issuer: remoteIssuer, URL: url, Audience: "caprouter", Client: client,
		Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Now:    func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return r, log
}

func TestRemoteKeys_SendsPlainRequest(t *testing.T) {
	key := testjwk.Ed25519(t)
	var got *http.Request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "1"})
		_, _ = io.WriteString(w, testjwk.SetText(t, testjwk.Of(t, "k", key)))
	}))
	defer s.Close()
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, client := range map[string]*http.Client{"default client": nil, "client with a cookie jar": {Jar: jar}} {
		t.Run(name, func(t *testing.T) {
			r, log := newLoggedRemoteKeys(t, s.URL+"/keys?app=1", client)
			for range 2 {
				r.refreshSet(t.Context())
				wantKey(t, r, "k", key)
				if got.Method != http.MethodGet || got.RequestURI != "/keys?app=1" || got.Header.Get("Accept") != "application/jwk-set+json, application/json" {
					t.Errorf("got %s %s, Accept %q; want GET /keys?app=1 that accepts a key set", got.Method, got.RequestURI, got.Header.Get("Accept"))
				}
				if len(got.Cookies()) != 0 || got.Header.Get("Authorization") != "" {
					t.Errorf("got credentials %v, want none", got.Header)
				}
			}
			if log.Len() != 0 {
				t.Errorf("got a log on success, want none:\n%s", log)
			}
		})
	}
	transport, ok := keySetClient(nil).Transport.(*http.Transport)
	if !ok || transport.Proxy != nil {
		t.Error("got a transport with a proxy, want none") // a test on loopback cannot observe a proxy, so check the setting
	}
}

func TestRemoteKeys_RejectsInvalidResponses(t *testing.T) {
	key, forgedKey := testjwk.Ed25519(t), testjwk.Ed25519(t)
	good, forged := testjwk.SetText(t, testjwk.Of(t, "k", key)), testjwk.SetText(t, testjwk.Of(t, "k", forgedKey))
	forbidden, calls := newForbiddenServer(t)
	var sent atomic.Int64 // bytes of the endless body
	responses := map[string]struct {
		respond func(http.ResponseWriter, *http.Request)
		want    string // part of the log
	}{
		"not found": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, forged)
		}, "answered 404, not 200; set jwks_url to the jwks_uri"},
		"created": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, forged)
		}, "answered 201"},
		"no content":         {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, "answered 204"},
		"temporary redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, forbidden, http.StatusFound) }, "answered 302, and redirects are not followed: set jwks_url to the final address"},
		"permanent redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, forbidden, http.StatusPermanentRedirect)
		}, "answered 308"},
		"empty body":            {func(http.ResponseWriter, *http.Request) {}, "is not JSON: it is empty; set jwks_url to the jwks_uri"},
		"HTML page":             {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, "at line 1, column 1; set jwks_url to the jwks_uri"},
		"error with status 200": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"error":"x"}`) }, "has no member keys; set jwks_url to the jwks_uri"},
		"truncated body": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, forged)
		}, "unexpected EOF"},
		"aborted connection": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
		"endless body": {func(w http.ResponseWriter, _ *http.Request) {
			for {
				n, err := io.WriteString(w, strings.Repeat(" ", 64<<10))
				sent.Add(int64(n))
				if err != nil {
					return
				}
			}
		}, "longer than 262144 bytes; set jwks_url to the jwks_uri"},
	}
	for name, tt := range responses {
		t.Run(name, func(t *testing.T) {
			respond := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, good) }
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { respond(w, r) }))
			defer s.Close()
			r, log := newLoggedRemoteKeys(t, s.URL, nil)
			r.refreshSet(t.Context())
			k := wantKey(t, r, "k", key)
			respond = tt.respond
			r.refreshSet(t.Context())
			if !r.isValid(k, time.Now()) {
				t.Error("isValid = false for the key of the earlier set, want true")
			}
			wantKey(t, r, "k", key)
			if text := log.String(); !strings.Contains(text, tt.want) || strings.Count(text, "level=WARN") != 1 {
				t.Errorf("want one warning with %q, got:\n%s", tt.want, text)
			}
		})
	}
	if calls.Load() != 0 {
		t.Errorf("got %d calls of the target of redirects, want none", calls.Load())
	}
	if got := sent.Load(); got > 64<<20 {
		t.Errorf("got %d bytes of an endless body sent, want at most %d", got, 64<<20)
	}
}

func TestRemoteKeys_LogsUnusedKeys(t *testing.T) {
	key := testjwk.Of(t, "sound", testjwk.Ed25519(t))
	set := testjwk.SetText(t, key, key.With("kid", "enc").With("use", "enc"), key.With("kid", "open").With("d", "c2VjcmV0"),
		key.With("kid", "twin"), key.With("kid", "twin"))
	var body atomic.Pointer[string]
	body.Store(&set)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, *body.Load()) }))
	defer s.Close()
	r, log := newLoggedRemoteKeys(t, s.URL, nil)
	r.refreshSet(t.Context())
	for _, want := range []string{
		`level=DEBUG msg="a key of the issuer is not used" issuer=https://idp.example url=` + s.URL + ` index=1 kid=enc reason="its use is`,
		`level=WARN msg="a key of the issuer is not used" issuer=https://idp.example url=` + s.URL + ` index=2 kid=open reason="it is not public`,
		`level=WARN msg="a key of the issuer is not used" issuer=https://idp.example url=` + s.URL + ` index=3 kid=twin reason="another key`,
		`level=WARN msg="a key of the issuer is not used" issuer=https://idp.example url=` + s.URL + ` index=4 kid=twin reason="another key`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("got a log without %s:\n%s", want, log)
		}
	}
	if strings.Contains(log.String(), "c2VjcmV0") || strings.Contains(log.String(), "kid=sound") {
		t.Errorf("got a log with a secret or a valid key:\n%s", log)
	}
	log.Reset()
	r.refreshSet(t.Context())
	if log.Len() != 0 {
		t.Errorf("got a log for the same set, want none:\n%s", log)
	}
	for set, want := range map[string]string{
		`{"keys":[]}`: `keys=0 reason="the set is empty"`,
		testjwk.SetText(t, key.With("use", "enc"), key.With("alg", "none")): `keys=2 reason="key 0: its use is \"enc\", not sig"`,
	} {
		body.Store(&set)
		log.Reset()
		r.refreshSet(t.Context())
		wantNoKey(t, r, "sound", false)
		want = `level=WARN msg="the issuer's tokens are rejected: its set has no key for EdDSA, ES256 or RS256; ` +
			`correct jwks_url, or publish such a key" issuer=https://idp.example url=` + s.URL + " " + want
		if !strings.Contains(log.String(), want) {
			t.Errorf("got a log without %s:\n%s", want, log)
		}
	}
}

// The issuer should correct keys that are weak or malformed. Keys for another use are
// normal.
func TestRemoteKeys_WarnsAboutFaultyKeys(t *testing.T) {
	ed, rs := testjwk.Of(t, "k", testjwk.Ed25519(t)), testjwk.Of(t, "k", testjwk.RSA(t, 2048))
	for name, tt := range map[string]struct {
		key  testjwk.Members
		want string
	}{
		"weak key":             {testjwk.Of(t, "k", testjwk.RSA(t, 1024)), "WARN"},
		"point of small order": {ed.With("x", testjwk.Base64URL(make([]byte, 32))), "WARN"},
		"shared secret":        {testjwk.Members{"kty": "oct"}, "WARN"},
		"private key":          {ed.With("d", "AA"), "WARN"},
		"malformed key":        {ed.With("x", "!"), "WARN"},
		"missing exponent":     {rs.With("e", nil), "WARN"},
		"key for encryption":   {rs.With("use", "enc"), "DEBUG"},
		"another algorithm":    {rs.With("alg", "PS256"), "DEBUG"},
		"another operation":    {rs.With("key_ops", []string{"wrapKey"}), "DEBUG"},
		"another curve":        {ed.With("crv", "X25519"), "DEBUG"},
		"another type":         {ed.With("kty", "AKP"), "DEBUG"},
	} {
		t.Run(name, func(t *testing.T) {
			set := testjwk.SetText(t, tt.key, testjwk.Of(t, "sound", testjwk.Ed25519(t)))
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, set) }))
			defer s.Close()
			r, log := newLoggedRemoteKeys(t, s.URL, nil)
			r.refreshSet(t.Context())
			if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "level="+tt.want) {
				t.Errorf("want one line with level %s, got:\n%s", tt.want, got)
			}
		})
	}
}

// URLs of keys in a token, or in a key of the set, are never fetched, and such a
// token is not accepted.
func TestRemoteKeys_IgnoresKeyURLs(t *testing.T) {
	forbidden, calls := newForbiddenServer(t)
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	var fetches atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetches.Add(1)
		_, _ = io.WriteString(w, testjwk.SetText(t, testjwk.Of(t, "k", public).With("x5u", forbidden).With("jku", forbidden).With("iss", forbidden)))
	}))
	defer s.Close()
	r, _ := newLoggedRemoteKeys(t, s.URL, nil)
	g := run.New(t.Context())
	g.Go("keep keys fresh", r.Run)
	defer func() {
		g.Stop(nil)
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	}()
	v, err := NewVerifier(VerifierConfig{Audience: "caprouter", Issuers: []*RemoteKeys{r}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Unix()
	token := func(header map[string]any, issuer string) string {
		header["alg"], header["typ"] = "EdDSA", "at+jwt"
		claims := map[string]any{"iss": issuer, "sub": "alice", "aud": "caprouter", "iat": now, "exp": now + 60, "jti": "1", "jku": forbidden}
		signed := testjwk.Base64URL([]byte(testjwk.Text(t, header))) + "." + testjwk.Base64URL([]byte(testjwk.Text(t, claims)))
		return signed + "." + testjwk.Base64URL(ed25519.Sign(private, []byte(signed)))
	}
	if _, err := v.Verify(t.Context(), token(map[string]any{"kid": "k"}, remoteIssuer)); err != nil {
		t.Fatalf("valid token: %v", err)
	}
	for name, forged := range map[string]string{
		"jku":                       token(map[string]any{"kid": "k", "jku": forbidden}, remoteIssuer),
		"x5u":                       token(map[string]any{"kid": "k", "x5u": forbidden}, remoteIssuer),
		"jwk":                       token(map[string]any{"kid": "k", "jwk": testjwk.Of(t, "k", public)}, remoteIssuer),
		"URL as kid":                token(map[string]any{"kid": forbidden}, remoteIssuer),
		"URL as iss":                token(map[string]any{"kid": "k"}, forbidden),
		"iss with a trailing slash": token(map[string]any{"kid": "k"}, remoteIssuer+"/"),
	} {
		if caller, err := v.Verify(t.Context(), forged); err == nil {
			t.Errorf("%s: got caller %v, want an error", name, caller)
		}
	}
	signature := testjwk.Base64URL(make([]byte, ed25519.SignatureSize))
	claims := strings.Split(token(map[string]any{}, remoteIssuer), ".")[1]
	for i := range 10_000 {
		header := fmt.Sprintf(`{"alg":"EdDSA","typ":"at+jwt","kid":"random-%d"}`, i)
		if _, err := v.Verify(t.Context(), testjwk.Base64URL([]byte(header))+"."+claims+"."+signature); err == nil {
			t.Fatalf("kid random-%d: got no error, want one", i)
		}
	}
	if fetches.Load() != 1 || calls.Load() != 0 {
		t.Errorf("got %d fetches and %d calls of the URL in the tokens, want 1 and 0", fetches.Load(), calls.Load())
	}
}
