package audit

import (
	"context"
	"fmt"
)

// Copy is a copy of the log of a data directory. It is read while a router may write
// the original, and is not verified.
type Copy struct {
	files *logCopy
	log   *Log
}

// OpenCopy copies the log of a data directory into a temporary one. Close deletes it.
func OpenCopy(ctx context.Context, dataDir string) (*Copy, error) {
	files, err := openCopy(ctx, dataDir)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	l := &Log{cfg: Config{Log: files.log, Writer: DefaultWriter}, subjects: newChainSubjects(DefaultWriter)}
	end, err := l.readTail(ctx)
	if err != nil {
		files.close()
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	l.end.Store(&end)
	return &Copy{files, l}, nil
}

// Read is Log.Read.
func (c *Copy) Read(ctx context.Context, q Query) (Page, error) { return c.log.Read(ctx, q) }

// Close deletes the copy.
func (c *Copy) Close() { c.files.close() }
