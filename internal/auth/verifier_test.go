package auth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/auth/issuance"
)

func TestVerify_AcceptsEverySource(t *testing.T) {
	fx := newVerifierFixture(t)
	alice := contract.Caller{
		Issuer: "https://some.example", Subject: "alice", Tenant: "acme",
		Scopes: []string{"route:submit", "agent:quality_agent"},
	}
	with := func(change func(*contract.Caller)) contract.Caller { c := alice; change(&c); return c }
	for _, tc := range []struct {
		name  string
		token string
		want  contract.Caller
	}{
		{"EdDSA", fx.ed.token(t, fx.claims()), alice},
		{"ES256", fx.es.token(t, fx.claims()), alice},
		{"RS256", fx.rs.token(t, fx.claims()), alice},
		{"HS256", fx.hs.token(t, fx.claims()), alice},
		{"typ JWT", fx.ed.sign(t, fx.ed.header().with("typ", `"JWT"`).text(), fx.claims().text()), alice},
		{"no kid, one key for the algorithm", fx.es.sign(t, fx.es.header().without("kid").text(), fx.claims().text()), alice},
		{"unknown header parameters", fx.ed.sign(t, fx.ed.header().with("x", `{"y":[1]}`).text(), fx.claims().text()), alice},
		{"unknown claims", fx.ed.token(t, fx.claims().with("nonce", `{"iss":"x"}`).with("admin", "true").with("scp", `["admin"]`)), alice},
		{"escaped names", fx.ed.sign(t, strings.Replace(fx.ed.header().text(), `"kid"`, `"\u006bid"`, 1),
			strings.Replace(fx.claims().text(), `"iss"`, `"\u0069ss"`, 1)), alice},
		{"spaces around the JSON", fx.ed.sign(t, " "+fx.ed.header().text()+"\n", "\t"+fx.claims().text()+" "), alice},
		{"list with one audience", fx.ed.token(t, fx.claims().with("aud", `["caprouter"]`)), alice},
		{
			"scope for every agent", fx.ed.token(t, fx.claims().with("scope", `"agent:*"`)),
			with(func(c *contract.Caller) { c.Scopes, c.AllAgents = []string{"agent:*"}, true }),
		},
		{
			"scope * has no special meaning", fx.ed.token(t, fx.claims().with("scope", `"* admin"`)),
			with(func(c *contract.Caller) { c.Scopes = []string{"*", "admin"} }),
		},
		{"no scope", fx.ed.token(t, fx.claims().without("scope")), with(func(c *contract.Caller) { c.Scopes = nil })},
		{"empty scope", fx.ed.token(t, fx.claims().with("scope", `""`)), with(func(c *contract.Caller) { c.Scopes = nil })},
		{"router key, no tenant", fx.own.token(t, fx.claims().with("iss", quote(routerIssuer)).without("tenant")), with(func(c *contract.Caller) { c.Issuer, c.Tenant = routerIssuer, "" })},
		{"no tenant", fx.ed.token(t, fx.claims().without("tenant")), with(func(c *contract.Caller) { c.Tenant = "" })},
		{
			"subject of 256 bytes", fx.ed.token(t, fx.claims().with("sub", quote(strings.Repeat("é", 128)))),
			with(func(c *contract.Caller) { c.Subject = strings.Repeat("é", 128) }),
		},
		{"router key", fx.own.token(t, fx.claims().with("iss", quote(routerIssuer))), with(func(c *contract.Caller) { c.Issuer = routerIssuer })},
		{
			"identity provider", fx.idp.token(t, fx.idpClaims()),
			with(func(c *contract.Caller) { c.Issuer, c.Tenant = idp, "globex" }),
		},
		{
			"provider without tenants", fx.otherIDP.token(t, fx.idpClaims().with("iss", quote(otherIDP))),
			with(func(c *contract.Caller) { c.Issuer, c.Tenant = otherIDP, "" }),
		},
		{"static key with the kid of a provider's key", fx.staticShared.token(t, fx.claims()), alice},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fx.t = t
			for _, call := range []string{"first call", "cached"} {
				got := *fx.mustVerify(tc.token)
				if got.KeyID == "" {
					t.Errorf("%s: got no key id", call)
				}
				got.KeyID = "" // TestNewVerifier_SupportsEverySource tests it
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("caller, %s (-want +got):\n%s", call, diff)
				}
			}
		})
	}
}

