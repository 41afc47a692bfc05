package mcphost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/internal/contentkey"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/store/storecopy"
)

// StoredNames returns the names of the servers that are registered in a data directory, which a
// router may use meanwhile: a temporary copy is read. No key is needed.
func StoredNames(ctx context.Context, dataDir string) (names []string, err error) {
	err = readStored(ctx, dataDir, nil, func(records *store.Table[registrationRecord]) error {
		keys, err := records.Keys(ctx)
		for _, key := range keys {
			if name, ok := recordName(key); ok {
				names = append(names, name)
			}
		}
		return err
	})
	return names, err
}

// StoredServer is a server that is registered in a data directory.
type StoredServer struct {
	Name    string
	Server  mcpfile.Server // with its credentials; empty if there is a problem
	Problem string         // why it cannot be used; "" = it can
}

// StoredServers is StoredNames with the declarations of the servers. Keys, Guard and
// AllowPlainHTTP of the configuration must be those of the router.
func StoredServers(ctx context.Context, dataDir string, cfg *Config) (list []StoredServer, err error) {
	err = readStored(ctx, dataDir, cfg.Keys, func(records *store.Table[registrationRecord]) error {
		return records.Scan(ctx, func(row store.Row[registrationRecord], err error) error {
			name, ok := recordName(row.Key)
			if !ok {
				return nil
			}
			s := StoredServer{Name: name}
			if err != nil {
				s.Problem = fmt.Sprintf("its registration cannot be read: %v", err)
			} else if s.Server, err = cfg.newServer(row.Value.Registration); err != nil {
				s.Problem = describeRejected(err)
			}
			list = append(list, s)
			return nil
		})
	})
	return list, err
}

// readStored calls read with a copy of the registrations, unless there are none.
func readStored(ctx context.Context, dataDir string, keys *contentkey.Keyring, read func(*store.Table[registrationRecord]) error) error {
	streams := store.BucketStreams(BucketName)
	if _, err := os.Stat(storecopy.StreamDir(dataDir, streams[0])); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	files, err := storecopy.Open(ctx, dataDir, streams...)
	if err != nil {
		return fmt.Errorf("read the registered MCP servers: %w", err)
	}
	defer files.Close()
	bucket, err := files.Store.Bucket(ctx, store.BucketConfig{Name: BucketName})
	if err == nil {
		err = read(newRecords(bucket, keys))
	}
	if err != nil {
		return fmt.Errorf("read the registered MCP servers: %w", err)
	}
	return nil
}
