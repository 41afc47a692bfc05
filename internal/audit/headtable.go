package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// HeadsConfig configures the bucket with the signed heads of all chains of a store that
// several replicas use.
func HeadsConfig() store.BucketConfig { return store.BucketConfig{Name: "HEADS"} }

// VerifyFunc verifies signatures of other replicas: it reports whether sig is the signature
// of one of their accepted keys over purpose and data.
type VerifyFunc func(purpose, keyID string, data, sig []byte) bool

// headSigner is a Signer that accepts the signatures of other replicas, too.
type headSigner struct {
	Signer
	members VerifyFunc
}

// Verify reports whether sig is a signature of this replica or of another one.
func (s headSigner) Verify(purpose, keyID string, data, sig []byte) bool {
	return s.Signer.Verify(purpose, keyID, data, sig) || s.members(purpose, keyID, data, sig)
}

// headTable contains the signed head of each chain in the store: by then a chain can be
// verified although the data directory of its writer is lost.
//
// A row is written by the writer of the chain, and by a replica that closes the chain of
// another one. It never returns to an earlier batch.
type headTable struct {
	bucket *store.Bucket
	signer Signer // a headSigner
}

// storedHead is a row of the table.
type storedHead struct {
	writer   string
	signed   signedHead
	head     *chainHead // nil = invalid
	status   headStatus
	revision uint64 // 0 = there is no row
}

func (t *headTable) decode(e *store.Entry) storedHead {
	row := storedHead{writer: e.Key, revision: e.Revision}
	row.head, row.status = verifyHead(e.Value, t.signer)
	if row.head != nil && row.head.Writer != e.Key {
		row.head, row.status = nil, headInvalid // the head of another chain
	}
	if strictjson.Unmarshal(e.Value, &row.signed) != nil {
		row.head, row.status = nil, headInvalid
	}
	return row
}

// read returns the head of a chain. If there is none, its status is headAbsent.
func (t *headTable) read(ctx context.Context, writer string) (storedHead, error) {
	e, err := t.bucket.Get(ctx, writer)
	if errors.Is(err, store.ErrNotFound) {
		return storedHead{writer: writer, status: headAbsent}, nil
	}
	if err != nil {
		return storedHead{}, fmt.Errorf("read the head of chain %s: %w", writer, err)
	}
	return t.decode(&e), nil
}

// list returns the heads of all chains.
func (t *headTable) list(ctx context.Context) (rows []storedHead, err error) {
	err = t.bucket.Scan(ctx, "", func(e store.Entry) error {
		rows = append(rows, t.decode(&e))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the heads of the chains: %w", err)
	}
	return rows, nil
}

// publish signs and stores a head, unless a newer one of the same chain is stored.
func (t *headTable) publish(ctx context.Context, h *chainHead) error {
	for {
		row, err := t.read(ctx, h.Writer)
		if err != nil {
			return err
		}
		if row.status == headTrusted && row.head.Chain == h.Chain && row.head.Batch >= h.Batch {
			return nil
		}
		text, err := strictjson.Marshal(h)
		if err == nil {
			err = t.sign(ctx, &row, string(text))
		}
		if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrExists) {
			continue // another replica has written it meanwhile
		}
		if err != nil {
			return fmt.Errorf("store the head of chain %s: %w", h.Writer, err)
		}
		return nil
	}
}

// sign stores a head with the signature of this replica in a row that was read before.
func (t *headTable) sign(ctx context.Context, row *storedHead, head string) error {
	keyID, sig := t.signer.Sign(headPurpose, []byte(head))
	value, err := strictjson.Marshal(signedHead{Head: head, KeyID: keyID, Signature: sig})
	switch {
	case err != nil:
		return err
	case row.revision == 0:
		_, err = t.bucket.Create(ctx, row.writer, value)
	default:
		_, err = t.bucket.Update(ctx, row.writer, value, row.revision)
	}
	return err
}

// countersign signs the valid heads whose key is that of the writer's head, because the
// members accept the key of a replica that is gone for a limited time only.
func (t *headTable) countersign(ctx context.Context, writer string) error {
	own, err := t.read(ctx, writer)
	if err != nil || own.status != headTrusted {
		return err
	}
	rows, err := t.list(ctx)
	if err != nil {
		return err
	}
	for i := range rows {
		row := &rows[i]
		if row.status != headTrusted || row.signed.KeyID != own.signed.KeyID || row.signed.KeyID == t.signer.KeyID() {
			continue
		}
		if err := t.sign(ctx, row, row.signed.Head); err != nil && !errors.Is(err, store.ErrConflict) {
			return fmt.Errorf("sign the head of chain %s: %w", row.writer, err)
		}
	}
	return nil
}

// maxChainsSize bounds the encoded size of chainHead.Chains, because a head has to fit into a
// page.
const maxChainsSize = 1500

// newHead returns the head of a chain.
func (l *Log) newHead(c *storedChain, at *chainEnd) *chainHead {
	h := at.newHead(c.writer, l.cfg.Now())
	h.Steps = c.clock.steps()
	if l.others != nil {
		h.Chains = l.others.lastBatches(c.writer)
	}
	return &h
}

// lastBatches returns the number of the last batch of each chain, except one and empty ones,
// as far as they fit into a head.
func (o *otherChains) lastBatches(except string) map[string]uint64 {
	size, last := 0, map[string]uint64{}
	for _, c := range o.log.allChains() {
		end := c.end.Load()
		if c.writer == except || end.number == 0 {
			continue
		}
		if size += len(c.writer) + len(`"":12345678901,`); size > maxChainsSize {
			break
		}
		last[c.writer] = end.number
	}
	return last
}

// publishInterval is the minimum time between two heads in the store.
const publishInterval = time.Second

// publishHeads stores the head while the chain grows, until ctx ends.
func (l *Log) publishHeads(ctx context.Context) error {
	published := l.end.Load().number
	for range run.Ticks(ctx, publishInterval) {
		at := l.end.Load()
		if at.number == published {
			continue
		}
		if err := l.publishHead(ctx); err == nil {
			published = at.number
		} else if ctx.Err() == nil {
			l.cfg.Logger.ErrorContext(ctx, "store the head of the audit log", "error", err)
		}
	}
	return nil
}

// publishHead stores the head of the chain in the table of heads.
func (l *Log) publishHead(ctx context.Context) error {
	return l.others.heads.publish(ctx, l.newHead(l.storedChain, l.end.Load()))
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