// A token is valid until exactly its expiry. The other times have a tolerance of a minute,
// because the clock of the issuer may differ.
func TestVerify_ChecksTimes(t *testing.T) {
	fx := newVerifierFixture(t)
	date := func(d time.Duration) string { return unixSeconds(fx.now.Add(d)) }
	for _, tc := range []struct {
		name          string
		iat, nbf, exp string
		why           string // "" = accepted
	}{
		{"lifetime of a day", date(0), "", date(24 * time.Hour), ""},
		{"lifetime of a day and a second", date(0), "", date(24*time.Hour + time.Second), "valid for more than 24 hours"},
		{"expires in a second", date(-time.Hour), "", date(time.Second), ""},
		{"expires now", date(-time.Hour), "", date(0), "has expired"},
		{"expired a second ago", date(-time.Hour), "", date(-time.Second), "has expired"},
		{"expires when it is issued", date(30 * time.Second), "", date(30 * time.Second), "expires before it was issued"},
		{"expires before it is issued", date(50 * time.Second), "", date(10 * time.Second), "expires before it was issued"},
		{"issued in a minute", date(time.Minute), "", date(time.Hour), ""},
		{"issued in 61 s", date(61 * time.Second), "", date(time.Hour), "issued in the future"},
		{"valid in a minute", date(0), date(time.Minute), date(time.Hour), ""},
		{"valid in 61 s", date(0), date(61 * time.Second), date(time.Hour), "not valid yet"},
		{"valid since yesterday", date(0), date(-24 * time.Hour), date(time.Hour), ""},
		{"fractions of seconds", date(0) + ".25", date(0) + ".99", date(time.Second) + ".5", ""},
		{"fraction does not extend the lifetime", date(-time.Hour), "", date(0) + ".999", "has expired"},
		{"exponent", "1.79e9", "", "1.790003600e9", ""},
		{"year 10000", date(0), "", "253402300800", "no exp that is a number"},
		{"number out of range", date(0), "", "1e400", "no exp that is a number"},
		{"negative number", "-1", "", date(time.Hour), "no iat that is a number"},
		{"zero", "0", "", date(time.Hour), "no iat that is a number"},
		{"nearly zero", "1e-400", "", date(time.Hour), "no iat that is a number"},
		{"string", date(0), "", quote(date(time.Hour)), "no exp that is a number"},
		{"null", date(0), "null", date(time.Hour), "no nbf that is a number"},
		{"true", date(0), "true", date(time.Hour), "no nbf that is a number"},
		{"list", date(0), "", "[" + date(time.Hour) + "]", "no exp that is a number"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fx.t = t
			claims := fx.claims().with("iat", tc.iat).with("exp", tc.exp)
			if tc.nbf != "" {
				claims = claims.with("nbf", tc.nbf)
			}
			if token := fx.ed.token(t, claims); tc.why == "" {
				fx.mustVerify(token)
			} else {
				fx.wantRejected(token, tc.why)
			}
		})
	}
}

// An error contains no claim of a token with an invalid signature.
func TestVerify_DisclosesNoUnsignedClaims(t *testing.T) {
	fx := newVerifierFixture(t)
	unknown := newTestKey(t, "ed", "EdDSA")
	for _, claims := range []jsonMembers{
		fx.claims(),
		fx.claims().with("aud", `"other"`),
		fx.claims().with("exp", "1"),
		fx.claims().with("exp", `"x"`),
		fx.claims().without("sub"),
		fx.claims().with("scope", `"\""`),
		fx.claims().with("iat", unixSeconds(fx.now.Add(time.Hour))),
	} {
		fx.wantRejected(unknown.token(t, claims), "has an invalid signature")
	}
}

// If the keys of an identity provider are not available, its tokens are rejected.
func TestVerify_RejectsWithoutRemoteKeys(t *testing.T) {
	fx := newVerifierFixture(t)
	token := fx.idp.token(t, fx.idpClaims())
	fx.idpKeys.err = errors.New("no route to https://10.0.0.1/keys")
	fx.wantRejected(token, "cannot be checked: the keys of its issuer are not available now")
	if _, err := fx.Verify(t.Context(), token); strings.Contains(err.Error(), "10.0.0.1") {
		t.Errorf("got an error that contains a network address: %v", err)
	}
	fx.idpKeys.err = nil
	fx.mustVerify(token)
}

