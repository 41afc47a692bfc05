package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Releases before replicas owned a store at a URL alone: the process that had created
// the key "owner" in this bucket, and renewed it. The bucket's MaxAge of 10 s ends the
// lease of a process that was killed.
const (
	legacyLeaseBucket = "CAPROUTER_OWNER"
	legacyLeaseKey    = "owner"
)

// checkLegacyOwner returns ErrLocked if a process of such a release uses the store: it
// would execute the requests of the replicas a second time.
func checkLegacyOwner(ctx context.Context, s *Store) error {
	b := newBucket(s, legacyLeaseBucket)
	err := s.retry(ctx, "check for an owner", func(ctx context.Context) error {
		_, err := s.engine.js.Stream(ctx, b.streamName)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return ErrNotFound
		}
		return err
	})
	if err == nil {
		var owner Entry
		if owner, err = b.Get(ctx, legacyLeaseKey); err == nil {
			return fmt.Errorf("%w: an earlier release of caprouter, %s, uses %s alone: stop it first; if it was killed, start again in 10 s",
				ErrLocked, owner.Value, redactURL(s.cfg.URL))
		}
	}
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
