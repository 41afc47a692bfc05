package audit

import (
	"context"
	"fmt"

	"github.com/caprouter/caprouter/internal/contentkey"
	"github.com/caprouter/caprouter/internal/datadir"
	"github.com/caprouter/caprouter/internal/store"
)

// Copy is a copy of the log of a data directory. It is read while a router may write
// the original, and is not verified.
type Copy struct {
	files *logCopy
	log   *Log
}

// OpenCopy copies the log of a data directory into a temporary one. Close deletes it. The
// keys are those of its contents.
func OpenCopy(ctx context.Context, dataDir string, keys *contentkey.Keyring) (*Copy, error) {
	writer, err := datadir.ReadReplica(dataDir)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	files, err := openCopy(ctx, dataDir)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	l := &Log{storedChain: newStoredChain(files.log, keys, writer), usage: newUsageIndex()}
	end, _, err := l.readTail(ctx)
	if err != nil {
		files.Close()
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	l.end.Store(&end)
	return &Copy{files, l}, nil
}

// Read is Log.Read.
func (c *Copy) Read(ctx context.Context, q Query) (Page, error) { return c.log.Read(ctx, q) }

// List is Log.List.
func (c *Copy) List(ctx context.Context, q ListQuery) (ListPage, error) { return c.log.List(ctx, q) }

// Walk calls fn for every record, in the order of the chain and without contents.
func (c *Copy) Walk(ctx context.Context, fn func(*Record)) error {
	return c.log.walkBatches(ctx, store.ReadFrom{}, func(*batch) bool { return true }, func(_ uint64, b *batch) error {
		for i := range b.entries {
			rec, err := b.decodeRecord(i)
			if err != nil {
				return err
			}
			fn(rec)
		}
		return nil
	})
}

// Close deletes the copy.
func (c *Copy) Close() { c.files.Close() }
