package keyring

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// signed is a signature or a MAC of the text "signed".
type signed struct {
	kid string // "" if the token has none
	sig []byte
}

// signedItems are one signature or MAC of every kind that a Ring creates.
type signedItems struct {
	agent, es256, caller signed
	task                 string // MAC
	keyID                string // of sig
	sig                  []byte // of the data "head" for the purpose "audit-head"
	at                   time.Time
}

func signAll(t testing.TB, r *Ring) signedItems {
	t.Helper()
	m := signedItems{at: r.store.now()}
	keys := r.TokenKeys(m.at)
	for key, to := range map[*TokenKey]*signed{keys.EdDSA: &m.agent, keys.ES256: &m.es256, keys.Caller: &m.caller} {
		sig, err := key.Sign([]byte("signed"))
		if err != nil {
			t.Fatalf("Sign with %s: %v", key.Algorithm, err)
		}
		*to = signed{key.ID, sig}
	}
	m.task = string(r.AppendTaskMAC(nil, []byte("signed"), m.at))
	m.keyID, m.sig = r.Sign("audit-head", []byte("head"))
	return m
}

// accepted returns the kinds that a Ring accepts at now.
func (m *signedItems) accepted(t testing.TB, r *Ring, now time.Time) []string {
	t.Helper()
	var kinds []string
	jwks := string(r.store.viewAt(now).jwks)
	if strings.Contains(jwks, `"kid":"`+m.agent.kid+`"`) {
		kinds = append(kinds, "agent")
	}
	if strings.Contains(jwks, `"kid":"`+m.es256.kid+`"`) {
		kinds = append(kinds, "agent with ES256")
	}
	if r.VerifyTaskMAC("signed", m.task, now) {
		kinds = append(kinds, "task")
	}
	if k := r.CallerPublicKey(m.caller.kid, now); k != nil && ed25519.Verify(k, []byte("signed"), m.caller.sig) {
		kinds = append(kinds, "caller")
	}
	if r.Verify("audit-head", m.keyID, []byte("head"), m.sig) {
		kinds = append(kinds, "signature")
	}
	return kinds
}

// wantAccepted checks which kinds the ring accepts at now.
func wantAccepted(t testing.TB, s *Ring, m *signedItems, now time.Time, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, m.accepted(t, s, now)); diff != "" {
		t.Errorf("accepted at %s of those signed at %s (-want +got):\n%s", now, m.at, diff)
	}
}

func allKinds() []string {
	return []string{"agent", "agent with ES256", "task", "caller", "signature"}
}

func openAt(t testing.TB, dir string, now time.Time) *Ring {
	t.Helper()
	s, err := openRing(dir, func() time.Time { return now })
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return s
}

func rotate(t testing.TB, dir string, revoke bool, now time.Time) *Rotation {
	t.Helper()
	done, err := Rotate(dir, revoke, now)
	if err != nil {
		t.Fatalf("Rotate: %v", err)
	}
	return done
}

