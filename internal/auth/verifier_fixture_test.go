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
	ourAudience = "caprouter"
	ourIssuer   = "https://router.example"
	idp         = "https://idp.example"
	otherIDP    = "https://other-idp.example"
	idpAudience = "router-at-idp"
)

// mintKey is a key that signs, with its verification key.
type mintKey struct {
	kid     string
	method  jwt.SigningMethod
	private any
	public  any
}

func newMintKey(t testing.TB, kid, alg string) mintKey {
	t.Helper()
	var k mintKey
	var err error
	switch alg {
	case "EdDSA":
		var private ed25519.PrivateKey
		_, private, err = ed25519.GenerateKey(rand.Reader)
		k = mintKey{kid, jwt.SigningMethodEdDSA, private, private.Public()}
	case "ES256":
		var private *ecdsa.PrivateKey
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		k = mintKey{kid, jwt.SigningMethodES256, private, &private.PublicKey}
	case "RS256":
		var private *rsa.PrivateKey
		private, err = rsa.GenerateKey(rand.Reader, 2048)
		k = mintKey{kid, jwt.SigningMethodRS256, private, &private.PublicKey}
	case "HS256":
		secret := make([]byte, 32)
		_, _ = rand.Read(secret)
		k = mintKey{kid, jwt.SigningMethodHS256, secret, secret}
	}
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// pem returns the public key in the form of an operator's key file.
func (k mintKey) pem(t testing.TB) []byte {
	t.Helper()
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: k.der(t)})
}

