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
	w := newWorld(t)
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
		{"EdDSA", w.ed.token(t, w.claims()), alice},
		{"ES256", w.es.token(t, w.claims()), alice},
		{"RS256", w.rs.token(t, w.claims()), alice},
		{"HS256", w.hs.token(t, w.claims()), alice},
		{"typ JWT", w.ed.sign(t, w.ed.header().with("typ", `"JWT"`).text(), w.claims().text()), alice},
		{"no kid, and one key of the algorithm", w.es.sign(t, w.es.header().without("kid").text(), w.claims().text()), alice},
		{"unknown header parameters", w.ed.sign(t, w.ed.header().with("x", `{"y":[1]}`).text(), w.claims().text()), alice},
		{"unknown claims", w.ed.token(t, w.claims().with("nonce", `{"iss":"x"}`).with("admin", "true").with("scp", `["admin"]`)), alice},
		{"names written with escapes", w.ed.sign(t, strings.Replace(w.ed.header().text(), `"kid"`, `"\u006bid"`, 1),
			strings.Replace(w.claims().text(), `"iss"`, `"\u0069ss"`, 1)), alice},
		{"spaces around the JSON", w.ed.sign(t, " "+w.ed.header().text()+"\n", "\t"+w.claims().text()+" "), alice},
		{"a list of one audience", w.ed.token(t, w.claims().with("aud", `["caprouter"]`)), alice},
		{
			"every agent", w.ed.token(t, w.claims().with("scope", `"agent:*"`)),
			with(func(c *contract.Caller) { c.Scopes, c.AllAgents = []string{"agent:*"}, true }),
		},
		{
			"every scope is a scope like others", w.ed.token(t, w.claims().with("scope", `"* admin"`)),
			with(func(c *contract.Caller) { c.Scopes = []string{"*", "admin"} }),
		},
		{"no scope", w.ed.token(t, w.claims().without("scope")), with(func(c *contract.Caller) { c.Scopes = nil })},
		{"an empty scope", w.ed.token(t, w.claims().with("scope", `""`)), with(func(c *contract.Caller) { c.Scopes = nil })},
		{"no tenant of our own", w.own.token(t, w.claims().with("iss", q(ourIssuer)).without("tenant")), with(func(c *contract.Caller) { c.Issuer, c.Tenant = ourIssuer, "" })},
		{"no tenant", w.ed.token(t, w.claims().without("tenant")), with(func(c *contract.Caller) { c.Tenant = "" })},
		{
			"a subject of 256 bytes", w.ed.token(t, w.claims().with("sub", q(strings.Repeat("é", 128)))),
			with(func(c *contract.Caller) { c.Subject = strings.Repeat("é", 128) }),
		},
		{"our own", w.own.token(t, w.claims().with("iss", q(ourIssuer))), with(func(c *contract.Caller) { c.Issuer = ourIssuer })},
		{
			"an identity provider's", w.idp.token(t, w.idpClaims()),
			with(func(c *contract.Caller) { c.Issuer, c.Tenant = idp, "globex" }),
		},
		{
			"of a provider without tenants", w.otherIDP.token(t, w.idpClaims().with("iss", q(otherIDP))),
			with(func(c *contract.Caller) { c.Issuer, c.Tenant = otherIDP, "" }),
		},
		{"of a static key with the kid of a provider's", w.staticShared.token(t, w.claims()), alice},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w.t = t
			for _, visit := range []string{"first", "remembered"} {
				got := *w.accepts(tc.token)
				if got.KeyID == "" {
					t.Errorf("%s: got no key id", visit)
				}
				got.KeyID = "" // tested for each source below
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("caller, %s (-want +got):\n%s", visit, diff)
				}
			}
		})
	}
}

