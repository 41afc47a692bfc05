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

// signedItems holds one signature of every kind that a Ring makes.
type signedItems struct {
	agent, es256, caller signed
	task                 string // MAC
	keyID                string
	sig                  []byte
	at                   time.Time
}

func makeAll(t testing.TB, r *Ring) signedItems {
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

// counts returns the names of those that a Ring accepts.
func (m *signedItems) counts(t testing.TB, r *Ring, now time.Time) []string {
	t.Helper()
	var what []string
	jwks := string(r.store.viewAt(now).jwks)
	if strings.Contains(jwks, `"kid":"`+m.agent.kid+`"`) {
		what = append(what, "agent")
	}
	if strings.Contains(jwks, `"kid":"`+m.es256.kid+`"`) {
		what = append(what, "agent with ES256")
	}
	if r.VerifyTaskMAC("signed", m.task, now) {
		what = append(what, "task")
	}
	if k := r.CallerPublicKey(m.caller.kid, now); k != nil && ed25519.Verify(k, []byte("signed"), m.caller.sig) {
		what = append(what, "caller")
	}
	if r.Verify("audit-head", m.keyID, []byte("head"), m.sig) {
		what = append(what, "signature")
	}
	return what
}

func wantCounts(t testing.TB, s *Ring, m *signedItems, now time.Time, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, m.counts(t, s, now)); diff != "" {
		t.Errorf("what counts at %s of what was made at %s (-want +got):\n%s", now, m.at, diff)
	}
}

func everything() []string {
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
			t.Errorf("%s has the mode %v (%v), want 0600", e.Name(), info.Mode(), err)
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
	before := makeAll(t, first)

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
	wantCounts(t, s, &before, now, everything()...)
	if got := makeAll(t, s); got.keyID != old {
		t.Errorf("got signing key %s, want the old one until the new one is distributed", got.keyID)
	}
	s = openAt(t, dir, now.Add(keyOverlap))
	after := makeAll(t, s)
	if after.keyID != next || after.es256.kid != done.New.ES256ID {
		t.Errorf("got signing keys %s and %s, want the new ones", after.keyID, after.es256.kid)
	}
	wantCounts(t, s, &before, now.Add(keyOverlap), everything()...)
	wantCounts(t, s, &after, now.Add(keyOverlap), everything()...)
	wantCounts(t, first, &after, now.Add(keyOverlap)) // which has not reloaded since
}

func TestRotate_RevokesKey(t *testing.T) {
	dir, now := t.TempDir(), base()
	first := makeAll(t, openAt(t, dir, now))
	now = now.Add(time.Hour)
	rotate(t, dir, false, now)
	now = now.Add(time.Hour)
	second := makeAll(t, openAt(t, dir, now))
	done := rotate(t, dir, true, now)

	s := openAt(t, dir, now)
	wantCounts(t, s, &first, now, "signature")
	wantCounts(t, s, &second, now, "signature")
	third := makeAll(t, s)
	wantCounts(t, s, &third, now, everything()...)
	if third.keyID != done.New.ID || done.New.State != StateSigning {
		t.Errorf("got signing key %s, want the new one, %s, immediately", third.keyID, done.New.State)
	}
	for _, name := range retiredFiles(t, dir) {
		if !strings.HasSuffix(name, publicSuffix) {
			t.Errorf("got %s, want it removed", name)
		}
	}
	if n := len(kids(t, s.store.viewAt(now))); n != 1 {
		t.Errorf("got %d published keys, want the new one", n)
	}
}

// Signatures of a retired key are accepted until its end; then its file is
// replaced by its public half, with which the audit log can always be verified.
func TestRotate_RemovesEndedKeys(t *testing.T) {
	dir, now := t.TempDir(), base()
	s := openAt(t, dir, now)
	m := makeAll(t, s)
	rotate(t, dir, false, now)
	end := now.Add(keyOverlap + retiredKeyLife)
	if _, err := s.Reload(end.Add(-1)); err != nil {
		t.Fatal(err)
	}
	if s.CallerPublicKey(m.caller.kid, end.Add(-1)) == nil {
		t.Error("the caller's key is gone before its end")
	}
	if diff := cmp.Diff([]string{m.keyID + ".key"}, retiredFiles(t, dir)); diff != "" {
		t.Errorf("before its end (-want +got):\n%s", diff)
	}
	if _, err := s.Reload(end); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{m.keyID + ".pub"}, retiredFiles(t, dir)); diff != "" {
		t.Errorf("at its end (-want +got):\n%s", diff)
	}
	wantCounts(t, s, &m, end, "signature")
	wantCounts(t, openAt(t, dir, end), &m, end, "signature")
	list, err := List(dir, end)
	if err != nil || len(list) != 2 || list[1].State != StateOld || !list[1].Created.Equal(base()) {
		t.Errorf("Keys = %v, %v; want the old one last, made at %s", list, err, base())
	}
}

