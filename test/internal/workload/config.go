package workload

import (
	"fmt"
	"path/filepath"

	"github.com/caprouter/caprouter/test/internal/process"
)

// Config specifies the configuration and the registry of a router.
type Config struct {
	AgentsURL string
	Store     string // keys below store
	Registry  string // more keys at the top of the registry
}

// Write writes configuration and registry into dir, and returns the path of the
// configuration.
func (c Config) Write(dir string) (string, error) {
	return process.WriteConfig(dir, fmt.Sprintf(`listen: 127.0.0.1:0
public_url: %s
data_dir: %s
registry: { file: %s, hot_reload: false }
classifier: { mode: lexical }
limits: { classify: { rps: 0 } }
store: { %s }
`, PublicURL, DataDir(dir), filepath.Join(dir, "capabilities.yaml"), c.Store), registry(c.AgentsURL)+c.Registry)
}

// DataDir returns the data directory of the router whose configuration is in dir.
func DataDir(dir string) string { return filepath.Join(dir, "data") }
