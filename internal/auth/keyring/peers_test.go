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
		t.Fatalf("got %d keys before, want two and four", len(want))
	}
	own := a.JWKS()
	setPeers(t, a, b, b)
	if diff := cmp.Diff(want, publishedKIDs(t, a.JWKS())); diff != "" {
		t.Errorf("key set (-want +got):\n%s", diff)
	}
	for member := range bytes.SplitSeq(bytes.TrimSuffix(bytes.TrimPrefix(b.JWKS(), []byte(`{"keys":[`)), []byte(jwksEnd)), []byte("},{")) {
		if !bytes.Contains(a.JWKS(), bytes.Trim(member, "{}")) {
			t.Errorf("the key set contains %s in another form", member)
		}
	}
	setPeers(t, a)
	if !bytes.Equal(own, a.JWKS()) {
		t.Errorf("got key set %s without peers, want the own one", a.JWKS())
	}
}

// The key of a replica for agents must not verify tokens of callers, and the reverse.
func TestPeerKeys_AreForOnePurpose(t *testing.T) {
	a, b := newRing(t), newRing(t)
	setPeers(t, a, b)
	items := makeAll(t, b)
	if strings.Contains(string(a.JWKS()), items.caller.kid) {
		t.Error("the key set contains the key of tokens for callers")
	}
	for name, item := range map[string]signed{"agent": items.agent, "agent with ES256": items.es256} {
		if k := a.CallerPublicKey(item.kid, time.Now()); k != nil {
			t.Errorf("token for an %s: got key %v for callers, want none", name, k)
		}
	}
	if a.VerifyTaskMAC("signed", items.task, time.Now()) {
		t.Error("the MAC of another router is accepted without a shared secret")
	}
	if a.Verify("audit-head", items.keyID, []byte("head"), items.sig) {
		t.Error("Verify accepts the signature of another replica")
	}
	if !a.VerifyPeer("audit-head", items.keyID, []byte("head"), items.sig) || a.VerifyPeer("audit", items.keyID, []byte("head"), items.sig) {
		t.Error("VerifyPeer: want the signature accepted for its purpose only")
	}
	if own := makeAll(t, a); a.VerifyPeer("audit-head", own.keyID, []byte("head"), own.sig) {
		t.Error("VerifyPeer accepts an own signature")
	}
}

// A key that was revoked here stays revoked, whatever other replicas publish.
func TestPeerKeys_DoNotRestoreRevokedKeys(t *testing.T) {
	dir, now := t.TempDir(), base()
	before := openAt(t, dir, now)
	stolen := makeAll(t, before)
	published := before.PublicKeys()
	rotate(t, dir, true, now)
	s := openAt(t, dir, now)
	if err := s.SetPeerKeys(published); err != nil {
		t.Fatal(err)
	}
	wantCounts(t, s, &stolen, now, "signature") // of earlier records in the audit log
	if slices.Contains(publishedKIDs(t, s.JWKS()), stolen.agent.kid) || s.VerifyPeer("audit-head", stolen.keyID, []byte("head"), stolen.sig) {
		t.Error("the revoked key is accepted as that of a replica")
	}
}

func TestSetPeerKeys_RejectsInvalidKeys(t *testing.T) {
	a, b := newRing(t), newRing(t)
	setPeers(t, a, b)
	want := a.JWKS()
	for name, change := range map[string]func(*PublicKey){
		"no signing key":       func(k *PublicKey) { k.Signing = nil },
		"a point of low order": func(k *PublicKey) { k.Signing = make([]byte, ed25519.PublicKeySize) },
		"no key of callers":    func(k *PublicKey) { k.Caller = nil },
		"no P-256 key":         func(k *PublicKey) { k.ES256 = nil },
		"not on the curve":     func(k *PublicKey) { k.ES256 = bytes.Clone(k.ES256); k.ES256[64] ^= 1 },
	} {
		keys := newRing(t).PublicKeys()
		change(&keys[0])
		if err := a.SetPeerKeys(keys); err == nil || !strings.Contains(err.Error(), "public key 0") {
			t.Errorf("%s: got error %v, want one with the key", name, err)
		}
	}
	if !bytes.Equal(want, a.JWKS()) {
		t.Error("rejected keys changed the key set")
	}
}

func TestTaskSecrets_VerifyOnAllReplicas(t *testing.T) {
	a, b := newRing(t), newRing(t)
	secret, next := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	earlier := makeAll(t, a).task // with the key derived from the signing key
	set := func(s *Ring, secrets ...[]byte) {
		t.Helper()
		if err := s.SetTaskSecrets(secrets); err != nil {
			t.Fatal(err)
		}
	}
	set(a, secret)
	set(b, secret)
	task := makeAll(t, a).task
	wantAccepted := func(when string, s *Ring, mac string, want bool) {
		t.Helper()
		if got := s.VerifyTaskMAC("signed", mac, time.Now()); got != want {
			t.Errorf("%s: got accepted: %v, want %v", when, got, want)
		}
	}
	wantAccepted("by another replica", b, task, true)
	wantAccepted("issued before there was a secret", a, earlier, true)
	wantAccepted("issued before there was a secret, by another replica", b, earlier, false)
	set(a, next, secret)
	wantAccepted("after a rotation", a, task, true)
	wantAccepted("the next secret, not known yet", b, makeAll(t, a).task, false)
	set(b, secret, next)
	wantAccepted("the next secret, known", b, makeAll(t, a).task, true)
	set(a, next)
	wantAccepted("after the secret has ended", a, task, false)
	for _, secrets := range [][][]byte{nil, {}, {next, secret[:31]}} {
		if err := a.SetTaskSecrets(secrets); err == nil {
			t.Errorf("%d secrets: got no error", len(secrets))
		}
	}
	if err := a.SetPeerKeys(b.PublicKeys()); err != nil {
		t.Fatal(err)
	}
	// A public key is no secret.
	forged := newRing(t)
	set(forged, b.PublicKeys()[0].Signing)
	wantAccepted("a MAC with a public key", a, makeAll(t, forged).task, false)
}

func newRing(t testing.TB) *Ring {
	t.Helper()
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return s
}
