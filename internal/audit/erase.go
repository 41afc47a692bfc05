package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
)

// Erase removes the contents of a request's records, overwrites their bytes, and
// returns their number. Facts and chain stay, and an admin record names the request,
// the time and the caller. It can be repeated, and completes an interrupted erasure. life
// is how long the request took if it may be longer than the maximum duration of requests,
// because an orchestration can wait for a person for days; 0 = it is not.
func (l *Log) Erase(ctx context.Context, requestID string, by *contract.Caller, life time.Duration) (count int, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("erase request %.64q from the audit log: %w", requestID, err)
		}
	}()
	l.rewriter.mu.Lock()
	defer l.rewriter.mu.Unlock()
	batches, err := l.findBatches(ctx, requestID, max(life, maxRequestDuration))
	if err != nil {
		return 0, err
	}
	for _, found := range batches {
		b := found.batch
		for i := range b.entries {
			if b.entries[i].content.isStored() && b.isRecordOf(i, requestID) {
				count++
			}
		}
	}
	if count > 0 {
		// Announce before removing, because a content that is missing without an
		// announcement counts as tampering. The new record also keeps the batches
		// below from being the last of the chain, which must not be rewritten.
		rec := Record{Kind: KindAdmin, Event: EventErase, RequestID: requestID, Tenant: by.Tenant, Subject: by.Subject, Issuer: by.Issuer}
		if err := l.announce(ctx, &rec); err != nil {
			return 0, err
		}
	}
	for _, found := range batches {
		b := found.batch
		if err := l.rewriter.rewrite(ctx, found.chain, b, func(i int) bool { return b.isRecordOf(i, requestID) }); err != nil {
			return 0, err
		}
	}
	return count, nil
}

// announce records a removal before it begins. If other replicas share the store, it also
// stores a head that covers the record, because Verify accepts announcements about other
// chains only from the signed part of a chain.
func (l *Log) announce(ctx context.Context, rec *Record) error {
	if rec.Chain == l.writer {
		rec.Chain = ""
	}
	if err := l.appendRecord(ctx, rec); err != nil || l.others == nil {
		return err
	}
	return l.publishHead(ctx)
}

// chainBatch is a batch of a chain.
type chainBatch struct {
	chain *storedChain
	batch *batch
}

// findBatches returns the batches with records of a request that took at most this long. If
// the index contains decision and outcome, it contains all records.
func (l *Log) findBatches(ctx context.Context, id string, life time.Duration) ([]chainBatch, error) {
	var batches []chainBatch
	add := func(c *storedChain, b *batch) {
		if !slices.ContainsFunc(batches, func(have chainBatch) bool { return have.chain == c && have.batch.number == b.number }) {
			batches = append(batches, chainBatch{c, b})
		}
	}
	if l.others != nil {
		if err := l.others.catchUp(ctx); err != nil {
			return nil, err
		}
	}
	known := l.index.lookUp(id)
	for _, r := range append([]recordRef{known.decision, known.outcome}, known.calls...) {
		if r == (recordRef{}) {
			continue
		}
		b, err := r.chain.readBatch(ctx, r)
		if errors.Is(err, store.ErrNotFound) {
			continue // trimmed
		}
		if err != nil {
			return nil, err
		}
		add(r.chain, b)
	}
	if known.decision != (recordRef{}) && known.outcome != (recordRef{}) {
		return batches, nil
	}
	err := l.searchRecords(ctx, id, life, func(c *storedChain, b *batch, _ int) error {
		add(c, b)
		return nil
	})
	if errors.Is(err, store.ErrNotFound) {
		err = nil // an id without a time belongs to no request
	}
	return batches, err
}
