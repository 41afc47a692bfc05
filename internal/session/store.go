package session

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Bucket stores sessions. *store.Bucket implements it.
type Bucket interface {
	store.Versioned
	Discard(ctx context.Context, key string) error
	EraseHistory(ctx context.Context, key string) error
}

// Store loads and updates sessions. It is safe for concurrent use.
type Store struct {
	bucket Bucket
	space  *spaceReserver
	logger *slog.Logger
}

// NewStore returns a store of sessions in the bucket, whose age limit is that of
// the sessions. The ledger counts the bytes of sessions and of open clarifications; the
// bucket reports its writes to it.
func NewStore(bucket Bucket, shares *quota.Ledger, logger *slog.Logger) *Store {
	return &Store{bucket: bucket, space: &spaceReserver{bucket, shares, logger}, logger: logger}
}

// Key returns the store key of a session, or "" without a session id. Callers
// choose the ids, so the caller is part of the key.
func Key(caller *contract.Caller, sessionID string) string {
	if sessionID == "" {
		return ""
	}
	return "session." + store.HashKey(caller.KeyParts(sessionID)...)
}

// Load returns the session, which is empty if it is unknown or cannot be read.
func (s *Store) Load(ctx context.Context, key string) Session {
	if key == "" {
		return Session{}
	}
	var loaded Session
	entry, err := s.bucket.Get(ctx, key)
	if err == nil {
		err = strictjson.Unmarshal(entry.Value, &loaded)
	}
	if err != nil {
		if !errors.Is(err, store.ErrNotFound) {
			s.logger.WarnContext(ctx, "cannot read session", "error", err)
		}
		return Session{}
	}
	return loaded
}

// Update replaces the session of the caller by optimistic concurrency: requests of one
// session that end at the same time each add their turn. The function may be called
// more than once. If the share of the caller's tenant is used up, its least
// recently used sessions are removed.
func (s *Store) Update(ctx context.Context, caller *contract.Caller, key string, update func(Session) Session) error {
	owner := quota.OwnerOf(caller)
	s.space.reserve(ctx, owner, key)
	return s.update(ctx, key, func(current Session) Session {
		current = update(current)
		current.Owner = owner
		return current
	})
}

func (s *Store) update(ctx context.Context, key string, update func(Session) Session) error {
	_, err := store.CompareAndSet(ctx, s.bucket, key, func(entry store.Entry) ([]byte, error) {
		var current Session
		if entry.Revision != 0 && strictjson.Unmarshal(entry.Value, &current) != nil {
			current = Session{} // written by another version: begin anew
		}
		return strictjson.Marshal(update(current))
	})
	return err
}

// EraseTurns removes what a session contains of a request, also from its earlier revisions.
// It returns the other requests of the session.
func (s *Store) EraseTurns(ctx context.Context, key, requestID string) (others []string, err error) {
	if key == "" {
		return nil, nil
	}
	_, err = store.CompareAndSet(ctx, s.bucket, key, func(entry store.Entry) ([]byte, error) {
		var current Session
		if entry.Revision == 0 || strictjson.Unmarshal(entry.Value, &current) != nil {
			return nil, store.ErrStop
		}
		current = current.Without(requestID)
		others = others[:0]
		for i := range current.Turns {
			others = append(others, current.Turns[i].RequestID)
		}
		return strictjson.Marshal(current)
	})
	if err != nil {
		return nil, err
	}
	return slices.Compact(others), s.bucket.EraseHistory(ctx, key)
}
