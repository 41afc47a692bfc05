package contentkey

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/caprouter/caprouter/internal/datadir"
)

// FileName is the name of the key file that a data directory has by default.
const FileName = "content.key"

const maxFileBytes = 64 << 10

// OpenOrCreate returns the keys of the file in a data directory, and creates it with one
// key if there is none. The caller holds the lock of the directory.
func OpenOrCreate(dataDir string) (*Keyring, error) {
	path := filepath.Join(dataDir, FileName)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if err := createFile(path); err != nil {
			return nil, fmt.Errorf("create content keys: %w", err)
		}
	}
	return openFile(path, datadir.OpenFile)
}

// OpenExisting returns the keys of the file in a data directory. A directory of an earlier
// version has none.
func OpenExisting(dataDir string) (*Keyring, error) {
	path := filepath.Join(dataDir, FileName)
	ring, err := openFile(path, datadir.OpenFile)
	if errors.Is(err, fs.ErrNotExist) {
		return &Keyring{source: path}, nil
	}
	return ring, err
}

// OpenFile returns the keys of a file, which other users must not be able to read.
func OpenFile(path string) (*Keyring, error) {
	return openFile(path, func(path string, flag int) (*os.File, error) { return os.OpenFile(path, flag, 0) })
}

func openFile(path string, open func(path string, flag int) (*os.File, error)) (*Keyring, error) {
	f, err := open(path, os.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("content keys: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("content keys: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("content keys: %s is not a regular file", path)
	case info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows":
		return nil, fmt.Errorf("content keys: %s may be read by others (mode %04o): run: chmod 600 %s", path, info.Mode().Perm(), path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes))
	if err != nil {
		return nil, fmt.Errorf("content keys: %w", err)
	}
	return Parse(string(text), path)
}

// createFile writes a new key. The file gets its name after it is complete and synced,
// because contents are encrypted with it from then on.
func createFile(path string) error {
	secret := make([]byte, keySize)
	rand.Read(secret)
	return datadir.WriteFile(path, path+".tmp", fmt.Appendf(nil, "# Keys of the stored contents: the first one encrypts, all decrypt. Keep a copy apart from the\n"+
		"# backup of this directory: without its key a content cannot be read.\n%s\n", base64.StdEncoding.EncodeToString(secret)))
}
