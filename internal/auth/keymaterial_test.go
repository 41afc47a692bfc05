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
		{"secret", ReadSecretFile, write("a", "s3", 0o600), "s3", ""},
		{"read-only secret", ReadSecretFile, write("b", "s3", 0o400), "s3", ""},
		{"secret with a newline", ReadSecretFile, write("c", "s3\n", 0o600), "s3", ""},
		{"secret with CRLF", ReadSecretFile, write("d", "s3\r\n", 0o600), "s3", ""},
		{"secret that contains spaces and a newline", ReadSecretFile, write("e", " s3 \n\n", 0o600), " s3 \n", ""},
		{"symbolic link to a secret", ReadSecretFile, link, "s", ""},
		{"empty file", ReadSecretFile, write("f", "", 0o600), "", ""},
		{"world-readable secret", ReadSecretFile, write("g", "s", 0o644), "", "run chmod 0600"},
		{"group-readable secret", ReadSecretFile, write("h", "s", 0o640), "", "run chmod 0600"},
		{"world-writable secret", ReadSecretFile, write("i", "s", 0o602), "", "run chmod 0600"},
		{"symbolic link to a world-readable secret", ReadSecretFile, open, "", "mode 0644"},
		{"device", ReadSecretFile, os.DevNull, "", "not a regular file"},
		{"directory", ReadSecretFile, dir, "", "not a regular file"},
		{"missing file", ReadSecretFile, filepath.Join(dir, "nothing"), "", "no such file"},
		{"file too long", ReadSecretFile, write("j", strings.Repeat("x", 20000), 0o600), "", "is 20000 bytes long"},
		{"public key", ReadPublicKeyFile, write("k", "key\n", 0o644), "key\n", ""},
		{"group-writable public key", ReadPublicKeyFile, write("l", "key", 0o664), "key", ""},
		{"world-writable public key", ReadPublicKeyFile, write("m", "key", 0o646), "", "run chmod 0644"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.read(tc.path)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("got error %v, want one with %q", err, tc.err)
			}
			if !bytes.Equal(got, []byte(tc.want)) {
				t.Errorf("got content %q, want %q", got, tc.want)
			}
		})
	}
}