// The limits of a token's validity, to the second: no tolerance at its expiry, and
// a minute where the clock of the issuer may differ.
func TestVerify_ChecksTimes(t *testing.T) {
	w := newWorld(t)
	date := func(d time.Duration) string { return number(w.now.Add(d)) }
	for _, tc := range []struct {
		name          string
		iat, nbf, exp string
		why           string // "" = accepted
	}{
		{"for a day", date(0), "", date(24 * time.Hour), ""},
		{"for a day and a second", date(0), "", date(24*time.Hour + time.Second), "good for longer than 24 hours"},
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
		{"fractions", date(0) + ".25", date(0) + ".99", date(time.Second) + ".5", ""},
		{"a fraction that does not count", date(-time.Hour), "", date(0) + ".999", "has expired"},
		{"an exponent", "1.79e9", "", "1.790003600e9", ""},
		{"the end of the year 10000", date(0), "", "253402300800", "no exp that is a number"},
		{"a number beyond numbers", date(0), "", "1e400", "no exp that is a number"},
		{"a negative number", "-1", "", date(time.Hour), "no iat that is a number"},
		{"zero", "0", "", date(time.Hour), "no iat that is a number"},
		{"nearly zero", "1e-400", "", date(time.Hour), "no iat that is a number"},
		{"a text", date(0), "", q(date(time.Hour)), "no exp that is a number"},
		{"null", date(0), "null", date(time.Hour), "no nbf that is a number"},
		{"true", date(0), "true", date(time.Hour), "no nbf that is a number"},
		{"a list", date(0), "", "[" + date(time.Hour) + "]", "no exp that is a number"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w.t = t
			claims := w.claims().with("iat", tc.iat).with("exp", tc.exp)
			if tc.nbf != "" {
				claims = claims.with("nbf", tc.nbf)
			}
			if token := w.ed.token(t, claims); tc.why == "" {
				w.accepts(token)
			} else {
				w.rejects(token, tc.why)
			}
		})
	}
}

// An error contains no claim of a token with an invalid signature.
func TestVerify_DisclosesNoUnsignedClaims(t *testing.T) {
	w := newWorld(t)
	stranger := newMintKey(t, "ed", "EdDSA")
	for _, claims := range []members{
		w.claims(),
		w.claims().with("aud", `"other"`),
		w.claims().with("exp", "1"),
		w.claims().with("exp", `"x"`),
		w.claims().without("sub"),
		w.claims().with("scope", `"\""`),
		w.claims().with("iat", number(w.now.Add(time.Hour))),
	} {
		w.rejects(stranger.token(t, claims), "has a signature that does not hold")
	}
}

// If the keys of an identity provider are not available, its tokens are rejected.
func TestVerify_RejectsWithoutRemoteKeys(t *testing.T) {
	w := newWorld(t)
	token := w.idp.token(t, w.idpClaims())
	w.idpKeys.err = errors.New("no route to https://10.0.0.1/keys")
	w.rejects(token, "cannot be checked: the keys of its issuer are not available now")
	if _, err := w.Verify(t.Context(), token); strings.Contains(err.Error(), "10.0.0.1") {
		t.Errorf("got an error that contains a network address: %v", err)
	}
	w.idpKeys.err = nil
	w.accepts(token)
}

