package keyring

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A process that was killed while it created a key may leave a temporary file, which is removed.
// Files of an operator have other names, and are kept.
func TestOpen_RemovesTempFiles(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	want := map[string]bool{File: true}
	for name, kept := range map[string]bool{
		firstKeyTemp + "1.tmp":          false,
		firstKeyTemp + "4294967295.tmp": false,
		keyringTemp + "1.tmp":           false,
		keyringTemp + "12345678901.tmp": true, // longer than any temporary name
		keyringTemp + ".tmp":            true,
		keyringTemp + "2026-11-22.tmp":  true,
		keyringTemp + "1.tmp.bak":       true,
		keyringTemp + "1":               true,
		"my-" + keyringTemp + "1.tmp":   true,
		File + ".bak":                   true,
		File + ".1":                     true,
		File + ".20261122":              true,
		File + ".2026-11-22":            true,
		File + ".old.tmp":               true,
		"caprouter-" + File + "-1.tmp":  true,
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, old, old)); err != nil {
			t.Fatal(err)
		}
		want[name] = kept
	}
	for _, name := range []string{firstKeyTemp + "2.tmp", keyringTemp + "2.tmp"} { // another process may be writing them
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		want[name] = true
	}
	if _, err := Open(dir); err != nil {
		t.Fatal(err)
	}
	for name, kept := range want {
		if _, err := os.Lstat(filepath.Join(dir, name)); (err == nil) != kept {
			t.Errorf("%s: got kept %v, want %v", name, err == nil, kept)
		}
	}
}

// The holder of the keyring lock has exclusive access. Any temporary file is thus from a killed
// process, and may contain the private key of a key that is being revoked.
func TestRotate_RemovesTempFiles(t *testing.T) {
	for _, revoke := range []bool{false, true} {
		t.Run(fmt.Sprint("revoke ", revoke), func(t *testing.T) {
			dir := t.TempDir()
			openAt(t, dir, base())
			rotate(t, dir, false, base())
			secret, err := os.ReadFile(filepath.Join(dir, File))
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range []string{dir, filepath.Join(dir, retiredDir)} {
				if _, err := writeTemp(at, keyringTemp, secret); err != nil {
					t.Fatal(err)
				}
			}
			linked := filepath.Join(dir, firstKeyTemp+"7.tmp") // the key has its final name, so this link is not needed
			if err := os.Link(filepath.Join(dir, File), linked); err != nil {
				t.Fatal(err)
			}
			old, err := writeTemp(dir, firstKeyTemp, secret)
			if err != nil {
				t.Fatal(err)
			}
			if ago := time.Now().Add(-time.Hour); os.Chtimes(old, ago, ago) != nil {
				t.Fatal("got an error of Chtimes, want the time of the file changed")
			}
			starting, err := writeTemp(dir, firstKeyTemp, secret) // of a process that starts without the lock
			if err != nil {
				t.Fatal(err)
			}
			rotate(t, dir, revoke, base().Add(time.Hour))
			var left []string
			for _, at := range []string{dir, filepath.Join(dir, retiredDir)} {
				found, err := filepath.Glob(filepath.Join(at, "*.tmp"))
				if err != nil {
					t.Fatal(err)
				}
				left = append(left, found...)
			}
			if diff := cmp.Diff([]string{starting}, left); diff != "" {
				t.Errorf("temporary files (-want +got):\n%s", diff)
			}
		})
	}
}

// When Reload holds the lock to remove ended keys, it also removes temporary files.
func TestReload_RemovesTempFiles(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir, base())
	rotate(t, dir, false, base())
	temp, err := writeTemp(filepath.Join(dir, retiredDir), keyringTemp, []byte("half a key"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Reload(base().Add(keyOverlap + retiredKeyLife)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(temp); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Lstat of %s = %v, want it removed", temp, err)
	}
}

func TestOpen_RejectsWritableDirectory(t *testing.T) {
	for _, mode := range []os.FileMode{0o775, 0o777, 0o777 | os.ModeSticky} {
		dir := t.TempDir()
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
			t.Errorf("mode %v: Open = %v, want an error with the command that corrects it", mode, err)
		}
	}
}
