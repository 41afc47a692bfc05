package keyring

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/testkit"
)

func TestReload_FindsRotatedKey(t *testing.T) {
	dir, now := t.TempDir(), base()
	s := openAt(t, dir, now)
	m := signAll(t, s)
	reload := func(want bool) {
		t.Helper()
		if changed, err := s.Reload(now); err != nil || changed != want {
			t.Errorf("Reload = %v, %v; want %v", changed, err, want)
		}
	}
	before := s.store.state.Load()
	reload(false)
	if s.store.state.Load() != before {
		t.Error("got another state without a change of the files, want the same")
	}
	rotate(t, dir, false, now)
	reload(true)
	wantAccepted(t, s, &m, now, allKinds()...)
	reload(false)
	if n := len(s.Keys(now)); n != 2 {
		t.Errorf("got %d keys, want 2", n)
	}
	rotate(t, dir, true, now)
	reload(true)
	wantAccepted(t, s, &m, now, "signature")
	reload(false)
}

// Files that did not change are not read again.
func TestReload_ReadsChangedFilesOnly(t *testing.T) {
	dir, now := t.TempDir(), base()
	s := openAt(t, dir, now)
	for range 3 {
		rotate(t, dir, false, now)
	}
	if _, err := s.Reload(now); err != nil {
		t.Fatal(err)
	}
	before := s.store.files
	rotate(t, dir, false, now)
	if _, err := s.Reload(now); err != nil {
		t.Fatal(err)
	}
	read := 0
	for name, f := range s.store.files {
		if before[name] != f {
			read++
		}
	}
	if read != 2 {
		t.Errorf("got %d files read, want 2: the new and the retired key", read)
	}
}

func TestReload_KeepsKeysOnError(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"gone":    os.Remove,
		"empty":   func(path string) error { return os.Truncate(path, 0) },
		"exposed": func(path string) error { return os.Chmod(path, 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, now := t.TempDir(), base()
			s := openAt(t, dir, now)
			m := signAll(t, s)
			before := s.store.state.Load()
			if err := damage(filepath.Join(dir, File)); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if changed, err := s.Reload(now); err == nil || changed {
					t.Errorf("Reload = %v, %v; want an error", changed, err)
				}
			}
			if s.store.state.Load() != before {
				t.Error("got another state after an error, want the same")
			}
			wantAccepted(t, s, &m, now, allKinds()...)
		})
	}
}

func TestReload_InMemoryChangesNothing(t *testing.T) {
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := s.Reload(time.Now()); changed || err != nil {
		t.Errorf("Reload = %v, %v; want false, nil", changed, err)
	}
}

// A key file that another program created contains no time of creation. Then the modification
// time of the file is used.
func TestKeyFile_WithoutTimesUsesModTime(t *testing.T) {
	dir := t.TempDir()
	m := signAll(t, openAt(t, dir, base()))
	path := filepath.Join(dir, File)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	if !strings.HasPrefix(text, "Created: 2026-03-01T12:00:00Z\n-----BEGIN PRIVATE KEY-----\n") {
		t.Errorf("got key file %q, want the time before the key", text[:60])
	}
	_, bare, _ := strings.Cut(text, "\n")
	at := base().Add(-time.Hour)
	for _, tc := range []struct {
		name, text string
		created    time.Time
	}{
		{"no times", bare, at},
		{"other text before the key", "a key\n" + bare, at},
		{"CRLF", "Created: 2026-03-01T12:00:00Z\r\n" + bare, base()},
		{"time in another zone", "Created: 2026-03-01T13:00:00.5+01:00\n" + bare, base().Add(time.Second / 2)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := errors.Join(os.WriteFile(path, []byte(tc.text), 0o600), os.Chtimes(path, at, at)); err != nil {
				t.Fatal(err)
			}
			got, err := List(dir, base())
			if err != nil {
				t.Fatal(err)
			}
			want := []Info{{ID: m.keyID, ES256ID: m.es256.kid, State: StateSigning, Created: tc.created}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("invalid time", func(t *testing.T) {
		if err := os.WriteFile(path, []byte("Created: yesterday\n"+bare), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := List(dir, base()); err == nil || !strings.Contains(err.Error(), `"Created: yesterday" is not a time`) {
			t.Errorf("List = %v, want an error with the line", err)
		}
	})
}

// Each rotation syncs to disk several times.
var rotationsFlag = flag.Int("rotations", 60, "number of rotations in TestRotate_UnderLoad")

// While the key is rotated every hour, concurrent signers and verifiers get no error, and all
// signatures are accepted.
func TestRotate_UnderLoad(t *testing.T) {
	const workers = 8
	rotations := *rotationsFlag
	dir := t.TempDir()
	var clock atomic.Int64
	clock.Store(base().Unix())
	verifier := openAt(t, dir, base())
	var wg sync.WaitGroup
	done := make(chan struct{})
	signedAll := make([]chan struct{}, workers)
	for i := range signedAll {
		signedAll[i] = make(chan struct{}, 1)
		wg.Go(func() { signAndVerify(t, dir, &clock, verifier, signedAll[i], done) })
	}
	rotation := newRotation(dir, base())
	for range rotations {
		rotation.now = time.Unix(clock.Add(3600), 0)
		if _, err := rotation.rotate(false); err != nil {
			t.Errorf("rotation: %v", err)
		}
		for _, c := range signedAll {
			testkit.WaitClosed(t, c) // a worker closes its channel if it cannot start
		}
	}
	close(done)
	wg.Wait()
	list, err := List(dir, rotation.now)
	if err != nil || len(list) != rotations+1 {
		t.Errorf("got %d keys after %d rotations (%v), want %d", len(list), rotations, err, rotations+1)
	}
}

// signAndVerify signs with its own Ring and verifies with the shared one until done is
// closed.
func signAndVerify(t *testing.T, dir string, clock *atomic.Int64, verifier *Ring, signedAll chan<- struct{}, done <-chan struct{}) {
	now := time.Unix(clock.Load(), 0)
	signer, err := openRing(dir, func() time.Time { return now })
	if err != nil {
		t.Errorf("Open: %v", err)
		close(signedAll)
		return
	}
	for last := signAll(t, signer); ; {
		now = time.Unix(clock.Load(), 0)
		next := signAll(t, signer)
		for _, s := range []*Ring{verifier, signer} {
			if _, err := s.Reload(now); err != nil {
				t.Errorf("Reload: %v", err)
			}
		}
		for _, m := range []signedItems{last, next} {
			if got := m.accepted(t, verifier, now); len(got) != len(allKinds()) {
				t.Errorf("signed at %s: got %v accepted at %s, want %v", m.at, got, now, allKinds())
			}
		}
		last = next
		select {
		case signedAll <- struct{}{}:
		default: // the previous signal was not received yet
		}
		select {
		case <-done:
			return
		default:
		}
	}
}
