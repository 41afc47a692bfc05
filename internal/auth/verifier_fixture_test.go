package auth

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/caprouter/caprouter/contract"
)

const (
	routerAudience = "caprouter"
	routerIssuer   = "https://router.example"
	idp            = "https://idp.example"
	otherIDP       = "https://other-idp.example"
	idpAudience    = "router-at-idp"
)

// testKey is a signing key with its verification key.
type testKey struct {
	kid     string
	method  jwt.SigningMethod
	private any
	public  any
}

func newTestKey(t testing.TB, kid, alg string) testKey {
	t.Helper()
	var k testKey
	var err error
	switch alg {
	case "EdDSA":
		var private ed25519.PrivateKey
		_, private, err = ed25519.GenerateKey(rand.Reader)
		k = testKey{kid, jwt.SigningMethodEdDSA, private, private.Public()}
	case "ES256":
		var private *ecdsa.PrivateKey
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		k = testKey{kid, jwt.SigningMethodES256, private, &private.PublicKey}
	case "RS256":
		var private *rsa.PrivateKey
		private, err = rsa.GenerateKey(rand.Reader, 2048)
		k = testKey{kid, jwt.SigningMethodRS256, private, &private.PublicKey}
	case "HS256":
		secret := make([]byte, 32)
		_, _ = rand.Read(secret)
		k = testKey{kid, jwt.SigningMethodHS256, secret, secret}
	}
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// pem returns the public key in the form of an operator's key file.
func (k testKey) pem(t testing.TB) []byte {
	t.Helper()
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: k.der(t)})
}

func (k testKey) der(t testing.TB) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(k.public)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func (k testKey) static(t testing.TB) StaticKey {
	t.Helper()
	material, isSecret := k.public.([]byte)
	if !isSecret {
		material = k.pem(t)
	}
	static, err := NewStaticKey(k.kid, k.method.Alg(), material)
	if err != nil {
		t.Fatalf("NewStaticKey(%s): %v", k.kid, err)
	}
	return static
}