// retiredFiles lists the files of the directory of retired keys.
func retiredFiles(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, retiredDir))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: got mode %v (%v), want 0600", e.Name(), info.Mode(), err)
		}
		if e.Name() != keyringLockFile {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestRotate_ReplacesKey(t *testing.T) {
	dir, now := t.TempDir(), base()
	first := openAt(t, dir, now)
	before := signAll(t, first)

	now = now.Add(time.Hour)
	done := rotate(t, dir, false, now)
	old, next := before.keyID, done.New.ID
	want := &Rotation{
		New: Info{ID: next, ES256ID: done.New.ES256ID, State: StateNext, Created: now, SignsFrom: now.Add(keyOverlap)},
		Old: []Info{{ID: old, ES256ID: before.es256.kid, State: StateSigning, Created: base(), Until: now.Add(keyOverlap + retiredKeyLife)}},
	}
	if diff := cmp.Diff(want, done); diff != "" {
		t.Errorf("rotation (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{old + ".key"}, retiredFiles(t, dir)); diff != "" {
		t.Errorf("retired keys (-want +got):\n%s", diff)
	}

	s := openAt(t, dir, now)
	wantAccepted(t, s, &before, now, allKinds()...)
	if got := signAll(t, s); got.keyID != old {
		t.Errorf("got signing key %s, want the old key during the overlap", got.keyID)
	}
	s = openAt(t, dir, now.Add(keyOverlap))
	after := signAll(t, s)
	if after.keyID != next || after.es256.kid != done.New.ES256ID {
		t.Errorf("got signing keys %s and %s, want the new ones", after.keyID, after.es256.kid)
	}
	wantAccepted(t, s, &before, now.Add(keyOverlap), allKinds()...)
	wantAccepted(t, s, &after, now.Add(keyOverlap), allKinds()...)
	wantAccepted(t, first, &after, now.Add(keyOverlap)) // first was not reloaded
}

func TestRotate_RevokesKey(t *testing.T) {
	dir, now := t.TempDir(), base()
	first := signAll(t, openAt(t, dir, now))
	now = now.Add(time.Hour)
	rotate(t, dir, false, now)
	now = now.Add(time.Hour)
	second := signAll(t, openAt(t, dir, now))
	done := rotate(t, dir, true, now)

	s := openAt(t, dir, now)
	wantAccepted(t, s, &first, now, "signature")
	wantAccepted(t, s, &second, now, "signature")
	third := signAll(t, s)
	wantAccepted(t, s, &third, now, allKinds()...)
	if third.keyID != done.New.ID || done.New.State != StateSigning {
		t.Errorf("got signing key %s and state %s of the new key, want the new key to sign immediately", third.keyID, done.New.State)
	}
	for _, name := range retiredFiles(t, dir) {
		if !strings.HasSuffix(name, publicSuffix) {
			t.Errorf("got file %s, want only public keys", name)
		}
	}
	if n := len(kids(t, s.store.viewAt(now))); n != 1 {
		t.Errorf("got %d published keys, want 1", n)
	}
}

// Signatures of a retired key are accepted for a limited time. Then its public key replaces its
// file, so that old records of the audit log can still be verified.
func TestRotate_RemovesEndedKeys(t *testing.T) {
	dir, now := t.TempDir(), base()
	s := openAt(t, dir, now)
	m := signAll(t, s)
	rotate(t, dir, false, now)
	end := now.Add(keyOverlap + retiredKeyLife)
	if _, err := s.Reload(end.Add(-1)); err != nil {
		t.Fatal(err)
	}
	if s.CallerPublicKey(m.caller.kid, end.Add(-1)) == nil {
		t.Error("before the end: got no key for callers, want the retired one")
	}
	if diff := cmp.Diff([]string{m.keyID + ".key"}, retiredFiles(t, dir)); diff != "" {
		t.Errorf("retired files before the end (-want +got):\n%s", diff)
	}
	if _, err := s.Reload(end); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{m.keyID + ".pub"}, retiredFiles(t, dir)); diff != "" {
		t.Errorf("retired files at the end (-want +got):\n%s", diff)
	}
	wantAccepted(t, s, &m, end, "signature")
	wantAccepted(t, openAt(t, dir, end), &m, end, "signature")
	list, err := List(dir, end)
	if err != nil || len(list) != 2 || list[1].State != StateOld || !list[1].Created.Equal(base()) {
		t.Errorf("List = %v, %v; want the old key last, created at %s", list, err, base())
	}
}

var errCrash = errors.New("simulated crash")

// A crash after any step of a rotation leaves a valid keyring, and the next rotation succeeds.
func TestRotate_SurvivesInterruption(t *testing.T) {
	for _, revoke := range []bool{false, true} {
		for _, then := range []bool{false, true} {
			for stop, completed := 1, false; !completed; stop++ {
				t.Run(fmt.Sprintf("revoke %v, after step %d, then revoke %v", revoke, stop, then), func(t *testing.T) {
					completed = checkInterruptedRotation(t, revoke, stop, then)
				})
				if stop > 100 {
					t.Fatal("got more than 100 steps of a rotation, want fewer")
				}
			}
		}
	}
}

// checkInterruptedRotation interrupts a rotation after step stop, and rotates again. It reports
// whether the first rotation was completed, because it has fewer steps.
func checkInterruptedRotation(t *testing.T, revoke bool, stop int, then bool) (completed bool) {
	t.Helper()
	dir, now := t.TempDir(), base()
	var all []signedItems
	for range 3 { // the retired life of the first key ends before the next rotation
		all = append(all, signAll(t, openAt(t, dir, now)))
		rotate(t, dir, false, now)
		now = now.Add(retiredKeyLife)
	}
	all = append(all, signAll(t, openAt(t, dir, now)))
	steps := 0
	r := newRotation(dir, now)
	r.afterStep = func(string) error {
		if steps++; steps == stop {
			return errCrash
		}
		return nil
	}
	_, err := r.rotate(revoke)
	if completed = err == nil; !completed && !errors.Is(err, errCrash) {
		t.Fatalf("rotation: %v", err)
	}

	s := openAt(t, dir, now)
	for i := range all {
		if !s.Verify("audit-head", all[i].keyID, []byte("head"), all[i].sig) {
			t.Errorf("signature of key %d: Verify = false, want true", i)
		}
	}
	if !revoke {
		wantAccepted(t, s, &all[2], now, allKinds()...)
		wantAccepted(t, s, &all[3], now, allKinds()...)
	}
	latest := signAll(t, s)
	wantAccepted(t, s, &latest, now, allKinds()...)

	rotate(t, dir, then, now)
	s = openAt(t, dir, now)
	for i, m := range append(all, latest) {
		if !s.Verify("audit-head", m.keyID, []byte("head"), m.sig) {
			t.Errorf("signature of key %d after another rotation: Verify = false, want true", i)
		}
		if then {
			wantAccepted(t, s, &m, now, "signature")
		}
	}
	if !then {
		wantAccepted(t, s, &latest, now, allKinds()...)
	}
	return completed
}

func TestRotate_ConcurrentRotationsKeepAllKeys(t *testing.T) {
	dir, now := t.TempDir(), base()
	first := signAll(t, openAt(t, dir, now))
	const rotations = 8
	ids := make([]string, rotations)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			done, err := Rotate(dir, false, now)
			if err != nil {
				t.Errorf("Rotate: %v", err)
				return
			}
			ids[i] = done.New.ID
		})
	}
	wg.Wait()
	list, err := List(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, k := range list {
		listed[k.ID] = true
	}
	for _, id := range slices.Concat(ids, []string{first.keyID}) {
		if !listed[id] {
			t.Errorf("got no key %s, want it listed", id)
		}
	}
	if len(list) != rotations+1 {
		t.Errorf("got %d keys, want %d", len(list), rotations+1)
	}
}