// NewVerifier is used with every key source, as in production.
func TestNewVerifier_SupportsEverySource(t *testing.T) {
	own := newRing(t)
	remote := mustRemote(t, idp)
	static := newTestKey(t, "ed", "EdDSA")
	v, err := NewVerifier(VerifierConfig{
		Audience: routerAudience, Keys: []StaticKey{static.static(t)},
		Own: own, Issuer: routerIssuer, Issuers: []*RemoteKeys{remote},
	})
	if err != nil {
		t.Fatal(err)
	}
	token, err := newIssuer(t, own).CallerToken(issuance.CallerGrant{
		Issuer: routerIssuer, Audience: routerAudience, Subject: "bob", Tenant: "acme", Scopes: []string{"agent:*"}, Expires: time.Now().Add(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	caller, err := v.Verify(t.Context(), token)
	if err != nil {
		t.Fatalf("own token: %v", err)
	}
	want := &contract.Caller{Subject: "bob", Issuer: routerIssuer, Tenant: "acme", Scopes: []string{"agent:*"}, AllAgents: true}
	want.KeyID = caller.KeyID // of a derived key
	if diff := cmp.Diff(want, caller); diff != "" {
		t.Errorf("caller (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		issuer, kid string
		want        bool
	}{
		{routerIssuer, caller.KeyID, false},
		{routerIssuer, "ed", false},
		{routerIssuer, "gone", true},
		{"any", "ed", false},
		{"any", caller.KeyID, true},
		{"any", "", false},
		{idp, "unknown, because nothing was fetched", false},
	} {
		if got := v.IsKeyRevoked(&contract.Caller{Issuer: tt.issuer, KeyID: tt.kid}); got != tt.want {
			t.Errorf("IsKeyRevoked(%s, %s) = %v, want %v", tt.issuer, tt.kid, got, tt.want)
		}
	}
	agentToken, err := newIssuer(t, own).AgentToken(issuance.AgentGrant{Issuer: routerIssuer, AgentID: routerAudience, Subject: "bob", Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	taskToken, err := newIssuer(t, own).TaskToken(routerAudience, contract.TaskGrant{AgentID: "a", RequestID: "r", TaskID: "t", Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	fx := &verifierFixture{t: t, Verifier: v, now: time.Now()}
	fx.wantRejected(agentToken, "not known here")
	fx.wantRejected(taskToken, "is not known here")
	fx.mustVerify(static.token(t, fx.claims()))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.Verify(cancelled, newTestKey(t, "x", "EdDSA").token(t, fx.idpClaims())); err == nil || !strings.Contains(err.Error(), "not available now") {
		t.Errorf("Verify without fetched keys = %v, want an error with %q", err, "not available now")
	}
}

func mustRemote(t *testing.T, issuer string) *RemoteKeys {
	t.Helper()
	r, err := NewRemoteKeys(RemoteConfig{Issuer: issuer, URL: "https://idp.example/keys", Audience: routerAudience})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestNewVerifier_RejectsInvalidConfig(t *testing.T) {
	own := newRing(t)
	key := newTestKey(t, "a", "EdDSA").static(t)
	for _, tc := range []struct {
		name string
		cfg  VerifierConfig
		want string
	}{
		{"no audience", VerifierConfig{Keys: []StaticKey{key}}, "no audience"},
		{"no keys", VerifierConfig{Audience: "a"}, "no keys"},
		{"empty key", VerifierConfig{Audience: "a", Keys: []StaticKey{{}}}, "without a key"},
		{"duplicate kid", VerifierConfig{Audience: "a", Keys: []StaticKey{key, newTestKey(t, "a", "HS256").static(t)}}, `two keys have the kid "a"`},
		{"no issuer of the router", VerifierConfig{Audience: "a", Own: own}, "no issuer for our own tokens"},
		{"provider with the issuer of the router", VerifierConfig{Audience: "a", Own: own, Issuer: idp, Issuers: []*RemoteKeys{mustRemote(t, idp)}}, "is our own"},
		{"audience too long", VerifierConfig{Audience: strings.Repeat("a", 257), Keys: []StaticKey{key}}, "cannot be in a token: it "},
		{"audience with a line break", VerifierConfig{Audience: "a\n", Keys: []StaticKey{key}}, "cannot be in a token: it "},
		{"audience is not UTF-8", VerifierConfig{Audience: "\xff", Keys: []StaticKey{key}}, "cannot be in a token: it "},
		{"issuer too long", VerifierConfig{Audience: "a", Own: own, Issuer: strings.Repeat("i", 257)}, "cannot be in a token: it "},
		{"issuer with a NUL", VerifierConfig{Audience: "a", Own: own, Issuer: "i\x00"}, "cannot be in a token: it "},
		{"duplicate provider", VerifierConfig{Audience: "a", Issuers: []*RemoteKeys{mustRemote(t, idp), mustRemote(t, idp)}}, "configured twice"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := NewVerifier(tc.cfg); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("NewVerifier = %v, want an error with %q", err, tc.want)
			}
		})
	}
}

// Printing a value that contains a secret must not print the secret.
func TestSecrets_AreRedacted(t *testing.T) {
	fx := newVerifierFixture(t)
	secret := fx.hs.public.([]byte)
	key := fx.hs.static(t)
	holder := struct {
		Name string
		key  StaticKey
		keys []StaticKey
		p    *StaticKey
		v    *Verifier
		cfg  VerifierConfig
	}{"x", key, []StaticKey{key}, &key, fx.Verifier, VerifierConfig{Keys: []StaticKey{key}}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{key, &key, holder, &holder, fx.Verifier, *fx.Verifier} {
			text := fmt.Sprintf(verb, v)
			for _, encoded := range []string{string(secret), fmt.Sprintf("%x", secret), fmt.Sprintf("%d", secret)} {
				if strings.Contains(text, encoded) {
					t.Errorf("%s of a %T = %s, want no secret", verb, v, text)
				}
			}
		}
	}
	if got := key.LogValue().String(); got != redacted {
		t.Errorf("LogValue = %s, want %s", got, redacted)
	}
	if got := fmt.Sprint(key); got != redacted {
		t.Errorf("Sprint = %s, want %s", got, redacted)
	}
}
