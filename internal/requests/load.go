package requests

import (
	"context"
	"fmt"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// LoadQuota counts the records that were stored before the start.
func (s *Store) LoadQuota(ctx context.Context, b *store.Bucket) error {
	var ended []string
	err := b.Scan(ctx, recordPrefix, func(e store.Entry) error {
		var rec struct {
			Caller contract.Caller `json:"caller"`
			State  State           `json:"state"`
		}
		if strictjson.UnmarshalDeepAllowUnknown(e.Value, &rec) != nil {
			return nil //nolint:nilerr // it belongs to no caller
		}
		s.quota.Load(quota.OwnerOf(&rec.Caller), e.Key, len(e.Value), e.At)
		if rec.State.Terminal() {
			ended = append(ended, e.Key)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("count the stored requests: %w", err)
	}
	// A request that has ended may still be in the index of open ones, until its
	// response is in the audit log.
	ids, err := s.ListOpen(ctx)
	if err != nil {
		return fmt.Errorf("count the stored requests: %w", err)
	}
	open := make(map[string]bool, len(ids))
	for _, id := range ids {
		open[id] = true
	}
	for _, key := range ended {
		if !open[strings.TrimPrefix(key, recordPrefix)] {
			s.quota.Release(key)
		}
	}
	return nil
}