func TestRotate_RejectsInvalidDirectories(t *testing.T) {
	t.Run("no key", func(t *testing.T) {
		dir := t.TempDir()
		if _, err := Rotate(dir, false, base()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Rotate = %v, want the error of the missing key", err)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 0 {
			t.Errorf("got files %v, want none", entries)
		}
	})
	for name, damage := range map[string]func(dir, retired string) error{
		"world-readable key":       func(_, retired string) error { return os.Chmod(retired, 0o644) },
		"world-readable directory": func(dir, _ string) error { return os.Chmod(filepath.Join(dir, retiredDir), 0o755) },
		"empty key":                func(_, retired string) error { return os.Truncate(retired, 0) },
		"file name with another kid": func(_, retired string) error {
			return os.Rename(retired, filepath.Join(filepath.Dir(retired), "kid.key"))
		},
		"symbolic link": func(_, retired string) error {
			return errors.Join(os.Rename(retired, retired+".bak"), os.Symlink(retired+".bak", retired))
		},
		"private key with the name of a public key": func(_, retired string) error {
			return os.Rename(retired, strings.TrimSuffix(retired, ".key")+".pub")
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openAt(t, dir, base())
			rotate(t, dir, false, base())
			if err := damage(dir, filepath.Join(dir, retiredDir, s.KeyID()+".key")); err != nil {
				t.Fatal(err)
			}
			_, rotateErr := Rotate(dir, false, base())
			_, openErr := Open(dir)
			_, reloadErr := s.Reload(base())
			for call, err := range map[string]error{
				"Rotate": rotateErr, "Open": openErr, "Check": Check(dir), "Reload": reloadErr,
			} {
				if err == nil || !strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s = %v, want one line with the path of the file", call, err)
				}
			}
			signAll(t, s) // the ring in memory still signs
		})
	}
}
