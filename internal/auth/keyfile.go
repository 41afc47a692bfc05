package auth

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// KeyFile is the name of the signing key in the data directory: Ed25519,
// PKCS#8, PEM.
const KeyFile = "agent-signing.key"

const (
	pemType      = "PRIVATE KEY"
	maxKeyBytes  = 16 << 10
	keyDirMode   = 0o700
	recreateHint = "delete it and a new key is created at the next start"
)

// OpenSigner returns a Signer with the key of dir, which is created with the
// key when absent. Processes that start at the same time agree on one key. A
// key file that others may read, or that is not exactly one Ed25519 key, is an
// error that says what to do.
func OpenSigner(dir string) (*Signer, error) {
	if err := checkDir(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, KeyFile)
	removeLeftovers(dir, time.Now())
	key, err := readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = createKey(path); err == nil {
			key, err = readKey(path)
		}
	}
	if err != nil {
		return nil, err
	}
	return signerOf(key)
}

// CheckKeyFile says what OpenSigner would complain about, and creates nothing: a
// key that is not there yet is no complaint.
func CheckKeyFile(dir string) error {
	if err := checkDir(dir); err != nil {
		return err
	}
	if _, err := readKey(filepath.Join(dir, KeyFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// checkDir refuses a directory in which anybody could replace the key.
func checkDir(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return nil //nolint:nilerr // made with the key, or named by what fails next
	}
	if mode := info.Mode(); mode.IsDir() && mode.Perm()&0o002 != 0 && mode&fs.ModeSticky == 0 {
		return fmt.Errorf("signing key directory %s can be written to by everybody (mode %04o): chmod o-w %s", dir, mode.Perm(), dir)
	}
	return nil
}

// leftoverAge is how old a file of createKey must be to belong to nobody any
// more: a living process needs milliseconds.
const leftoverAge = time.Minute

// removeLeftovers removes what processes left that were killed while they made
// a key. Such a file may be the key itself under a second name, and must not
// outlive it.
func removeLeftovers(dir string, now time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // it may not be there yet
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), KeyFile+".") || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > leftoverAge {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// createKey writes a new key to path, unless some other process is quicker. The
// file appears under its name when it is complete and on disk, never before.
func createKey(path string) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, keyDirMode); err != nil {
		return fmt.Errorf("create signing key: %w", err)
	}
	content, err := newKeyPEM()
	if err != nil {
		return fmt.Errorf("create signing key: %w", err)
	}
	tmp, err := os.CreateTemp(dir, KeyFile+".*") // O_EXCL, mode 0600
	if err != nil {
		return fmt.Errorf("create signing key: %w", err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	if err := writeAndClose(tmp, content); err != nil {
		return fmt.Errorf("create signing key: %w", err)
	}
	// A link, unlike a rename, fails when the name is taken: the first wins.
	if err := os.Link(tmp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("create signing key: %w; where the file system has no hard links, make it yourself: "+
			"openssl genpkey -algorithm ed25519 -out %s && chmod 600 %s", err, path, path)
	}
	return syncDir(dir)
}

func newKeyPEM() ([]byte, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}), nil
}

func writeAndClose(f *os.File, content []byte) error {
	_, err := f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

// syncDir makes a new name in dir survive a crash, where the system can.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("create signing key: %w", err)
	}
	_ = d.Sync() // not every file system syncs directories; the key is there
	return d.Close()
}

// readKey reads the key at path; fs.ErrNotExist when there is no file.
func readKey(path string) (ed25519.PrivateKey, error) {
	content, err := readSecret(path)
	if err != nil {
		return nil, err
	}
	if len(content) == 0 {
		return nil, fmt.Errorf("signing key %s is empty; %s", path, recreateHint)
	}
	block, rest := pem.Decode(content)
	if block == nil || block.Type != pemType || strings.TrimSpace(string(rest)) != "" {
		return nil, fmt.Errorf("signing key %s is not one PEM block of type %q; %s", path, pemType, recreateHint)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("signing key %s is not a PKCS#8 key; %s", path, recreateHint)
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("signing key %s is a %T, not an Ed25519 key; %s", path, parsed, recreateHint)
	}
	return key, nil
}

// readSecret reads a small regular file that only its owner may touch.
func readSecret(path string) ([]byte, error) {
	named, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	switch mode := named.Mode(); {
	case mode&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("signing key %s is a symbolic link; put the key file itself there", path)
	case !mode.IsRegular():
		return nil, fmt.Errorf("signing key %s is not a regular file; remove it and a new key is created at the next start", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	defer func() { _ = f.Close() }()
	// What counts is what was opened: the name may mean another file by now.
	opened, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("signing key: %w", err)
	case !os.SameFile(named, opened):
		return nil, fmt.Errorf("signing key %s was replaced while it was read; start again", path)
	case opened.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows": // which has no such bits
		return nil, fmt.Errorf("signing key %s may be used by others (mode %04o); run: chmod 600 %s", path, opened.Mode().Perm(), path)
	case opened.Size() > maxKeyBytes:
		return nil, fmt.Errorf("signing key %s is %d bytes long, more than any key; %s", path, opened.Size(), recreateHint)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxKeyBytes))
	if err != nil {
		return nil, fmt.Errorf("read signing key %s: %w", path, err)
	}
	return content, nil
}
