package keyring

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A revoked key that is restored from a backup is accepted again, as after an interrupted
// revocation, and RevocationFailed reports it.
func TestRevokedKey_IsAcceptedAfterRestoredBackup(t *testing.T) {
	dir, now := t.TempDir(), base()
	path := filepath.Join(dir, File)
	first := openAt(t, dir, now)
	backup, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	revoked := now.Add(time.Hour)
	rotate(t, dir, true, revoked)
	if err := os.WriteFile(path, backup, 0o600); err != nil {
		t.Fatal(err)
	}
	now = revoked.Add(time.Hour)
	restored := currentInfo(first)
	restored.Revoked = revoked
	s := openAt(t, dir, now)
	wantKeys(t, dir, s, now, restored)
	if !restored.RevocationFailed() {
		t.Error("RevocationFailed = false for a revoked key that signs, want true")
	}
	m := signAll(t, s)
	wantAccepted(t, s, &m, now, allKinds()...)

	// A rotation without revocation keeps the revocation time.
	done := rotate(t, dir, false, now)
	old := restored
	old.Until = now.Add(keyOverlap + retiredKeyLife)
	wantKeys(t, dir, openAt(t, dir, now), now, done.New, old)
	later := now.Add(keyOverlap)
	old.State, done.New.State, done.New.SignsFrom = StateRetired, StateSigning, time.Time{}
	wantKeys(t, dir, openAt(t, dir, later), later, done.New, old)
	if !old.RevocationFailed() {
		t.Error("RevocationFailed = false for a revoked key whose tokens are accepted, want true")
	}

	done = rotate(t, dir, true, later)
	s = openAt(t, dir, later)
	wantAccepted(t, s, &m, later, "signature")
	for _, k := range s.Keys(later) {
		if want := k.ID != done.New.ID; k.Revoked.IsZero() == want || k.RevocationFailed() {
			t.Errorf("got key %+v, want all except the new one revoked", k)
		}
	}
}

func TestRevokedKey_AfterInterruptedRevocation(t *testing.T) {
	dir, now := t.TempDir(), base().Add(time.Hour)
	openAt(t, dir, base())
	r := newRotation(dir, now)
	r.afterStep = func(string) error { return errCrash } // after the first public key is written
	if _, err := r.rotate(true); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	s := openAt(t, dir, now)
	want := currentInfo(s)
	want.Revoked = now
	wantKeys(t, dir, s, now, want)
}

// The line in the key file marks the key as revoked, also if the file of its public key is
// missing.
func TestRevokedKey_IsMarkedInItsFile(t *testing.T) {
	dir, now := t.TempDir(), base().Add(time.Hour)
	openAt(t, dir, base())
	path := filepath.Join(dir, File)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	line := []byte("Revoked: " + now.Format(time.RFC3339) + "\n")
	if err := os.WriteFile(path, append(line, content...), 0o600); err != nil {
		t.Fatal(err)
	}
	s := openAt(t, dir, now)
	want := currentInfo(s)
	want.Revoked = now
	wantKeys(t, dir, s, now, want)
}

// currentInfo describes the current key of a ring that was created at base.
func currentInfo(s *Ring) Info {
	key := s.currentKey()
	return Info{ID: key.id, ES256ID: key.private.ES256.ID, State: StateSigning, Created: base()}
}

func wantKeys(t *testing.T, dir string, s *Ring, now time.Time, want ...Info) {
	t.Helper()
	list, err := List(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("keys of the directory (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, s.Keys(now)); diff != "" {
		t.Errorf("keys of the ring (-want +got):\n%s", diff)
	}
}
