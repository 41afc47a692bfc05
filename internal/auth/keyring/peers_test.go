package keyring

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func setPeers(t *testing.T, s *Ring, peers ...*Ring) {
	t.Helper()
	var keys []PublicKey
	for _, p := range peers {
		keys = append(keys, p.PublicKeys()...)
	}
	if err := s.SetPeerKeys(keys); err != nil {
		t.Fatalf("SetPeerKeys: %v", err)
	}
}

// publishedKIDs returns the kids of the key set, sorted.
func publishedKIDs(t *testing.T, jwks []byte) []string {
	t.Helper()
	var set struct {
		Keys []struct{ Kid string } `json:"keys"`
	}
	if err := json.Unmarshal(jwks, &set); err != nil {
		t.Fatalf("key set %s: %v", jwks, err)
	}
	var list []string
	for _, k := range set.Keys {
		list = append(list, k.Kid)
	}
	slices.Sort(list)
	return list
}

func TestPeerKeys_AreInTheKeySet(t *testing.T) {
	now := base()
	dirs := []string{t.TempDir(), t.TempDir()}
	openAt(t, dirs[1], now)
	rotate(t, dirs[1], false, now)
	a, b := openAt(t, dirs[0], now), openAt(t, dirs[1], now)
	want := slices.Concat(publishedKIDs(t, a.JWKS()), publishedKIDs(t, b.JWKS()))
	slices.Sort(want)
	if len(want) != 6 {
		t.Fatalf("got %d keys of both rings, want 2 and 4", len(want))
	}
	own := a.JWKS()
	setPeers(t, a, b, b)
	if diff := cmp.Diff(want, publishedKIDs(t, a.JWKS())); diff != "" {
		t.Errorf("key set (-want +got):\n%s", diff)
	}
	for member := range bytes.SplitSeq(bytes.TrimSuffix(bytes.TrimPrefix(b.JWKS(), []byte(`{"keys":[`)), []byte(jwksEnd)), []byte("},{")) {
		if !bytes.Contains(a.JWKS(), bytes.Trim(member, "{}")) {
			t.Errorf("got a key set without %s, want the key as the peer publishes it", member)
		}
	}
	setPeers(t, a)
	if !bytes.Equal(own, a.JWKS()) {
		t.Errorf("without peers: got key set %s, want %s", a.JWKS(), own)
	}
}

// Each key of a peer verifies signatures of its own kind only.
func TestPeerKeys_HaveOnePurpose(t *testing.T) {
	a, b := newRing(t), newRing(t)
	setPeers(t, a, b)
	items := signAll(t, b)
	if strings.Contains(string(a.JWKS()), items.caller.kid) {
		t.Error("got the key of caller tokens in the key set, want it unpublished")
	}
	for name, item := range map[string]signed{"agent": items.agent, "agent with ES256": items.es256} {
		if k := a.CallerPublicKey(item.kid, time.Now()); k != nil {
			t.Errorf("key of tokens for an %s: CallerPublicKey = %v, want none", name, k)
		}
	}
	if a.VerifyTaskMAC("signed", items.task, time.Now()) {
		t.Error("VerifyTaskMAC = true for the MAC of a peer without a shared secret, want false")
	}
	if a.Verify("audit-head", items.keyID, []byte("head"), items.sig) {
		t.Error("Verify = true for the signature of a peer, want false")
	}
	if !a.VerifyPeer("audit-head", items.keyID, []byte("head"), items.sig) || a.VerifyPeer("audit", items.keyID, []byte("head"), items.sig) {
		t.Error("VerifyPeer: got another result, want true for the purpose of the signature only")
	}
	if own := signAll(t, a); a.VerifyPeer("audit-head", own.keyID, []byte("head"), own.sig) {
		t.Error("VerifyPeer = true for a signature of the ring itself, want false")
	}
}

