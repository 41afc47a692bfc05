package app

import (
	"cmp"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
)

// rsaProvider is an identity provider that signs with RS256, like most, and publishes its key with
// additional members.
type rsaProvider struct {
	url string
	key *rsa.PrivateKey
}

func newRSAProvider(t *testing.T, members map[string]any) *rsaProvider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	published := map[string]any{
		"kty": "RSA", "use": "sig", "kid": "signing-1", "n": b64(string(key.N.Bytes())), "e": b64(string(big.NewInt(int64(key.E)).Bytes())),
	}
	maps.Copy(published, members)
	encryption := map[string]any{"kty": "RSA", "use": "enc", "alg": "RSA-OAEP", "kid": "encryption-1", "n": published["n"], "e": published["e"]}
	set := encode(map[string]any{"keys": []any{encryption, published}})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(set)) }))
	t.Cleanup(server.Close)
	return &rsaProvider{server.URL, key}
}

func (p *rsaProvider) token(t *testing.T, header, claims map[string]any) string {
	t.Helper()
	signed := b64(encode(header)) + "." + b64(encode(claims))
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + b64(string(signature))
}

// providerCase is a token of a provider, as in its documentation, and the configuration that
// accepts it.
type providerCase struct {
	name     string
	config   config.Issuer
	jwk      map[string]any // members of its published key
	header   map[string]any
	claims   map[string]any // without iat and exp
	lifetime int64
	tenant   string
}

const providerScopes = "route:submit route:read agents:read"

// providerHeader returns a header with these members, given as name and value.
func providerHeader(members ...string) map[string]any {
	h := map[string]any{"alg": "RS256", "kid": "signing-1"}
	for pair := range slices.Chunk(members, 2) {
		h[pair[0]] = pair[1]
	}
	return h
}

