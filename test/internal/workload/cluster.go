package workload

import (
	"crypto/rand"
	"encoding/base64"
	"os"
	"path/filepath"

	"github.com/caprouter/caprouter/test/internal/process"
)

// ClusterServers is the number of NATS servers in the cluster of replicas.
const ClusterServers = 3

// ClusterStore returns the keys below store of replicas that share the cluster. It
// writes their content key into dir.
func ClusterStore(cluster *process.NATSCluster, dir string) ([]string, error) {
	path := filepath.Join(dir, "shared.key")
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	if err := os.WriteFile(path, []byte(base64.StdEncoding.EncodeToString(key)+"\n"), 0o600); err != nil {
		return nil, err
	}
	return []string{"url: '" + cluster.URL() + "'", "replication: 3", "encryption: { key_file: " + path + " }"}, nil
}
