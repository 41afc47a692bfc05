package auth

import (
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/auth/issuance"
	"github.com/caprouter/caprouter/internal/auth/jwk"
	"github.com/caprouter/caprouter/internal/auth/keyring"
)

func TestVerify_AcceptsTokensOfPeers(t *testing.T) {
	a, b := newRing(t), newRing(t)
	v, err := NewVerifier(VerifierConfig{Audience: routerAudience, Issuer: routerIssuer, Own: a})
	if err != nil {
		t.Fatal(err)
	}
	token, err := newIssuer(t, b).CallerToken(issuance.CallerGrant{Issuer: routerIssuer, Audience: routerAudience, Subject: "alice", Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	kid := b.TokenKeys(time.Now()).Caller.ID
	setPeers := func(keys ...keyring.PublicKey) {
		t.Helper()
		if err := a.SetPeerKeys(keys); err != nil {
			t.Fatal(err)
		}
	}
	wantVerified := func(when string, want bool) {
		t.Helper()
		for range 2 { // the second one is cached
			if _, err := v.Verify(t.Context(), token); (err == nil) != want {
				t.Errorf("%s: got error %v, want verified: %v", when, err, want)
			}
		}
		if v.own.isRevoked(kid, time.Now()) == want {
			t.Errorf("%s: isRevoked = %v, want %v", when, want, !want)
		}
	}
	wantVerified("without the keys of the peer", false)
	setPeers(b.PublicKeys()...)
	wantVerified("with the keys of the peer", true)
	setPeers()
	wantVerified("after the keys of the peer were removed", false)
}

func newRing(t testing.TB) *keyring.Ring {
	t.Helper()
	ring, err := keyring.New()
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func newIssuer(t testing.TB, keys *keyring.Ring) *issuance.Issuer {
	t.Helper()
	issuer, err := issuance.New(keys, jwk.EdDSA)
	if err != nil {
		t.Fatal(err)
	}
	return issuer
}
