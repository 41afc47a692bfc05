package auth

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadKeyFile_ChecksFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // independent of the umask
			t.Fatal(err)
		}
		return path
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(write("target", "s", 0o600), link); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(dir, "openlink")
	if err := os.Symlink(write("opentarget", "s", 0o644), open); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		read func(string) ([]byte, error)
		path string
		want string
		err  string
	}{
		{"a secret", ReadSecretFile, write("a", "s3", 0o600), "s3", ""},
		{"a read-only secret", ReadSecretFile, write("b", "s3", 0o400), "s3", ""},
		{"a secret with a line end", ReadSecretFile, write("c", "s3\n", 0o600), "s3", ""},
		{"a secret with a line end of Windows", ReadSecretFile, write("d", "s3\r\n", 0o600), "s3", ""},
		{"a secret with spaces, which are its own", ReadSecretFile, write("e", " s3 \n\n", 0o600), " s3 \n", ""},
		{"a mounted secret", ReadSecretFile, link, "s", ""},
		{"an empty file", ReadSecretFile, write("f", "", 0o600), "", ""},
		{"a world-readable secret", ReadSecretFile, write("g", "s", 0o644), "", "run chmod 0600"},
		{"a secret the group reads", ReadSecretFile, write("h", "s", 0o640), "", "run chmod 0600"},
		{"a world-writable secret", ReadSecretFile, write("i", "s", 0o602), "", "run chmod 0600"},
		{"a mounted world-readable secret", ReadSecretFile, open, "", "mode 0644"},
		{"a device", ReadSecretFile, os.DevNull, "", "not a regular file"},
		{"a directory", ReadSecretFile, dir, "", "not a regular file"},
		{"nothing", ReadSecretFile, filepath.Join(dir, "nothing"), "", "no such file"},
		{"a long file", ReadSecretFile, write("j", strings.Repeat("x", 20000), 0o600), "", "is 20000 bytes long"},
		{"a public key", ReadPublicKeyFile, write("k", "key\n", 0o644), "key\n", ""},
		{"a public key the group writes", ReadPublicKeyFile, write("l", "key", 0o664), "key", ""},
		{"a world-writable public key", ReadPublicKeyFile, write("m", "key", 0o646), "", "run chmod 0644"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.read(tc.path)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("error %v, want one with %q", err, tc.err)
			}
			if !bytes.Equal(got, []byte(tc.want)) {
				t.Errorf("content %q, want %q", got, tc.want)
			}
		})
	}
}
