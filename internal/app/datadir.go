package app

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/datadir"
	"github.com/caprouter/caprouter/internal/store"
)

// openSigningKeys opens the signing keys in the data directory. It creates both if they do
// not exist, accessible only by their owner. used reports whether a router has used the
// directory before.
func openSigningKeys(dataDir string) (keys *keyring.Ring, used bool, err error) {
	if info, err := os.Stat(dataDir); err == nil && !info.IsDir() {
		return nil, false, fmt.Errorf("data_dir %s is a file: name a directory with --data-dir", dataDir)
	}
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return nil, false, fmt.Errorf("data_dir %s cannot be made: %w: name another with --data-dir, or make %s writable", dataDir, datadir.WithoutPath(err), filepath.Dir(filepath.Clean(dataDir)))
	}
	if used, err = datadir.Prepare(dataDir, store.EngineVersion); err != nil {
		return nil, false, fmt.Errorf("data_dir: %w", err)
	}
	keys, err = keyring.Open(dataDir)
	return keys, used, err
}
