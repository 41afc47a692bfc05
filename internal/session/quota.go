package session

import (
	"context"
	"log/slog"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// spaceReserver reserves space for sessions and clarifications. A session only makes the
// next classification more precise, so no request is rejected because of it: the least
// recently used values are removed, as if they had expired.
type spaceReserver struct {
	bucket interface {
		Discard(ctx context.Context, key string) error
	}
	shares *quota.Ledger
	logger *slog.Logger
}

// reserve counts a key that is about to be written, and removes others if the share of
// its owner is used up, or the bucket nearly full. An error is logged.
func (r *spaceReserver) reserve(ctx context.Context, owner quota.Owner, key string) {
	r.shares.Count(owner, key)
	err := r.shares.MakeRoom(owner, key, func(key string) error { return r.bucket.Discard(ctx, key) })
	if err != nil {
		r.logger.WarnContext(ctx, "cannot make room for sessions", "error", err)
	}
}

// LoadQuota counts the sessions and clarifications that were stored before the start.
func LoadQuota(ctx context.Context, b *store.Bucket, shares *quota.Ledger) error {
	return b.Scan(ctx, "", func(e store.Entry) error {
		var rec struct {
			Owner   quota.Owner `json:"owner"`  // of a session
			Tenant  string      `json:"tenant"` // of a clarification
			Subject string      `json:"subject"`
			Issuer  string      `json:"issuer"`
		}
		if strictjson.UnmarshalAllowUnknown(e.Value, &rec) != nil {
			return nil //nolint:nilerr // it belongs to no caller
		}
		if rec.Owner == (quota.Owner{}) {
			rec.Owner = quota.OwnerOf(&contract.Caller{Tenant: rec.Tenant, Subject: rec.Subject, Issuer: rec.Issuer})
		}
		shares.Load(rec.Owner, e.Key, len(e.Value), e.At)
		return nil
	})
}
