//go:build unix

package keyring

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The router could not read keys that another user created, and would continue
// with keys that the operator believes to be revoked.
func TestRotate_RejectsOtherUser(t *testing.T) {
	me := os.Geteuid()
	for _, revoke := range []bool{false, true} {
		t.Run(fmt.Sprintf("mocked, revoke %v", revoke), func(t *testing.T) {
			dir := t.TempDir()
			openAt(t, dir, base())
			r := newRotation(dir, base())
			r.uid = me + 1
			_, err := r.rotate(revoke)
			refusesOwner(t, dir, me, err)
		})
		t.Run(fmt.Sprintf("real, revoke %v", revoke), func(t *testing.T) {
			if me != 0 {
				t.Skip("only root can give a file away")
			}
			dir := t.TempDir()
			openAt(t, dir, base())
			if err := os.Chown(filepath.Join(dir, File), 65534, -1); err != nil {
				t.Fatal(err)
			}
			_, err := Rotate(dir, revoke, base())
			refusesOwner(t, dir, 65534, err)
		})
	}
}

// refusesOwner checks that the error names the fix and that no file was changed.
func refusesOwner(t *testing.T, dir string, owner int, err error) {
	t.Helper()
	path := filepath.Join(dir, File)
	for _, want := range []string{path, fmt.Sprintf("belongs to uid %d", owner), fmt.Sprintf("sudo -u '#%d'", owner)} {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("rotation = %v, want one line with %q", err, want)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("got files %v (%v), want the key only", entries, err)
	}
	content, err := os.ReadFile(path)
	if made := "Created: " + base().Format("2006-01-02T15:04:05Z"); err != nil || !bytes.HasPrefix(content, []byte(made)) {
		t.Errorf("the key was replaced (%v)", err)
	}
}