func providerCases() []providerCase {
	no := false
	return []providerCase{
		{
			"Auth0",
			config.Issuer{Issuer: "https://my-domain.auth0.com/", Audiences: []string{"https://caprouter.example"}, RequireJTI: &no},
			map[string]any{"alg": "RS256", "x5t": "NEM1NjI3"},
			providerHeader("typ", "JWT"),
			map[string]any{
				"iss": "https://my-domain.auth0.com/", "sub": "auth0|123456", "azp": "my_client_id", "scope": "openid profile " + providerScopes,
				"aud":         []string{"https://caprouter.example", "https://my-domain.auth0.com/userinfo"},
				"permissions": []string{"agents:read"},
			},
			86400, "",
		},
		{
			"Auth0, RFC 9068 profile",
			config.Issuer{Issuer: "https://my-domain.auth0.com/", Audiences: []string{"https://caprouter.example"}},
			map[string]any{"alg": "RS256"},
			providerHeader("typ", "at+jwt"),
			map[string]any{
				"iss": "https://my-domain.auth0.com/", "sub": "auth0|123456", "client_id": "my_client_id", "jti": "73WakrfVbNJBaAmhQtEeDv",
				"aud": []string{"https://caprouter.example", "https://my-domain.auth0.com/userinfo"}, "scope": providerScopes,
			},
			7200, "",
		},
		{
			"Okta",
			config.Issuer{Issuer: "https://dev-1.okta.com/oauth2/default", Audience: "api://caprouter", ScopeClaim: "scp", Typ: []string{"", "JWT"}},
			map[string]any{"alg": "RS256"},
			providerHeader(),
			map[string]any{
				"ver": 1, "jti": "AT.0mP4JKAZX1iACIT4vbEDF7LpvDVjxypPMf0D7uX39RE", "iss": "https://dev-1.okta.com/oauth2/default",
				"aud": "api://caprouter", "cid": "nmdP1fcyvdVO11AL7ECm", "uid": "00ugjiv7zFZ4DO3Eb0g3", "scp": strings.Fields(providerScopes),
				"sub": "ana@example.com", "auth_time": 1,
			},
			3600, "",
		},
		{
			"Entra ID, v1.0",
			config.Issuer{
				Issuer: "https://sts.windows.net/72f988bf/", Audience: "api://caprouter", ScopeClaim: "scp", RequireJTI: &no,
				ToleratedHeaders: []string{"x5t"}, TenantClaim: "tid",
			},
			map[string]any{"x5t": "i6lGk3FZzxRcUb2C3nEQ7syHJlY", "issuer": "https://sts.windows.net/{tenantid}/"},
			providerHeader("typ", "JWT", "x5t", "i6lGk3FZzxRcUb2C3nEQ7syHJlY"),
			map[string]any{
				"aud": "api://caprouter", "iss": "https://sts.windows.net/72f988bf/", "acr": "1", "aio": "AXQAi/8IAAAA", "amr": []string{"pwd", "mfa"},
				"appid": "75dbe77f", "appidacr": "0", "family_name": "Silva", "given_name": "Ana", "ipaddr": "203.0.113.7", "name": "ana", "oid": "690222be",
				"rh": "I", "scp": providerScopes, "sub": "l3_roISQU222bULS9yi2k0XpqpOiMz5H3ZACo1GeXA", "tid": "72f988bf",
				"unique_name": "ana@example.com", "uti": "fqiBqXLPj0eQa82S-IYFAA", "ver": "1.0",
			},
			4200, "72f988bf",
		},
		{
			"Entra ID, v2.0",
			config.Issuer{
				Issuer: "https://login.microsoftonline.com/72f988bf/v2.0", Audience: "6e74172b", ScopeClaim: "scp", RequireJTI: &no, TenantClaim: "tid",
			},
			map[string]any{"issuer": "https://login.microsoftonline.com/{tenantid}/v2.0"},
			providerHeader("typ", "JWT"),
			map[string]any{
				"aud": "6e74172b", "iss": "https://login.microsoftonline.com/72f988bf/v2.0", "aio": "AXQAi", "azp": "75dbe77f", "azpacr": "0",
				"name": "Ana", "oid": "690222be", "preferred_username": "ana@example.com", "rh": "I", "scp": providerScopes,
				"sub": "HKZpfaHyWadeOouYlitjrI-KffTm222X5rrV3xDqfKQ", "tid": "72f988bf", "uti": "fqiBqXLPj0eQa82S-IYFAA", "ver": "2.0",
			},
			4200, "72f988bf",
		},
		{
			"Keycloak",
			config.Issuer{Issuer: "https://sso.example/realms/main", Audiences: []string{"caprouter"}},
			map[string]any{"alg": "RS256", "x5t#S256": "abc"},
			providerHeader("typ", "JWT"),
			map[string]any{
				"jti": "d58f5dc8-fd8f-462b-8a19-716f8f83985b", "iss": "https://sso.example/realms/main", "aud": []string{"caprouter", "account"},
				"sub": "36fa0f91-f94d-4a0c-afed-6b7d952e47da", "typ": "Bearer", "azp": "cli", "sid": "2a88c258", "acr": "1",
				"allowed-origins": []string{"https://app.example"}, "realm_access": map[string]any{"roles": []string{"offline_access"}},
				"resource_access": map[string]any{"account": map[string]any{"roles": []string{"view-profile"}}},
				"scope":           "email profile " + providerScopes, "email_verified": true, "name": "Ana Silva", "preferred_username": "ana",
			},
			300, "",
		},
		{
			"Google",
			config.Issuer{
				Issuer: "https://accounts.google.com", Audiences: []string{"1234-web.apps.googleusercontent.com", "1234-cli.apps.googleusercontent.com"},
				RequireJTI: &no, DefaultScopes: strings.Fields(providerScopes), TenantClaim: "hd",
			},
			map[string]any{"alg": "RS256"},
			providerHeader("typ", "JWT"),
			map[string]any{
				"iss": "https://accounts.google.com", "azp": "1234-cli.apps.googleusercontent.com", "aud": "1234-cli.apps.googleusercontent.com",
				"sub": "110169484474386276334", "at_hash": "HK6E_P6Dh8Y93mRNtsDB1Q", "hd": "example.com", "email": "ana@example.com",
				"email_verified": true, "nonce": "n",
			},
			3600, "example.com",
		},
	}
}

