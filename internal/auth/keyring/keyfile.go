package keyring

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/caprouter/caprouter/internal/auth/jwk"
	"github.com/caprouter/caprouter/internal/datadir"
)

// File is the name of the signing key in the data directory: Ed25519, PKCS#8,
// PEM.
const File = "agent-signing.key"

const (
	pemType     = "PRIVATE KEY"
	maxKeyBytes = 16 << 10
	keyDirMode  = 0o700
)

// Open returns a ring with the keys of dir. If there is no key, it creates the directory
// and a key; processes that start at the same time agree on one. It returns an error with
// the fix if other users may read a key file, or if the file is not exactly one Ed25519
// key.
func Open(dir string) (*Ring, error) {
	return openRing(dir, time.Now)
}

func openRing(dir string, now func() time.Time) (*Ring, error) {
	if err := datadir.Check(dir); err != nil {
		return nil, err
	}
	removeAbandonedTempFiles(dir, time.Now())
	files, err := readKeyFiles(dir, nil)
	if errors.Is(err, fs.ErrNotExist) {
		if err = createKey(filepath.Join(dir, File), now()); err == nil {
			files, err = readKeyFiles(dir, nil)
		}
	}
	if err != nil {
		return nil, err
	}
	s := &keyStore{dir: dir, now: now, files: files}
	s.setKeys(files.keys())
	return &Ring{s}, nil
}

// Check returns the error that Open would return for any key of the ring, and creates
// nothing. A missing key is not an error.
func Check(dir string) error {
	if err := datadir.Check(dir); err != nil {
		return err
	}
	if _, err := readKeyFiles(dir, nil); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// createKey writes a new key to path unless another process did so first. The file
// gets its name after it is complete and synced.
func createKey(path string, now time.Time) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, keyDirMode); err != nil {
		return fmt.Errorf("create signing key: %w", err)
	}
	content, _, err := newKeyFile(now)
	if err != nil {
		return fmt.Errorf("create signing key: %w", err)
	}
	temp, err := writeTemp(dir, firstKeyTemp, content)
	if err != nil {
		return fmt.Errorf("create signing key: %w", err)
	}
	defer func() { _ = os.Remove(temp) }()
	// Unlike a rename, a link fails if the name exists: the first process wins.
	if err := os.Link(temp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("create signing key: %w; where the file system has no hard links, make it yourself: "+
			"openssl genpkey -algorithm ed25519 -out %s && chmod 600 %s", err, path, path)
	}
	return datadir.SyncDir(dir)
}

// newKeyFile generates a key and the content of its file.
func newKeyFile(now time.Time) (content []byte, id string, err error) {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, "", err
	}
	block := pem.Block{Type: pemType, Bytes: der}
	return keyTimes{created: now}.encodePEM(&block), jwk.Thumbprint(public), nil
}

// writeTemp writes and syncs a temporary file in dir that only its owner can read.
// The kind determines which cleanup removes it if the process is killed.
func writeTemp(dir, kind string, content []byte) (path string, err error) {
	return datadir.WriteTemp(dir, kind+"*"+tempSuffix, content)
}

// replaceFile atomically replaces the file at path, synced to disk. The caller
// holds the lock of the key ring.
func replaceFile(path string, content []byte) error {
	temp, err := writeTemp(filepath.Dir(path), keyringTemp, content)
	if err != nil {
		return err
	}
	return datadir.Rename(temp, path)
}
