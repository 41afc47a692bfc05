package auth_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/auth"
	"github.com/caprouter/caprouter/internal/auth/issuance"
	"github.com/caprouter/caprouter/internal/auth/jwk"
	"github.com/caprouter/caprouter/internal/auth/keyring"
)

// testRouter is a router with its keys and its issuer of tokens.
type testRouter struct {
	*keyring.Ring
	*issuance.Issuer
}

func newRouter(t testing.TB) *testRouter {
	t.Helper()
	keys, err := keyring.New()
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return newTestRouter(t, keys)
}

func openRouter(t testing.TB, dir string) *testRouter {
	t.Helper()
	keys, err := keyring.Open(dir)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return newTestRouter(t, keys)
}

func newTestRouter(t testing.TB, keys *keyring.Ring) *testRouter {
	t.Helper()
	tokens, err := issuance.New(keys, jwk.EdDSA)
	if err != nil {
		t.Fatal(err)
	}
	return &testRouter{keys, tokens}
}

func callerGrant() issuance.CallerGrant {
	return issuance.CallerGrant{
		Issuer: "caprouter", Audience: "routers", Subject: "alice", Tenant: "acme",
		Scopes: []string{"route:submit", "agent:quality_agent"}, Expires: time.Now().Add(time.Hour),
	}
}

// A verifier accepts the longest token that can be issued.
func TestCallerToken_LongestIsVerified(t *testing.T) {
	s, longest := newRouter(t), strings.Repeat(`"`, 256) // JSON encodes each quote in two characters
	g := issuance.CallerGrant{Issuer: longest, Audience: longest, Subject: longest, Tenant: longest, Expires: time.Now().Add(time.Hour)}
	for range 3 {
		g.Scopes = append(g.Scopes, strings.Repeat("s", 1023))
	}
	token, err := s.CallerToken(g)
	if err != nil {
		t.Fatal(err)
	}
	v, err := auth.NewVerifier(auth.VerifierConfig{Audience: longest, Issuer: longest, Own: s.Ring})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(t.Context(), token); err != nil {
		t.Errorf("Verify of a token of %d bytes = %v, want the caller", len(token), err)
	}
}

// For any grant, an issued token is accepted, and its claims are those of the grant.
func TestCallerToken_IsVerifiedOrNotIssued(t *testing.T) {
	s := newRouter(t)
	names := rapid.OneOf(
		rapid.StringN(0, 40, 300), rapid.StringMatching(`[a-zé]{120,140}`),
		rapid.SampledFrom([]string{"alice", strings.Repeat("a", 256), strings.Repeat("a", 257), "a\x00", "\xff", "\u200b", " "}),
	)
	scopes := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(contract.Scopes()), rapid.StringN(0, 5, 10)), 0, 4)
	issued := 0
	rapid.Check(t, func(rt *rapid.T) {
		g := issuance.CallerGrant{
			Issuer: "caprouter", Audience: "routers", Subject: names.Draw(rt, "sub"), Tenant: names.Draw(rt, "tenant"),
			Scopes: scopes.Draw(rt, "scopes"), Expires: time.Now().Add(time.Hour),
		}
		if rapid.Bool().Draw(rt, "issuer") {
			g.Issuer = names.Draw(rt, "iss")
		}
		if rapid.Bool().Draw(rt, "audience") {
			g.Audience = names.Draw(rt, "aud")
		}
		v, newErr := auth.NewVerifier(auth.VerifierConfig{Audience: g.Audience, Issuer: g.Issuer, Own: s.Ring})
		token, err := s.CallerToken(g)
		if err != nil {
			if checked := g.Check(time.Now()); checked == nil {
				rt.Fatalf("CallerToken: got error %v, but Check found none", err)
			}
			return
		}
		if newErr != nil {
			rt.Fatalf("NewVerifier: got error %v, but a token was issued for it", newErr)
		}
		issued++
		got, err := v.Verify(t.Context(), token)
		if err != nil {
			rt.Fatalf("Verify of a token for %+v: got error %v", g, err)
		}
		if got.Subject != g.Subject || got.Tenant != g.Tenant || got.Issuer != g.Issuer || strings.Join(got.Scopes, " ") != strings.Join(g.Scopes, " ") {
			rt.Fatalf("got caller %+v from a token for %+v", got, g)
		}
	})
	if issued == 0 {
		t.Error("got no issued token for any grant, want some")
	}
}

// The verifier accepts caller tokens, and no tokens of other kinds or of other routers.
func TestVerifier_AcceptsCallerTokensOnly(t *testing.T) {
	dir := t.TempDir()
	s, g := openRouter(t, dir), callerGrant()
	v, err := auth.NewVerifier(auth.VerifierConfig{Audience: "routers", Issuer: "caprouter", Own: s.Ring})
	if err != nil {
		t.Fatal(err)
	}
	token, err := s.CallerToken(g)
	if err != nil {
		t.Fatal(err)
	}
	want := &contract.Caller{Subject: "alice", Issuer: "caprouter", Tenant: "acme", Scopes: g.Scopes}
	for range 2 { // the second result comes from the cache
		got, err := v.Verify(t.Context(), token)
		if err != nil {
			t.Fatalf("Verify: %v", err)
		}
		want.KeyID = got.KeyID // of a derived key
		if diff := cmp.Diff(want, got); diff != "" || got.KeyID == "" || v.IsKeyRevoked(got) {
			t.Errorf("caller (-want +got):\n%s", diff)
		}
	}
	agent, err := s.AgentToken(issuance.AgentGrant{Issuer: "caprouter", AgentID: "routers", Subject: "alice", Expires: g.Expires})
	if err != nil {
		t.Fatal(err)
	}
	task, err := s.TaskToken("caprouter", contract.TaskGrant{AgentID: "a", RequestID: "r", TaskID: "t", Expires: g.Expires})
	if err != nil {
		t.Fatal(err)
	}
	other, err := newRouter(t).CallerToken(g)
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{
		"agent token whose agent has the id of the audience": agent,
		"task token": task,
		"token of another router with the same issuer": other,
	} {
		if got, err := v.Verify(t.Context(), token); err == nil {
			t.Errorf("%s: Verify = %+v, want an error", name, got)
		}
	}

	if _, err := keyring.Rotate(dir, false, time.Now()); err != nil {
		t.Fatal(err)
	}
	reload(t, s)
	if _, err := v.Verify(t.Context(), token); err != nil {
		t.Errorf("after a rotation: Verify = %v, want the caller", err)
	}
	if _, err := keyring.Rotate(dir, true, time.Now()); err != nil {
		t.Fatal(err)
	}
	reload(t, s)
	if got, err := v.Verify(t.Context(), token); err == nil {
		t.Errorf("after the revocation: Verify = %+v, want an error", got)
	}
	if token, err = s.CallerToken(g); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(t.Context(), token); err != nil {
		t.Errorf("token of the new key: Verify = %v, want the caller immediately", err)
	}
}

func reload(t *testing.T, s *testRouter) {
	t.Helper()
	if changed, err := s.Reload(time.Now()); err != nil || !changed {
		t.Fatalf("Reload = %v, %v; want the change", changed, err)
	}
}