// Tokens of identity providers are accepted with the options of their issuer, while forged tokens
// are still rejected.
func TestServer_AcceptsTokensOfIdentityProviders(t *testing.T) {
	for _, tt := range providerCases() {
		t.Run(tt.name, func(t *testing.T) {
			provider, other := newRSAProvider(t, tt.jwk), newRSAProvider(t, nil)
			issuer := tt.config
			issuer.JWKSURL = provider.url
			registry := "clients:\n" + entry("counter", "count_words", "prose", "")
			s := startServer(t, registry, func(c *config.Config) { c.Auth.Mode, c.Auth.Issuers = config.AuthJWT, []config.Issuer{issuer} })
			now := time.Now().Unix()
			claims := maps.Clone(tt.claims)
			claims["iat"], claims["exp"] = now, now+tt.lifetime
			with := func(name string, value any) map[string]any {
				c := maps.Clone(claims)
				c[name] = value
				if value == nil {
					delete(c, name)
				}
				return c
			}
			head := func(name string, value any) map[string]any {
				h := maps.Clone(tt.header)
				h[name] = value
				return h
			}
			get := func(s *testServer, token string) apiResponse {
				return s.do(call{method: "GET", path: "/api/v1/agents", token: token})
			}
			good := provider.token(t, tt.header, claims)
			if got := get(s, good); got.status != http.StatusOK {
				t.Fatalf("valid token: got %d %s, want 200", got.status, got.body)
			}
			caller, err := s.core.access.verifier.Verify(t.Context(), good)
			if err != nil || caller.Subject != tt.claims["sub"] || caller.Tenant != tt.tenant || !slices.Contains(caller.Scopes, "route:submit") {
				t.Errorf("got caller %+v, %v", caller, err)
			}
			strict := startServer(t, registry, func(c *config.Config) {
				c.Auth.Mode = config.AuthJWT
				c.Auth.Issuers = []config.Issuer{{Issuer: issuer.Issuer, JWKSURL: provider.url, Audience: issuer.Audience}}
			})
			if got := get(strict, good); got.status == http.StatusOK {
				t.Errorf("without options: got %d, want an error", got.status)
			}
			scopeClaim := cmp.Or(tt.config.ScopeClaim, "scope")
			for name, token := range map[string]string{
				"of another key":       other.token(t, tt.header, claims),
				"alg none":             b64(`{"alg":"none","kid":"signing-1","typ":"JWT"}`) + "." + b64(encode(claims)) + ".",
				"HS256":                provider.token(t, head("alg", "HS256"), claims),
				"for another audience": provider.token(t, tt.header, with("aud", "https://other.example")),
				"for other audiences":  provider.token(t, tt.header, with("aud", []string{"https://other.example", "account"})),
				"without audience":     provider.token(t, tt.header, with("aud", nil)),
				"an empty audience":    provider.token(t, tt.header, with("aud", []string{})),
				"of another issuer":    provider.token(t, tt.header, with("iss", "https://evil.example")),
				"expired":              provider.token(t, tt.header, with("exp", now-1)),
				"without sub":          provider.token(t, tt.header, with("sub", nil)),
				"jku":                  provider.token(t, head("jku", other.url), claims),
				"jwk":                  provider.token(t, head("jwk", map[string]any{"kty": "oct"}), claims),
				"x5c":                  provider.token(t, head("x5c", []string{"MII"}), claims),
				"crit":                 provider.token(t, head("crit", []string{"exp"}), claims),
				"another typ":          provider.token(t, head("typ", "dpop+jwt"), claims),
				"scope with a space":   provider.token(t, tt.header, with(scopeClaim, []any{"agents:read admin"})),
				"number as the scope":  provider.token(t, tt.header, with(scopeClaim, 7)),
			} {
				if got := get(s, token); got.status != http.StatusUnauthorized {
					t.Errorf("%s: got %d %s, want 401", name, got.status, got.body)
				}
			}
		})
	}
}

// Options of an issuer relax the form of its tokens, but not the verification of the signer.
func TestStart_RejectsDangerousIssuerOptions(t *testing.T) {
	for want, change := range map[string]func(*config.Issuer){
		`"jku" is never tolerated`:                func(c *config.Issuer) { c.ToleratedHeaders = []string{"jku"} },
		"set audience or audiences, not both":     func(c *config.Issuer) { c.Audience, c.Audiences = "a", []string{"b"} },
		`default scope "a b"`:                     func(c *config.Issuer) { c.DefaultScopes = []string{"a b"} },
		`the audience "" cannot be in a token`:    func(c *config.Issuer) { c.Audiences = []string{""} },
		`scope claim " scp" is not the name of a`: func(c *config.Issuer) { c.ScopeClaim = " scp" },
	} {
		cfg := config.Default()
		cfg.DataDir, cfg.Listen, cfg.Auth.Mode = t.TempDir(), "127.0.0.1:0", config.AuthJWT
		cfg.Auth.Issuers = []config.Issuer{{Issuer: "https://idp.example", JWKSURL: "https://idp.example/keys"}}
		change(&cfg.Auth.Issuers[0])
		if _, err := Start(t.Context(), cfg, Options{LogOutput: &testkit.LogBuffer{}, LookupEnv: noEnv}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}
