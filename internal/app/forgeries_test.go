package app

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/auth/issuance"
	"github.com/caprouter/caprouter/internal/config"
)

// idp is an identity provider with a key set URL and tokens.
type idp struct {
	url     string
	key     ed25519.PrivateKey
	fetches atomic.Int64
}

func newIDP(t *testing.T) *idp {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &idp{key: key}
	set := encode(map[string]any{"keys": []any{map[string]any{
		"kty": "OKP", "crv": "Ed25519", "kid": "idp-1", "use": "sig", "alg": "EdDSA", "x": b64(string(public)),
	}}})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p.fetches.Add(1)
		w.Header().Set("Content-Type", "application/jwk-set+json")
		_, _ = w.Write([]byte(set))
	}))
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

func (p *idp) token(header, claims map[string]any) string {
	h := map[string]any{"typ": "at+jwt", "alg": "EdDSA", "kid": "idp-1"}
	maps.Copy(h, header)
	signed := b64(encode(h)) + "." + b64(encode(claims))
	return signed + "." + b64(string(ed25519.Sign(p.key, []byte(signed))))
}

// The issuer of a rejected token is in the log, masked, and not in the answer.
func TestServer_LogsIssuerThatIsNotConfigured(t *testing.T) {
	provider := newIDP(t)
	s := startServer(t, "clients:\n"+entry("counter", "count_words", "prose", ""), func(c *config.Config) {
		c.Auth.Mode = config.AuthJWT
		c.Auth.Issuers = []config.Issuer{{Issuer: "https://idp.example", JWKSURL: provider.url, Audience: "caprouter"}}
	})
	claims := newTokenIssuer().claims("alice", everyScope, map[string]any{"iss": "https://idp.example/ana.costa@example.com"})
	got := s.do(call{method: "GET", path: "/api/v1/agents", token: provider.token(nil, claims)})
	if got.status != http.StatusUnauthorized || strings.Contains(string(got.body), "idp.example") {
		t.Errorf("got %d %s, want 401 without the name of an issuer", got.status, got.body)
	}
	log := s.log.String()
	if !strings.Contains(log, `"configured":["https://idp.example"]`) || !strings.Contains(log, `"iss":"https://idp.example/`) || strings.Contains(log, "ana.costa") {
		t.Errorf("got log %s, want the masked issuer and the configured one", log)
	}
}

