package auth

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLeftoversOfKilledStartsAreRemoved: a process that was killed while it made
// the key may leave the key itself under a second name.
func TestLeftoversOfKilledStartsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenSigner(dir); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, KeyFile)
	old := time.Now().Add(-time.Hour)
	if err := os.Link(key, key+".1"); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(key+".1", old, old); err != nil { // the key's too: it is one file
		t.Fatal(err)
	}
	for _, name := range []string{KeyFile + ".young", "other.file"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := OpenSigner(dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{KeyFile: true, KeyFile + ".1": false, KeyFile + ".young": true, "other.file": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", name, err == nil, want)
		}
	}
}

func TestDirectoryEverybodyCanWriteTo(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenSigner(dir); err == nil || !strings.Contains(err.Error(), "chmod o-w") {
		t.Errorf("got %v, want a refusal with the fix", err)
	}
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenSigner(dir); err != nil {
		t.Errorf("got %v for a sticky directory, in which nobody can replace the key", err)
	}
}