// A key that this ring revoked stays revoked if a peer publishes it.
func TestPeerKeys_DoNotRestoreRevokedKeys(t *testing.T) {
	dir, now := t.TempDir(), base()
	before := openAt(t, dir, now)
	revoked := signAll(t, before)
	published := before.PublicKeys()
	rotate(t, dir, true, now)
	s := openAt(t, dir, now)
	if err := s.SetPeerKeys(published); err != nil {
		t.Fatal(err)
	}
	wantAccepted(t, s, &revoked, now, "signature") // verifies earlier records of the audit log
	if slices.Contains(publishedKIDs(t, s.JWKS()), revoked.agent.kid) || s.VerifyPeer("audit-head", revoked.keyID, []byte("head"), revoked.sig) {
		t.Error("got the revoked key accepted as a key of a peer, want it rejected")
	}
}

func TestSetPeerKeys_RejectsInvalidKeys(t *testing.T) {
	a, b := newRing(t), newRing(t)
	setPeers(t, a, b)
	want := a.JWKS()
	for name, change := range map[string]func(*PublicKey){
		"no signing key":          func(k *PublicKey) { k.Signing = nil },
		"point of low order":      func(k *PublicKey) { k.Signing = make([]byte, ed25519.PublicKeySize) },
		"no key of caller tokens": func(k *PublicKey) { k.Caller = nil },
		"no P-256 key":            func(k *PublicKey) { k.ES256 = nil },
		"point not on the curve":  func(k *PublicKey) { k.ES256 = bytes.Clone(k.ES256); k.ES256[64] ^= 1 },
	} {
		keys := newRing(t).PublicKeys()
		change(&keys[0])
		if err := a.SetPeerKeys(keys); err == nil || !strings.Contains(err.Error(), "public key 0") {
			t.Errorf("%s: got error %v, want one with the index of the key", name, err)
		}
	}
	if !bytes.Equal(want, a.JWKS()) {
		t.Error("got another key set after rejected keys, want it unchanged")
	}
}

func TestTaskSecrets_VerifyOnAllReplicas(t *testing.T) {
	a, b := newRing(t), newRing(t)
	secret, next := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	earlier := signAll(t, a).task // with the key derived from the signing key
	set := func(s *Ring, secrets ...[]byte) {
		t.Helper()
		if err := s.SetTaskSecrets(secrets); err != nil {
			t.Fatal(err)
		}
	}
	set(a, secret)
	set(b, secret)
	task := signAll(t, a).task
	wantMACAccepted := func(when string, s *Ring, mac string, want bool) {
		t.Helper()
		if got := s.VerifyTaskMAC("signed", mac, time.Now()); got != want {
			t.Errorf("%s: got accepted: %v, want %v", when, got, want)
		}
	}
	wantMACAccepted("MAC of a replica with the same secret", b, task, true)
	wantMACAccepted("MAC from before the secret was set", a, earlier, true)
	wantMACAccepted("MAC of a replica from before the secret was set", b, earlier, false)
	set(a, next, secret)
	wantMACAccepted("MAC with the older of two secrets", a, task, true)
	wantMACAccepted("MAC with an unknown secret", b, signAll(t, a).task, false)
	set(b, secret, next)
	wantMACAccepted("MAC with the second of two secrets", b, signAll(t, a).task, true)
	set(a, next)
	wantMACAccepted("MAC with a removed secret", a, task, false)
	for _, secrets := range [][][]byte{nil, {}, {next, secret[:31]}} {
		if err := a.SetTaskSecrets(secrets); err == nil {
			t.Errorf("SetTaskSecrets with %d secrets = nil, want an error", len(secrets))
		}
	}
	if err := a.SetPeerKeys(b.PublicKeys()); err != nil {
		t.Fatal(err)
	}
	// The keys of the peer must not become secrets of the MAC.
	forged := newRing(t)
	set(forged, b.PublicKeys()[0].Signing)
	wantMACAccepted("MAC with a public key", a, signAll(t, forged).task, false)
}

func newRing(t testing.TB) *Ring {
	t.Helper()
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return s
}
