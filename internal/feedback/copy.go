package feedback

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"github.com/caprouter/caprouter/internal/contentkey"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/store/storecopy"
)

// ReadFiles returns the feedback in a data directory by the ids of its requests. A router may
// use the directory meanwhile: a temporary copy is read. The keys are those of the contents.
func ReadFiles(ctx context.Context, dataDir string, keys *contentkey.Keyring, logger *slog.Logger) (map[string][]Entry, error) {
	streams := store.BucketStreams(BucketName)
	if _, err := os.Stat(storecopy.StreamDir(dataDir, streams[0])); errors.Is(err, fs.ErrNotExist) {
		return map[string][]Entry{}, nil // of an earlier version
	}
	files, err := storecopy.Open(ctx, dataDir, streams...)
	if err != nil {
		return nil, fmt.Errorf("read feedback: %w", err)
	}
	defer files.Close()
	bucket, err := files.Store.Bucket(ctx, store.BucketConfig{Name: BucketName, Keys: keys})
	if err != nil {
		return nil, fmt.Errorf("read feedback: %w", err)
	}
	all, err := NewStore(bucket, quota.Unlimited(), logger).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read feedback: %w", err)
	}
	return all, nil
}