func encodeSegment(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// sign signs a token with this header and these claims, both JSON texts.
func (k testKey) sign(t testing.TB, header, claims string) string {
	t.Helper()
	return k.signSegments(t, encodeSegment(header)+"."+encodeSegment(claims))
}

func (k testKey) signSegments(t testing.TB, signed string) string {
	t.Helper()
	signature, err := k.method.Sign(signed, k.private)
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func (k testKey) header() jsonMembers {
	return jsonMembers{{"typ", `"at+jwt"`}, {"alg", quote(k.method.Alg())}, {"kid", quote(k.kid)}}
}

// token returns a token with these claims and a valid header.
func (k testKey) token(t testing.TB, claims jsonMembers) string {
	t.Helper()
	return k.sign(t, k.header().text(), claims.text())
}

func quote(s string) string { return `"` + s + `"` }

// jsonMembers are the names and values of a JSON object, in order. A value is JSON text.
type jsonMembers [][2]string

func (m jsonMembers) with(name, value string) jsonMembers {
	changed, found := jsonMembers{}, false
	for _, have := range m {
		if have[0] == name {
			have[1], found = value, true
		}
		changed = append(changed, have)
	}
	if !found {
		changed = append(changed, [2]string{name, value})
	}
	return changed
}

func (m jsonMembers) without(name string) jsonMembers {
	changed := jsonMembers{}
	for _, have := range m {
		if have[0] != name {
			changed = append(changed, have)
		}
	}
	return changed
}

// prepend adds a member at the beginning, also if the name exists already. The name may
// contain escapes.
func (m jsonMembers) prepend(name, value string) jsonMembers {
	return append(jsonMembers{{name, value}}, m...)
}

func (m jsonMembers) text() string {
	var parts []string
	for _, have := range m {
		parts = append(parts, quote(have[0])+":"+have[1])
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// fakeKeySource is a key source with replaceable keys.
type fakeKeySource struct {
	mu      sync.Mutex
	keys    []*verifyKey
	err     error
	lookups int
}

func (l *fakeKeySource) findKey(_ context.Context, kid, _ string, _ time.Time) (*verifyKey, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lookups++
	for _, k := range l.keys {
		if k.kid == kid { // for any algorithm
			return k, l.err
		}
	}
	return nil, l.err
}

func (l *fakeKeySource) isValid(k *verifyKey, _ time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.keys, k)
}

func (l *fakeKeySource) isRevoked(kid string, _ time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !slices.ContainsFunc(l.keys, func(k *verifyKey) bool { return k.kid == kid })
}

func (l *fakeKeySource) set(keys ...*verifyKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys = keys
}

func (l *fakeKeySource) lookupCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lookups
}

// verifierFixture is a verifier with every kind of key source and an adjustable clock.
type verifierFixture struct {
	t   testing.TB
	now time.Time
	*Verifier

	ed, ed2, es, rs, hs testKey // static keys
	own                 testKey
	idp, otherIDP       testKey // both with the kid "shared"
	staticShared        testKey // static, with the kid "shared" as well
	ownKeys, idpKeys    *fakeKeySource
}

func newVerifierFixture(t testing.TB) *verifierFixture {
	t.Helper()
	fx := &verifierFixture{
		t: t, now: time.Unix(1_790_000_000, 0),
		ed: newTestKey(t, "ed", "EdDSA"), ed2: newTestKey(t, "ed2", "EdDSA"), es: newTestKey(t, "es", "ES256"),
		rs: newTestKey(t, "rs", "RS256"), hs: newTestKey(t, "hs", "HS256"),
		own: newTestKey(t, "own", "EdDSA"), staticShared: newTestKey(t, "shared", "EdDSA"),
		idp: newTestKey(t, "shared", "EdDSA"), otherIDP: newTestKey(t, "shared", "EdDSA"),
		ownKeys: &fakeKeySource{}, idpKeys: &fakeKeySource{},
	}
	fx.ownKeys.set(&verifyKey{kid: fx.own.kid, alg: fx.own.method.Alg(), key: fx.own.public})
	fx.idpKeys.set(remoteKey(fx.idp, idp, "org"))
	other := &fakeKeySource{}
	other.set(remoteKey(fx.otherIDP, otherIDP, ""))
	v := &Verifier{
		audience: routerAudience, issuer: routerIssuer, own: fx.ownKeys,
		remote: map[string]keySource{idp: fx.idpKeys, otherIDP: other},
	}
	for _, k := range []testKey{fx.ed, fx.ed2, fx.es, fx.rs, fx.hs, fx.staticShared} {
		v.static = append(v.static, k.static(t).key)
	}
	if err := cmp.Or(v.check(), v.initialize(func() time.Time { return fx.now }, tokenCacheBytes)); err != nil {
		t.Fatal(err)
	}
	fx.Verifier = v
	return fx
}

func remoteKey(k testKey, issuer, tenantClaim string) *verifyKey {
	return &verifyKey{kid: k.kid, alg: k.method.Alg(), key: k.public, issuer: issuer, audience: idpAudience, tenantClaim: tenantClaim}
}

func unixSeconds(at time.Time) string { return fmt.Sprint(at.Unix()) }

// claims returns valid claims for a static key.
func (fx *verifierFixture) claims() jsonMembers {
	return jsonMembers{
		{"iss", `"https://some.example"`},
		{"sub", `"alice"`},
		{"aud", quote(routerAudience)},
		{"iat", unixSeconds(fx.now)},
		{"exp", unixSeconds(fx.now.Add(time.Hour))},
		{"jti", `"1"`},
		{"scope", `"route:submit agent:quality_agent"`},
		{"tenant", `"acme"`},
	}
}

func (fx *verifierFixture) idpClaims() jsonMembers {
	return fx.claims().with("iss", quote(idp)).with("aud", quote(idpAudience)).with("org", `"globex"`)
}

// mustVerify returns the caller of a valid token.
func (fx *verifierFixture) mustVerify(token string) *contract.Caller {
	fx.t.Helper()
	caller, err := fx.Verify(fx.t.Context(), token)
	if err != nil {
		fx.t.Fatalf("Verify = %v, want a caller", err)
	}
	return caller
}

// wantRejected checks that a token is rejected for the given reason, with an error that
// does not contain the token.
func (fx *verifierFixture) wantRejected(token, why string) {
	fx.t.Helper()
	caller, err := fx.Verify(fx.t.Context(), token)
	if err == nil {
		fx.t.Errorf("Verify(%s) = %+v, want an error", token, caller)
		return
	}
	var e *contract.Error
	if !errors.As(err, &e) || e.Code != contract.CodeUnauthenticated || caller != nil {
		fx.t.Errorf("Verify = %v, %#v; want no caller and code %s", caller, err, contract.CodeUnauthenticated)
	}
	if !strings.Contains(err.Error(), why) {
		fx.t.Errorf("got error %v, want one with %q", err, why)
	}
	for part := range strings.SplitSeq(token, ".") {
		if len(part) > 12 && strings.Contains(err.Error(), part) {
			fx.t.Errorf("got an error that contains the token: %v", err)
		}
	}
}
