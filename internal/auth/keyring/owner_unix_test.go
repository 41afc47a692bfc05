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

// A rotation by another user is rejected, because the router could not read the new keys, and
// would continue to use keys that the operator revoked.
func TestRotate_RejectsOtherUser(t *testing.T) {
	uid := os.Geteuid()
	for _, revoke := range []bool{false, true} {
		t.Run(fmt.Sprintf("uid of the rotation, revoke %v", revoke), func(t *testing.T) {
			dir := t.TempDir()
			openAt(t, dir, base())
			r := newRotation(dir, base())
			r.uid = uid + 1
			_, err := r.rotate(revoke)
			wantOwnerError(t, dir, uid, err)
		})
		t.Run(fmt.Sprintf("owner of the file, revoke %v", revoke), func(t *testing.T) {
			if uid != 0 {
				t.Skip("only root can change the owner of a file")
			}
			dir := t.TempDir()
			openAt(t, dir, base())
			if err := os.Chown(filepath.Join(dir, File), 65534, -1); err != nil {
				t.Fatal(err)
			}
			_, err := Rotate(dir, revoke, base())
			wantOwnerError(t, dir, 65534, err)
		})
	}
}

// wantOwnerError checks that the error contains the command that works, and that no file was
// changed.
func wantOwnerError(t *testing.T, dir string, owner int, err error) {
	t.Helper()
	path := filepath.Join(dir, File)
	for _, want := range []string{path, fmt.Sprintf("belongs to uid %d", owner), fmt.Sprintf("sudo -u '#%d'", owner)} {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got error %v, want one line with %q", err, want)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("got files %v (%v), want only the key", entries, err)
	}
	content, err := os.ReadFile(path)
	if created := "Created: " + base().Format("2006-01-02T15:04:05Z"); err != nil || !bytes.HasPrefix(content, []byte(created)) {
		t.Errorf("got key file %.60q (%v), want it unchanged", content, err)
	}
}
