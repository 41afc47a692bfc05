package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caprouter/caprouter/internal/broadcast"
	"github.com/caprouter/caprouter/internal/store"
)

// catchUpTimeout bounds how long a lookup waits for the follower.
const catchUpTimeout = 2 * time.Second

// otherChains are the chains of other replicas in the same stream. A follower reads what
// they append, so that the indexes of this log contain it. It is safe for concurrent use.
type otherChains struct {
	log   *Log
	heads *headTable

	mu       sync.Mutex
	chains   map[string]*storedChain
	position uint64           // the last message that was followed
	advances broadcast.Signal // of position
}

// followedSubjects are the batches of all chains, as first written and rewritten.
func followedSubjects() []string { return []string{"audit.*", "audit.*.restated.*", "audit.*.bare.*"} }

// open finds the chains in the table of heads. The others are found when they are followed
// or read.
func (o *otherChains) open(ctx context.Context) error {
	rows, err := o.heads.list(ctx)
	if err != nil {
		return err
	}
	for i := range rows {
		if rows[i].writer == o.log.writer {
			continue
		}
		if _, err := o.chain(ctx, rows[i].writer); err != nil {
			return err
		}
	}
	return nil
}

// all returns the known chains in the order of their names.
func (o *otherChains) all() []*storedChain {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := make([]*storedChain, 0, len(o.chains))
	for _, c := range o.chains {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *storedChain) int { return strings.Compare(a.writer, b.writer) })
	return list
}

// chain returns the chain of a writer. It reads the end of one that was not known.
func (o *otherChains) chain(ctx context.Context, writer string) (*storedChain, error) {
	o.mu.Lock()
	c := o.chains[writer]
	o.mu.Unlock()
	if c != nil {
		return c, nil
	}
	c, err := o.load(ctx, writer)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if known := o.chains[writer]; known != nil {
		return known, nil
	}
	o.chains[writer] = c
	return c, nil
}

// load reads the end of a chain, and the steps of its clock.
func (o *otherChains) load(ctx context.Context, writer string) (*storedChain, error) {
	c := newStoredChain(o.log.stream, o.log.keys, writer)
	c.shared = true
	row, err := o.heads.read(ctx, writer)
	if err != nil {
		return nil, err
	}
	signed := uint64(0)
	if row.status == headTrusted {
		signed = row.head.Batch
		c.clock.list.Store(&row.head.Steps)
	}
	end, newest, err := c.readEnd(ctx, signed)
	if err != nil {
		return nil, fmt.Errorf("read the end of chain %s: %w", writer, err)
	}
	c.end.Store(&end)
	c.newest.Store(&newest)
	return c, nil
}

// follow indexes what is appended behind a sequence until ctx ends.
func (o *otherChains) follow(ctx context.Context, behind uint64) error {
	o.advance(behind)
	for ctx.Err() == nil {
		err := o.log.stream.FollowSubjects(ctx, o.followed()+1, followedSubjects(), func(m store.Message) error {
			o.add(ctx, m)
			o.advance(m.Seq)
			return nil
		})
		if ctx.Err() != nil {
			return nil //nolint:nilerr // stopped
		}
		o.log.cfg.Logger.ErrorContext(ctx, "the records of other replicas are not followed", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	return nil
}

func (o *otherChains) followed() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.position
}

func (o *otherChains) advance(seq uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.position = seq
	o.advances.Broadcast()
}

// catchUp waits until everything is indexed that other replicas had written at the time
// of the call.
func (o *otherChains) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	m, err := o.log.stream.Last(ctx, "audit.*")
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	for {
		advanced := o.advances.Next()
		if o.followed() >= m.Seq {
			return nil
		}
		select {
		case <-advanced:
		case <-ctx.Done():
			return fmt.Errorf("%w: the records of other replicas are not read yet: %w", store.ErrUnavailable, context.Cause(ctx))
		}
	}
}

// writerOf returns the writer in a subject, and the number of a rewritten batch.
func writerOf(subject string) (writer string, rewritten uint64) {
	parts := strings.Split(subject, ".")
	if len(parts) < 2 {
		return "", 0
	}
	if len(parts) == 4 {
		rewritten, _ = strconv.ParseUint(parts[3], 10, 64)
	}
	return parts[1], rewritten
}

// add indexes one message.
func (o *otherChains) add(ctx context.Context, m store.Message) {
	l := o.log
	writer, rewritten := writerOf(m.Subject)
	if rewritten != 0 {
		l.usage.markStale(writer, rewritten)
		return
	}
	if writer == l.writer {
		return // indexed when it was written
	}
	b, ok := tryDecode(m)
	if !ok || b.writer != writer {
		return
	}
	c, err := o.chain(ctx, writer)
	if err != nil {
		l.cfg.Logger.ErrorContext(ctx, "the records of another replica cannot be read", "writer", writer, "error", err)
		return
	}
	if !c.isPlausible(b) {
		return
	}
	l.limiter.size.Add(b.streamSize(len(m.Data)))
	records := make([]indexedRecord, 0, len(b.entries))
	for i := range b.entries {
		rec, err := b.decodeRecord(i)
		if err != nil {
			continue
		}
		records = append(records, indexedRecord{id: rec.RequestID, kind: rec.Kind, pos: rec.Position, at: rec.At})
		if rec.Event == EventCheckpoint && rec.UpTo != nil {
			l.usage.trim(rec.chainOr(writer), rec.UpTo.Batch)
		}
	}
	c.extend(b, records)
	l.known.addRecords(records, l.cfg.Now())
	l.index.addBatch(c, b, m.Seq, records)
	l.usage.add(writer, b.number, m.Seq, b.usage())
}

// extend makes a batch of another replica the end of its chain.
func (c *storedChain) extend(b *batch, records []indexedRecord) {
	if end := c.end.Load(); b.number <= end.number && end.seq >= b.seq || len(records) == 0 {
		return
	}
	c.end.Store(new(b.end(b.seq)))
	c.noteTimes(b.seq, b.number, records)
}

// drop forgets a chain that was removed.
func (o *otherChains) drop(ctx context.Context, c *storedChain) error {
	o.mu.Lock()
	delete(o.chains, c.writer)
	o.mu.Unlock()
	return o.heads.bucket.Discard(ctx, c.writer)
}