// Invalid tokens sent over HTTP. The signature of most of them is valid.
func TestServer_RejectsForgedTokens(t *testing.T) {
	var canary atomic.Int64
	trap := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { canary.Add(1) }))
	defer trap.Close()
	m, provider := newTokenIssuer(), newIDP(t)
	s := startGuarded(t, m, "clients:\n"+entry("counter", "count_words", "prose", ""), func(c *config.Config) {
		c.Auth.Issuers = []config.Issuer{{Issuer: "https://idp.example", JWKSURL: provider.url, Audience: "caprouter", TenantClaim: "org"}}
	})
	good := m.claims("alice", everyScope+" agent:*", nil)
	header := map[string]any{"typ": "JWT", "alg": "HS256", "kid": "tests"}
	with := func(name string, value any) string { return m.token("alice", everyScope, map[string]any{name: value}) }
	head := func(name string, value any) string {
		h := maps.Clone(header)
		h[name] = value
		if value == nil {
			delete(h, name)
		}
		return m.signed(h, good)
	}
	text := func(from, to string) string { return m.raw(encode(header), strings.Replace(encode(good), from, to, 1)) }
	genuine := m.signed(header, good)
	parts := strings.Split(genuine, ".")
	ofIDP := m.claims("alice", everyScope, map[string]any{"iss": "https://idp.example", "org": "acme"})
	now := time.Now().Unix()
	agentToken, err := s.core.issuer.AgentToken(issuance.AgentGrant{
		Issuer: "caprouter", AgentID: "counter", Subject: "alice", Expires: time.Now().Add(time.Minute),
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{ // the baseline: valid tokens
		"of a key": genuine, "of an issuer": provider.token(nil, ofIDP), "with two scopes": with("scope", "route:read agents:read"),
	} {
		if got := s.do(call{method: "GET", path: "/api/v1/agents", token: token}); got.status != 200 {
			t.Fatalf("valid token %s: got %d %s, want 200", name, got.status, got.body)
		}
	}
	forged := map[string]string{
		"alg none":                            b64(`{"typ":"JWT","alg":"none","kid":"tests"}`) + "." + parts[1] + ".",
		"alg None":                            b64(`{"typ":"JWT","alg":"None","kid":"tests"}`) + "." + parts[1] + ".",
		"alg none, signed":                    head("alg", "none"),
		"alg of another key":                  head("alg", "EdDSA"),
		"alg HS512":                           head("alg", "HS512"),
		"no alg":                              head("alg", nil),
		"alg is a list":                       head("alg", []string{"HS256"}),
		"typ of a task token":                 head("typ", "caprouter-task+jwt"),
		"typ dpop":                            head("typ", "dpop+jwt"),
		"no typ":                              head("typ", nil),
		"unknown key":                         head("kid", "other"),
		"kid is a path":                       head("kid", "../../etc/passwd"),
		"kid is a number":                     head("kid", 1),
		"crit":                                head("crit", []string{"exp"}),
		"jku":                                 head("jku", trap.URL),
		"x5u":                                 head("x5u", trap.URL),
		"jwk":                                 head("jwk", map[string]any{"kty": "oct", "k": b64(string(m.secret))}),
		"b64":                                 head("b64", false),
		"zip":                                 head("zip", "DEF"),
		"duplicate header member":             m.raw(`{"typ":"JWT","alg":"none","alg":"HS256","kid":"tests"}`, encode(good)),
		"header member in capitals":           m.raw(`{"typ":"JWT","alg":"HS256","ALG":"none","kid":"tests"}`, encode(good)),
		"no signature":                        parts[0] + "." + parts[1] + ".",
		"claims of another token":             parts[0] + "." + b64(encode(m.claims("root", "admin agent:*", nil))) + "." + parts[2],
		"another secret":                      newTokenIssuer().token("alice", everyScope, nil),
		"expired":                             m.token("alice", everyScope, map[string]any{"iat": now - 600, "exp": now - 1}),
		"no exp":                              with("exp", nil),
		"exp is a string":                     with("exp", "9999999999"),
		"exp out of range":                    text(`"exp":`, `"exp":1e999,"was":`),
		"lifetime of two days":                with("exp", now+2*86_400),
		"no iat":                              with("iat", nil),
		"iat in the future":                   m.token("alice", everyScope, map[string]any{"iat": now + 300, "exp": now + 600}),
		"not yet valid":                       with("nbf", now+300),
		"exp before iat":                      m.token("alice", everyScope, map[string]any{"iat": now, "exp": now - 10}),
		"no jti":                              with("jti", nil),
		"empty jti":                           with("jti", ""),
		"no sub":                              with("sub", nil),
		"empty sub":                           with("sub", ""),
		"sub is a list":                       with("sub", []string{"alice", "root"}),
		"no iss":                              with("iss", nil),
		"iss of an issuer, signed with a key": with("iss", "https://idp.example"),
		"no aud":                              with("aud", nil),
		"another aud":                         with("aud", "other"),
		"two auds":                            with("aud", []string{"caprouter", "other"}),
		"aud in capitals":                     with("aud", "CAPROUTER"),
		"scope is a list":                     with("scope", []string{"admin"}),
		"tenant is a number":                  with("tenant", 7),
		"duplicate claim":                     text(`"sub":"alice"`, `"sub":"root","sub":"alice"`),
		"duplicate escaped claim":             text(`"sub":"alice"`, `"sub":"alice","\u0073ub":"root"`),
		"claim in capitals":                   text(`"sub":"alice"`, `"sub":"alice","SUB":"root"`),
		"text after the claims":               m.raw(encode(header), encode(good)+"{}"),
		"claims are a list":                   m.raw(encode(header), "[]"),
		"claims are null":                     m.raw(encode(header), "null"),
		"unknown issuer":                      provider.token(nil, m.claims("alice", everyScope, map[string]any{"iss": "https://evil.example"})),
		"issuer with a trailing slash":        provider.token(nil, m.claims("alice", everyScope, map[string]any{"iss": "https://idp.example/"})),
		"unknown key of an issuer":            provider.token(map[string]any{"kid": "idp-2"}, ofIDP),
		"issuer without the tenant":           provider.token(nil, m.claims("alice", everyScope, map[string]any{"iss": "https://idp.example"})),
		"issuer, another audience":            provider.token(nil, m.claims("alice", everyScope, map[string]any{"iss": "https://idp.example", "aud": "other"})),
		"issuer, key set elsewhere":           provider.token(map[string]any{"jku": trap.URL}, ofIDP),
		"token for an agent":                  agentToken,
		"longer than 8 KiB":                   with("note", strings.Repeat("x", 8<<10)),
		"four parts":                          genuine + "." + parts[2],
		"two parts":                           parts[0] + "." + parts[1],
		"padding":                             genuine + "=",
		"JSON serialisation":                  `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`,
		"nested token":                        m.raw(`{"typ":"JWT","alg":"HS256","kid":"tests","cty":"JWT"}`, genuine),
		"not a token":                         "alice",
	}
	accepted := 0
	for name, token := range forged {
		got := s.do(call{method: "GET", path: "/api/v1/agents", token: token})
		if got.status != http.StatusUnauthorized {
			accepted++
			t.Errorf("%s: got %d %s, want 401", name, got.status, got.body)
		}
		var p struct{ Code, Detail string }
		if err := json.Unmarshal(got.body, &p); err != nil || p.Code != "unauthenticated" || p.Detail == "" {
			t.Errorf("%s: got problem %s", name, got.body)
		}
		if len(token) > 20 && strings.Contains(string(got.body)+encode(got.header)+s.log.String(), token[len(token)-20:]) {
			t.Errorf("%s: got the token in the response", name)
		}
		if challenge := got.header.Get("Www-Authenticate"); !strings.HasPrefix(challenge, `Bearer error="invalid_token"`) {
			t.Errorf("%s: got WWW-Authenticate %q", name, challenge)
		}
	}
	for name, values := range map[string][]string{
		"duplicate header": {"Bearer " + genuine, "Bearer " + genuine}, "Basic": {"Basic " + genuine}, "in a list": {"Bearer " + genuine + ", Bearer " + genuine},
		"a tab": {"Bearer\t" + genuine}, "without a scheme": {genuine},
	} {
		got := s.do(call{method: "GET", path: "/api/v1/agents", header: http.Header{"Authorization": values}})
		if got.status != http.StatusUnauthorized {
			accepted++
			t.Errorf("%s: got %d, want 401", name, got.status)
		}
	}
	if n := canary.Load(); n != 0 {
		t.Errorf("got %d requests to addresses in tokens, want 0", n)
	}
	if n := provider.fetches.Load(); n != 1 {
		t.Errorf("got %d fetches of the issuer's key set within a minute, want one", n)
	}
	t.Logf("%d forgeries over HTTP, %d accepted", len(forged)+5, accepted)
}
