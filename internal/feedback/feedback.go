// Package feedback stores the verdicts of callers and operators on the routing of requests:
// whether a request went to the right agents. Each request has one value with the verdict of
// each principal, so that a second verdict of a principal replaces the first. The audit log
// keeps every verdict as a fact; this package keeps what readers need, and the comments, which
// are erased with the request.
//
//	verdicts := feedback.NewStore(bucket, shares, logger)
//	replaced, err := verdicts.Put(ctx, requestID, owner, feedback.Entry{Feedback: f, Issuer: caller.Issuer})
package feedback

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Bucket stores feedback by the id of the request. *store.Bucket implements it.
type Bucket interface {
	store.Versioned
	Delete(ctx context.Context, key string) error
	Discard(ctx context.Context, key string) error
	Scan(ctx context.Context, prefix string, fn func(store.Entry) error) error
}

// BucketName is the name of the bucket in the store.
const BucketName = "FEEDBACK"

// Entry is the verdict of one principal.
type Entry struct {
	Feedback contract.Feedback `json:"feedback"`
	Issuer   string            `json:"issuer,omitempty"` // of the subject
}

// Author returns the principal, whose scopes are not stored.
func (e *Entry) Author() *contract.Caller {
	return &contract.Caller{Tenant: e.Feedback.Tenant, Subject: e.Feedback.Subject, Issuer: e.Issuer}
}

// record is the stored value of one request.
type record struct {
	Owner   quota.Owner `json:"owner"` // whose share of the store it uses
	Entries []Entry     `json:"entries"`
}

// maxAuthors bounds the principals with a verdict on one request: its caller, and operators.
const maxAuthors = 20

// Store is safe for concurrent use.
type Store struct {
	bucket Bucket
	shares *quota.Ledger
	logger *slog.Logger
}

// NewStore returns a store of feedback in the bucket, which reports its writes to the ledger.
func NewStore(bucket Bucket, shares *quota.Ledger, logger *slog.Logger) *Store {
	return &Store{bucket: bucket, shares: shares, logger: logger}
}

// Of returns the feedback on a request, in the order in which its principals gave theirs first.
func (s *Store) Of(ctx context.Context, requestID string) ([]Entry, error) {
	entry, err := s.bucket.Get(ctx, requestID)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rec, err := decodeRecord(entry)
	return rec.Entries, err
}

// All returns the feedback on all requests by their ids. A value that is damaged is logged
// and left out.
func (s *Store) All(ctx context.Context) (map[string][]Entry, error) {
	all := map[string][]Entry{}
	err := s.bucket.Scan(ctx, "", func(entry store.Entry) error {
		rec, err := decodeRecord(entry)
		if err != nil {
			s.logger.ErrorContext(ctx, "feedback is damaged", "error", err)
			return nil
		}
		all[entry.Key] = rec.Entries
		return nil
	})
	return all, err
}

// Put stores the verdict of a principal instead of its earlier one, which it returns; nil if
// there was none. Of verdicts that are stored at the same time, each replaces the one before.
// The caller of the request owns the value. If the share of the owner's tenant is used up, its
// oldest values are removed. The error is conflict if too many others have a verdict on the
// request.
func (s *Store) Put(ctx context.Context, requestID string, owner *contract.Caller, e Entry) (replaced *contract.Feedback, err error) {
	payer := quota.OwnerOf(owner)
	s.shares.Count(payer, requestID)
	err = s.shares.MakeRoom(payer, requestID, func(key string) error { return s.bucket.Discard(ctx, key) })
	if err != nil {
		s.logger.WarnContext(ctx, "cannot make room for feedback", "error", err)
	}
	author := e.Author()
	_, err = store.CompareAndSet(ctx, s.bucket, requestID, func(entry store.Entry) ([]byte, error) {
		rec := record{}
		replaced = nil // by an attempt that lost a race
		if entry.Revision != 0 {
			var err error
			if rec, err = decodeRecord(entry); err != nil {
				return nil, err
			}
		}
		at := slices.IndexFunc(rec.Entries, func(known Entry) bool { return known.Author().SamePrincipal(author) })
		switch {
		case at >= 0:
			earlier := rec.Entries[at].Feedback
			replaced, rec.Entries[at] = &earlier, e
		case len(rec.Entries) >= maxAuthors:
			return nil, &contract.Error{Code: contract.CodeConflict, Message: fmt.Sprintf("the request has feedback of %d others already", maxAuthors)}
		default:
			rec.Entries = append(rec.Entries, e)
		}
		rec.Owner = payer
		return strictjson.Marshal(rec)
	})
	return replaced, err
}

// Erase removes the feedback on a request, and makes it unreadable in the files of the store.
func (s *Store) Erase(ctx context.Context, requestID string) error {
	return s.bucket.Delete(ctx, requestID)
}

// LoadQuota counts the values that were stored before the start.
func (s *Store) LoadQuota(ctx context.Context) error {
	return s.bucket.Scan(ctx, "", func(entry store.Entry) error {
		if rec, err := decodeRecord(entry); err == nil {
			s.shares.Load(rec.Owner, entry.Key, len(entry.Value), entry.At)
		}
		return nil
	})
}

func decodeRecord(entry store.Entry) (rec record, err error) {
	if err := strictjson.Unmarshal(entry.Value, &rec); err != nil {
		return record{}, fmt.Errorf("read the feedback on request %s: %w", entry.Key, err)
	}
	return rec, nil
}
