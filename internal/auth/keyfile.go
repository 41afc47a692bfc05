package auth

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
)

// KeyFile is the name of the signing key in the data directory: Ed25519,
// PKCS#8, PEM.
const KeyFile = "agent-signing.key"

const (
	pemType     = "PRIVATE KEY"
	maxKeyBytes = 16 << 10
	keyDirMode  = 0o700
)

// OpenSigner returns a Signer with the keys of dir, which is created with a key
// when absent. Processes that start at the same time agree on one key. A key
// file that others may read, or that is not exactly one Ed25519 key, is an error
// that says what to do.
func OpenSigner(dir string) (*Signer, error) {
	return openSigner(dir, time.Now)
}

func openSigner(dir string, now func() time.Time) (*Signer, error) {
	if err := checkDir(dir); err != nil {
		return nil, err
	}
	removeAbandonedTempFiles(dir, time.Now())
	files, err := readKeyFiles(dir, nil)
	if errors.Is(err, fs.ErrNotExist) {
		if err = createKey(filepath.Join(dir, KeyFile), now()); err == nil {
			files, err = readKeyFiles(dir, nil)
		}
	}
	if err != nil {
		return nil, err
	}
	r := &keyStore{dir: dir, now: now, files: files}
	r.setKeys(files.keyring())
	return &Signer{r}, nil
}

// CheckKeyFile says what OpenSigner would complain about, of any key of the
// ring, and creates nothing: a key that is not there yet is no complaint.
func CheckKeyFile(dir string) error {
	if err := checkDir(dir); err != nil {
		return err
	}
	if _, err := readKeyFiles(dir, nil); err != nil && !errors.Is(err, fs.ErrNotExist) {
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

// createKey writes a new key to path, unless some other process is quicker. The
// file appears under its name when it is complete and on disk, never before.
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
	// A link, unlike a rename, fails when the name is taken: the first wins.
	if err := os.Link(temp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("create signing key: %w; where the file system has no hard links, make it yourself: "+
			"openssl genpkey -algorithm ed25519 -out %s && chmod 600 %s", err, path, path)
	}
	return syncDir(dir)
}

// newKeyFile makes a key and the content of its file.
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
	return keyTimes{created: now}.encodePEM(&block), thumbprint(public), nil
}

// writeTemp writes a file for its owner only, under a name of its own in dir, to
// disk. The kind says who removes what a killed process leaves of it, and when.
func writeTemp(dir, kind string, content []byte) (path string, err error) {
	temp, err := os.CreateTemp(dir, kind+"*"+tempSuffix) // O_EXCL, mode 0600
	if err != nil {
		return "", err
	}
	if err := writeAndClose(temp, content); err != nil {
		return "", errors.Join(err, os.Remove(temp.Name()))
	}
	return temp.Name(), nil
}

// replaceFile puts a file under its name, complete and on disk, in place of what
// has the name. It must be called with the lock of the ring held.
func replaceFile(path string, content []byte) error {
	dir := filepath.Dir(path)
	temp, err := writeTemp(dir, keyringTemp, content)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return syncDir(dir)
}

func writeAndClose(f *os.File, content []byte) error {
	_, err := f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

// syncDir makes a new name in dir survive a crash, where the system can.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = d.Sync() // not every file system syncs directories; the file is there
	return d.Close()
}
