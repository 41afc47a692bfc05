package dirlock_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/caprouter/caprouter/internal/store/dirlock"
)

func acquire(t *testing.T, dir string) *dirlock.Lock {
	t.Helper()
	lock, err := dirlock.Acquire(dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(lock.Release)
	return lock
}

func TestAcquire_ReportsHolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "created")
	lock := acquire(t, dir)
	_, err := dirlock.Acquire(dir, "second")
	want := fmt.Sprintf("%s is held by pid %d: stop it, or choose another --data-dir", filepath.Join(dir, "lock"), os.Getpid())
	if !errors.Is(err, dirlock.ErrHeld) || err.Error() != want {
		t.Errorf("second lock: got error %v, want %q", err, want)
	}
	lock.Release()
	acquire(t, dir)
}

func TestAcquire_IgnoresUnlockedFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "lock"), []byte("pid 1 owner other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	acquire(t, dir)
}

func TestLock_StatReturnsLockedFile(t *testing.T) {
	dir := t.TempDir()
	lock := acquire(t, dir)
	locked, err := lock.Stat()
	if err != nil {
		t.Fatal(err)
	}
	for _, replaced := range []bool{false, true} {
		if replaced {
			if err := os.Rename(lock.Path(), lock.Path()+".old"); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(lock.Path(), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		named, err := os.Lstat(filepath.Join(dir, "lock"))
		if err != nil {
			t.Fatal(err)
		}
		if got := os.SameFile(locked, named); got == replaced {
			t.Errorf("file replaced %v: got locked file at the path %v, want %v", replaced, got, !replaced)
		}
	}
}
