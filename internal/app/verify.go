package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/store"
)

// VerifyStoreURL verifies the audit log of the store at a URL, which routers may use, with the
// keys and the signed head in the data directory. It writes nothing. The error wraps
// store.ErrNotFound if there is no audit log.
func VerifyStoreURL(ctx context.Context, cfg *config.Config, keys *keyring.Ring, progress func(done, total uint64)) (report *audit.LogReport, err error) {
	// Without the directory, which a router may have locked.
	s, err := store.Open(ctx, store.Config{URL: cfg.Store.URL, Replication: cfg.Store.Replication, Owner: "audit-verify"})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	log, err := s.Log(ctx, store.LogConfig{Name: audit.LogConfig(0).Name, Existing: true})
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	heads, err := s.Bucket(ctx, store.BucketConfig{Name: audit.HeadsConfig().Name, Existing: true})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("open the heads of the audit log: %w", err)
	}
	return audit.VerifyReplicas(ctx, audit.VerifyReplicasConfig{
		Log: log, Heads: heads, HeadFile: filepath.Join(cfg.DataDir, audit.HeadFile),
		Signer: keys, Members: keys.Verify, Progress: progress,
	})
}