func (k mintKey) der(t testing.TB) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(k.public)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func (k mintKey) static(t testing.TB) StaticKey {
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

func seg(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// sign signs a token with this header and these claims, both JSON texts.
func (k mintKey) sign(t testing.TB, header, claims string) string {
	t.Helper()
	return k.signSegments(t, seg(header)+"."+seg(claims))
}

func (k mintKey) signSegments(t testing.TB, signed string) string {
	t.Helper()
	signature, err := k.method.Sign(signed, k.private)
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func (k mintKey) header() members {
	return members{{"typ", `"at+jwt"`}, {"alg", q(k.method.Alg())}, {"kid", q(k.kid)}}
}

// token returns a token with these claims and a valid header.
func (k mintKey) token(t testing.TB, claims members) string {
	t.Helper()
	return k.sign(t, k.header().text(), claims.text())
}

func q(s string) string { return `"` + s + `"` }

// members is a JSON object that a test changes; the order stays.
type members [][2]string

func (m members) with(name, value string) members {
	changed, found := members{}, false
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

func (m members) without(name string) members {
	changed := members{}
	for _, have := range m {
		if have[0] != name {
			changed = append(changed, have)
		}
	}
	return changed
}

// plus adds a member, even if the name exists; the name may contain escapes.
func (m members) plus(name, value string) members {
	return append(members{{name, value}}, m...)
}

func (m members) text() string {
	var parts []string
	for _, have := range m {
		parts = append(parts, q(have[0])+":"+have[1])
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// keyList is a key source whose keys a test replaces.
type keyList struct {
	mu    sync.Mutex
	keys  []*verifyKey
	err   error
	asked int
}

func (l *keyList) findKey(_ context.Context, kid, _ string, _ time.Time) (*verifyKey, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	for _, k := range l.keys {
		if k.kid == kid { // for any algorithm
			return k, l.err
		}
	}
	return nil, l.err
}

func (l *keyList) isValid(k *verifyKey, _ time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.keys, k)
}

func (l *keyList) isRevoked(kid string, _ time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !slices.ContainsFunc(l.keys, func(k *verifyKey) bool { return k.kid == kid })
}

func (l *keyList) set(keys ...*verifyKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys = keys
}

func (l *keyList) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}

// world is a verifier with every kind of key source and its own clock.
type world struct {
	t   testing.TB
	now time.Time
	*Verifier

	ed, ed2, es, rs, hs mintKey // static keys
	own                 mintKey
	idp, otherIDP       mintKey // both with the kid "shared"
	staticShared        mintKey // static, with the kid "shared" as well
	ownKeys, idpKeys    *keyList
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{
		t: t, now: time.Unix(1_790_000_000, 0),
		ed: newMintKey(t, "ed", "EdDSA"), ed2: newMintKey(t, "ed2", "EdDSA"), es: newMintKey(t, "es", "ES256"),
		rs: newMintKey(t, "rs", "RS256"), hs: newMintKey(t, "hs", "HS256"),
		own: newMintKey(t, "own", "EdDSA"), staticShared: newMintKey(t, "shared", "EdDSA"),
		idp: newMintKey(t, "shared", "EdDSA"), otherIDP: newMintKey(t, "shared", "EdDSA"),
		ownKeys: &keyList{}, idpKeys: &keyList{},
	}
	w.ownKeys.set(&verifyKey{kid: w.own.kid, alg: w.own.method.Alg(), key: w.own.public})
	w.idpKeys.set(remoteKey(w.idp, idp, "org"))
	other := &keyList{}
	other.set(remoteKey(w.otherIDP, otherIDP, ""))
	v := &Verifier{
		audience: ourAudience, issuer: ourIssuer, own: w.ownKeys,
		remote: map[string]keySource{idp: w.idpKeys, otherIDP: other},
	}
	for _, k := range []mintKey{w.ed, w.ed2, w.es, w.rs, w.hs, w.staticShared} {
		v.static = append(v.static, k.static(t).key)
	}
	if err := cmp.Or(v.check(), v.initialize(func() time.Time { return w.now }, tokenCacheBytes)); err != nil {
		t.Fatal(err)
	}
	w.Verifier = v
	return w
}

func remoteKey(k mintKey, issuer, tenantClaim string) *verifyKey {
	return &verifyKey{kid: k.kid, alg: k.method.Alg(), key: k.public, issuer: issuer, audience: idpAudience, tenantClaim: tenantClaim}
}

func number(at time.Time) string { return fmt.Sprint(at.Unix()) }

// claims returns valid claims for a static key.
func (w *world) claims() members {
	return members{
		{"iss", `"https://some.example"`},
		{"sub", `"alice"`},
		{"aud", q(ourAudience)},
		{"iat", number(w.now)},
		{"exp", number(w.now.Add(time.Hour))},
		{"jti", `"1"`},
		{"scope", `"route:submit agent:quality_agent"`},
		{"tenant", `"acme"`},
	}
}

func (w *world) idpClaims() members {
	return w.claims().with("iss", q(idp)).with("aud", q(idpAudience)).with("org", `"globex"`)
}

// accepts returns the caller of a valid token.
func (w *world) accepts(token string) *contract.Caller {
	w.t.Helper()
	caller, err := w.Verify(w.t.Context(), token)
	if err != nil {
		w.t.Fatalf("Verify: %v, want a caller", err)
	}
	return caller
}

// rejects checks that a token is rejected for the given reason, with an error that
// does not contain the token.
func (w *world) rejects(token, why string) {
	w.t.Helper()
	caller, err := w.Verify(w.t.Context(), token)
	if err == nil {
		w.t.Errorf("token %s: got caller %+v, want an error", token, caller)
		return
	}
	var e *contract.Error
	if !errors.As(err, &e) || e.Code != contract.CodeUnauthenticated || caller != nil {
		w.t.Errorf("Verify = %v, %#v; want no caller and code %s", caller, err, contract.CodeUnauthenticated)
	}
	if !strings.Contains(err.Error(), why) {
		w.t.Errorf("got error %v, want one with %q", err, why)
	}
	for part := range strings.SplitSeq(token, ".") {
		if len(part) > 12 && strings.Contains(err.Error(), part) {
			w.t.Errorf("got an error that contains the token: %v", err)
		}
	}
}
