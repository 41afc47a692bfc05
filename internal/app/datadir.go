package app

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/caprouter/caprouter/internal/auth"
)

// openSigner opens the signing key in the data directory. It creates both if they do
// not exist, accessible only by their owner.
func openSigner(dataDir string) (*auth.Signer, error) {
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return nil, fmt.Errorf("data_dir %s cannot be made: %w: name another with --data-dir, or make %s writable", dataDir, withoutPath(err), filepath.Dir(filepath.Clean(dataDir)))
	}
	return auth.OpenSigner(dataDir)
}