var errCrash = errors.New("the process ended here")

// A rotation that is interrupted after any step leaves a valid keyring, and the
// next rotation succeeds.
func TestRotate_SurvivesInterruption(t *testing.T) {
	for _, revoke := range []bool{false, true} {
		for _, then := range []bool{false, true} {
			for stop, whole := 1, false; !whole; stop++ {
				t.Run(fmt.Sprintf("revoke %v, after step %d, then revoke %v", revoke, stop, then), func(t *testing.T) {
					whole = interrupted(t, revoke, stop, then)
				})
				if stop > 100 {
					t.Fatal("a rotation has no end")
				}
			}
		}
	}
}

// interrupted reports whether the rotation has fewer steps than stop.
func interrupted(t *testing.T, revoke bool, stop int, then bool) (whole bool) {
	dir, now := t.TempDir(), base()
	var all []signedItems
	for range 3 { // the first of them has ended before the next rotation
		all = append(all, makeAll(t, openAt(t, dir, now)))
		rotate(t, dir, false, now)
		now = now.Add(retiredKeyLife)
	}
	all = append(all, makeAll(t, openAt(t, dir, now)))
	steps := 0
	r := newRotation(dir, now)
	r.afterStep = func(string) error {
		if steps++; steps == stop {
			return errCrash
		}
		return nil
	}
	_, err := r.rotate(revoke)
	if whole = err == nil; !whole && !errors.Is(err, errCrash) {
		t.Fatalf("rotation: %v", err)
	}

	s := openAt(t, dir, now)
	for i := range all {
		if !s.Verify("audit-head", all[i].keyID, []byte("head"), all[i].sig) {
			t.Errorf("got the signature of key %d rejected, want it verified", i)
		}
	}
	if !revoke {
		wantCounts(t, s, &all[2], now, everything()...)
		wantCounts(t, s, &all[3], now, everything()...)
	}
	more := makeAll(t, s)
	wantCounts(t, s, &more, now, everything()...)

	rotate(t, dir, then, now)
	s = openAt(t, dir, now)
	for i, m := range append(all, more) {
		if !s.Verify("audit-head", m.keyID, []byte("head"), m.sig) {
			t.Errorf("got the signature of key %d rejected after another rotation", i)
		}
		if then {
			wantCounts(t, s, &m, now, "signature")
		}
	}
	if !then {
		wantCounts(t, s, &more, now, everything()...)
	}
	return whole
}

// Concurrent rotations lose no key.
func TestRotate_ConcurrentRotationsLoseNoKey(t *testing.T) {
	dir, now := t.TempDir(), base()
	first := makeAll(t, openAt(t, dir, now))
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
	there := map[string]bool{}
	for _, k := range list {
		there[k.ID] = true
	}
	for _, id := range slices.Concat(ids, []string{first.keyID}) {
		if !there[id] {
			t.Errorf("key %s is lost", id)
		}
	}
	if len(list) != rotations+1 {
		t.Errorf("%d keys, want %d", len(list), rotations+1)
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
	for name, spoil := range map[string]func(dir, retired string) error{
		"a key that others may read": func(_, retired string) error { return os.Chmod(retired, 0o644) },
		"a directory others may use": func(dir, _ string) error { return os.Chmod(filepath.Join(dir, retiredDir), 0o755) },
		"an empty key":               func(_, retired string) error { return os.Truncate(retired, 0) },
		"a key under the name of another one": func(_, retired string) error {
			return os.Rename(retired, filepath.Join(filepath.Dir(retired), "kid.key"))
		},
		"a link": func(_, retired string) error {
			return errors.Join(os.Rename(retired, retired+".bak"), os.Symlink(retired+".bak", retired))
		},
		"a private half named public": func(_, retired string) error {
			return os.Rename(retired, strings.TrimSuffix(retired, ".key")+".pub")
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openAt(t, dir, base())
			rotate(t, dir, false, base())
			if err := spoil(dir, filepath.Join(dir, retiredDir, s.KeyID()+".key")); err != nil {
				t.Fatal(err)
			}
			_, rotateErr := Rotate(dir, false, base())
			_, openErr := Open(dir)
			_, reloadErr := s.Reload(base())
			for what, err := range map[string]error{
				"Rotate": rotateErr, "Open": openErr, "Check": Check(dir), "Reload": reloadErr,
			} {
				if err == nil || !strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s = %v, want one line that names the file", what, err)
				}
			}
			makeAll(t, s) // works as before
		})
	}
}