// Every key source, configured as in production.
func TestNewVerifier_SupportsEverySource(t *testing.T) {
	own := newRing(t)
	remote := mustRemote(t, idp)
	static := newMintKey(t, "ed", "EdDSA")
	v, err := NewVerifier(VerifierConfig{
		Audience: ourAudience, Keys: []StaticKey{static.static(t)},
		Own: own, Issuer: ourIssuer, Issuers: []*RemoteKeys{remote},
	})
	if err != nil {
		t.Fatal(err)
	}
	token, err := newIssuer(t, own).CallerToken(issuance.CallerGrant{
		Issuer: ourIssuer, Audience: ourAudience, Subject: "bob", Tenant: "acme", Scopes: []string{"agent:*"}, Expires: time.Now().Add(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	caller, err := v.Verify(t.Context(), token)
	if err != nil {
		t.Fatalf("own token: %v", err)
	}
	want := &contract.Caller{Subject: "bob", Issuer: ourIssuer, Tenant: "acme", Scopes: []string{"agent:*"}, AllAgents: true}
	want.KeyID = caller.KeyID // of a derived key
	if diff := cmp.Diff(want, caller); diff != "" {
		t.Errorf("caller (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		issuer, kid string
		want        bool
	}{
		{ourIssuer, caller.KeyID, false},
		{ourIssuer, "ed", false},
		{ourIssuer, "gone", true},
		{"any", "ed", false},
		{"any", caller.KeyID, true},
		{"any", "", false},
		{idp, "unknown, because nothing was fetched", false},
	} {
		if got := v.IsKeyRevoked(&contract.Caller{Issuer: tt.issuer, KeyID: tt.kid}); got != tt.want {
			t.Errorf("IsKeyRevoked(%s, %s) = %v, want %v", tt.issuer, tt.kid, got, tt.want)
		}
	}
	agentToken, err := newIssuer(t, own).AgentToken(issuance.AgentGrant{Issuer: ourIssuer, AgentID: ourAudience, Subject: "bob", Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	taskToken, err := newIssuer(t, own).TaskToken(ourAudience, contract.TaskGrant{AgentID: "a", RequestID: "r", TaskID: "t", Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, Verifier: v, now: time.Now()}
	w.rejects(agentToken, "not known here")
	w.rejects(taskToken, "is not known here")
	w.accepts(static.token(t, w.claims()))
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.Verify(done, newMintKey(t, "x", "EdDSA").token(t, w.idpClaims())); err == nil || !strings.Contains(err.Error(), "not available now") {
		t.Errorf("Verify = %v for keys that are not fetched, want an error", err)
	}
}

func mustRemote(t *testing.T, issuer string) *RemoteKeys {
	t.Helper()
	r, err := NewRemoteKeys(RemoteConfig{Issuer: issuer, URL: "https://idp.example/keys", Audience: ourAudience})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestNewVerifier_RejectsInvalidConfig(t *testing.T) {
	own := newRing(t)
	key := newMintKey(t, "a", "EdDSA").static(t)
	for _, tc := range []struct {
		name string
		cfg  VerifierConfig
		want string
	}{
		{"no audience", VerifierConfig{Keys: []StaticKey{key}}, "no audience"},
		{"no keys", VerifierConfig{Audience: "a"}, "no keys"},
		{"an empty key", VerifierConfig{Audience: "a", Keys: []StaticKey{{}}}, "without a key"},
		{"one kid twice", VerifierConfig{Audience: "a", Keys: []StaticKey{key, newMintKey(t, "a", "HS256").static(t)}}, `two keys have the kid "a"`},
		{"no issuer of our own", VerifierConfig{Audience: "a", Own: own}, "no issuer for our own tokens"},
		{"a provider that is us", VerifierConfig{Audience: "a", Own: own, Issuer: idp, Issuers: []*RemoteKeys{mustRemote(t, idp)}}, "is our own"},
		{"an audience no token names", VerifierConfig{Audience: strings.Repeat("a", 257), Keys: []StaticKey{key}}, "no token could be for the audience"},
		{"an audience with a line break", VerifierConfig{Audience: "a\n", Keys: []StaticKey{key}}, "no token could be for the audience"},
		{"an audience that is no text", VerifierConfig{Audience: "\xff", Keys: []StaticKey{key}}, "no token could be for the audience"},
		{"an issuer no token names", VerifierConfig{Audience: "a", Own: own, Issuer: strings.Repeat("i", 257)}, "no token could be of the issuer"},
		{"an issuer with a NUL", VerifierConfig{Audience: "a", Own: own, Issuer: "i\x00"}, "no token could be of the issuer"},
		{"a provider twice", VerifierConfig{Audience: "a", Issuers: []*RemoteKeys{mustRemote(t, idp), mustRemote(t, idp)}}, "configured twice"},
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
	w := newWorld(t)
	secret := w.hs.public.([]byte)
	key := w.hs.static(t)
	holder := struct {
		Name string
		key  StaticKey
		keys []StaticKey
		p    *StaticKey
		v    *Verifier
		cfg  VerifierConfig
	}{"x", key, []StaticKey{key}, &key, w.Verifier, VerifierConfig{Keys: []StaticKey{key}}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{key, &key, holder, &holder, w.Verifier, *w.Verifier} {
			text := fmt.Sprintf(verb, v)
			for _, spelled := range []string{string(secret), fmt.Sprintf("%x", secret), fmt.Sprintf("%d", secret)} {
				if strings.Contains(text, spelled) {
					t.Errorf("%s of a %T prints the secret: %s", verb, v, text)
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
