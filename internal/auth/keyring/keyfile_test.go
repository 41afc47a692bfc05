package keyring

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func openDir(t testing.TB, dir string) *Ring {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return s
}

func TestOpen_CreatesKeyOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	first := openDir(t, dir)
	path := filepath.Join(dir, File)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode(); got != 0o600 {
		t.Errorf("got mode %v of the key file, want 0600", got)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	second := openDir(t, dir)
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, after) {
		t.Error("got another key file after the second Open, want it unchanged")
	}
	if diff := cmp.Diff(string(first.JWKS()), string(second.JWKS())); diff != "" {
		t.Errorf("key sets of two calls of Open (-first +second):\n%s", diff)
	}
	wantOnlyKeyFile(t, dir)
}

// wantOnlyKeyFile checks that dir contains no file except the key.
func wantOnlyKeyFile(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{File}, names); diff != "" {
		t.Errorf("files in the data directory (-want +got):\n%s", diff)
	}
}

func TestOpen_AcceptsPlainPKCS8Key(t *testing.T) {
	dir := t.TempDir()
	_, key, _ := ed25519.GenerateKey(rand.Reader)
	writeKeyFile(t, dir, encodePKCS8(t, key), 0o400)
	if !strings.Contains(string(openDir(t, dir).JWKS()), encodeBase64(key.Public().(ed25519.PublicKey))) {
		t.Error("got a key set without the key of the file, want it published")
	}
}

func TestOpen_ConcurrentCallsShareKey(t *testing.T) {
	for range 20 {
		dir := t.TempDir()
		var (
			mu   sync.Mutex
			sets = map[string]int{}
			wg   sync.WaitGroup
		)
		for range 8 {
			wg.Go(func() {
				s, err := Open(dir)
				if err != nil {
					t.Errorf("Open: %v", err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				sets[string(s.JWKS())]++
			})
		}
		wg.Wait()
		if len(sets) != 1 {
			t.Fatalf("got %d different keys from concurrent calls, want 1", len(sets))
		}
		wantOnlyKeyFile(t, dir)
	}
}

func TestOpen_ConcurrentProcessesShareKey(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	outputs := make([]string, 4)
	var wg sync.WaitGroup
	for i := range outputs {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), exe)
			cmd.Env = append(os.Environ(), openInEnv+"="+dir)
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("process %d: %v", i, err)
			}
			outputs[i] = string(out)
		})
	}
	wg.Wait()
	for i, got := range outputs {
		if got != outputs[0] || got == "" {
			t.Errorf("process %d: got key set %q, want %q as in process 0", i, got, outputs[0])
		}
	}
	wantOnlyKeyFile(t, dir)
}

func TestOpen_RejectsInvalidKeyFiles(t *testing.T) {
	_, good, _ := ed25519.GenerateKey(rand.Reader)
	goodPEM := encodePKCS8(t, good)
	ec, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	rsaKey, _ := rsa.GenerateKey(rand.Reader, 2048)
	dh, _ := ecdh.X25519().GenerateKey(rand.Reader)
	der, _ := x509.MarshalPKIXPublicKey(good.Public())

	for _, tc := range []struct {
		name    string
		content []byte
		mode    os.FileMode
		want    string // part of the error: the problem and its fix
	}{
		{"group-readable", goodPEM, 0o640, "may be used by others (mode 0640); run: chmod 600"},
		{"world-readable", goodPEM, 0o604, "may be used by others (mode 0604); run: chmod 600"},
		{"group-writable", goodPEM, 0o620, "may be used by others (mode 0620); run: chmod 600"},
		{"empty", nil, 0o600, "is empty; delete it"},
		{"garbage", []byte("not a key\x00\xff"), 0o600, "is not one PEM block"},
		{"public key", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600, "is not one PEM block"},
		{"two keys", append(append([]byte{}, goodPEM...), goodPEM...), 0o600, "is not one PEM block"},
		{"truncated", goodPEM[:len(goodPEM)/2], 0o600, "is not one PEM block"},
		{"PEM around garbage", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("garbage")}), 0o600, "is not a PKCS#8 key; delete it"},
		{"ECDSA key", encodePKCS8(t, ec), 0o600, "is a *ecdsa.PrivateKey, not an Ed25519 key; delete it"},
		{"RSA key", encodePKCS8(t, rsaKey), 0o600, "is a *rsa.PrivateKey, not an Ed25519 key; delete it"},
		{"X25519 key", encodePKCS8(t, dh), 0o600, "not an Ed25519 key; delete it"},
		{"file too long", bytes.Repeat([]byte("x"), 1<<20), 0o600, "is 1048576 bytes long"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			writeKeyFile(t, dir, tc.content, tc.mode)
			wantOpenError(t, dir, tc.want)
			after, err := os.ReadFile(filepath.Join(dir, File))
			if err != nil || !bytes.Equal(after, tc.content) {
				t.Errorf("got content %q (%v) after the rejection, want it unchanged", after, err)
			}
		})
	}
}

func TestOpen_RejectsIrregularFiles(t *testing.T) {
	_, key, _ := ed25519.GenerateKey(rand.Reader)
	for _, tc := range []struct {
		name string
		make func(t *testing.T, path string) error
		want string
	}{
		{"symbolic link to a valid key", func(t *testing.T, path string) error {
			target := t.TempDir()
			writeKeyFile(t, target, encodePKCS8(t, key), 0o600)
			return os.Symlink(filepath.Join(target, File), path)
		}, "is a symbolic link; put the file itself there"},
		{"dangling symbolic link", func(_ *testing.T, path string) error {
			return os.Symlink("nowhere", path)
		}, "is a symbolic link"},
		{"hard link", func(t *testing.T, path string) error {
			writeKeyFile(t, filepath.Dir(path), encodePKCS8(t, key), 0o600)
			return os.Link(path, path+".copy")
		}, "has another name (hard link), by which it can be changed; replace it by a copy: cp -p "},
		{"directory", func(_ *testing.T, path string) error {
			return os.Mkdir(path, 0o700)
		}, "is not a regular file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := tc.make(t, filepath.Join(dir, File)); err != nil {
				t.Fatal(err)
			}
			wantOpenError(t, dir, tc.want)
		})
	}
	t.Run("file instead of the data directory", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		wantOpenError(t, dir, "is not a directory")
	})
}

// wantOpenError opens dir, and expects an error of one line that contains want.
func wantOpenError(t *testing.T, dir, want string) {
	t.Helper()
	s, err := Open(dir)
	if err == nil {
		t.Fatalf("Open = %v, want an error with %q", s, want)
	}
	if got := err.Error(); !strings.Contains(got, want) || strings.Contains(got, "\n") {
		t.Errorf("got error %q, want one line with %q", got, want)
	}
}

func writeKeyFile(t *testing.T, dir string, content []byte, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(dir, File)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // independent of the umask
		t.Fatal(err)
	}
}

func encodePKCS8(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}
