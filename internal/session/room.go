package session

import (
	"context"
	"log/slog"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// room makes room for sessions and clarifications. A session only makes the next
// classification more precise, so no request is rejected because of it: the values that
// were not used for the longest time are removed, as if they had expired.
type room struct {
	bucket interface {
		Discard(ctx context.Context, key string) error
	}
	shares *quota.Ledger
	logger *slog.Logger
}

// fullShare is the part of the bucket above which values of the heaviest owner are
// removed.
const fullShare = 0.9

// make counts a key that is about to be written, and removes others if the share of
// its owner is used up, or the bucket nearly full.
func (r *room) make(ctx context.Context, owner quota.Owner, key string) {
	r.shares.Count(owner, key)
	remove := func(key string) error { return r.bucket.Discard(ctx, key) }
	err := r.shares.Trim(owner, key, remove)
	if err == nil {
		err = r.shares.Free(r.shares.Surplus(fullShare), remove)
	}
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
