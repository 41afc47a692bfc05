package audit

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/contentkey"
	"github.com/caprouter/caprouter/internal/pagination"
	"github.com/caprouter/caprouter/internal/store"
)

// chainSubjects are the subjects of one chain. The dots separate those of different
// writers.
type chainSubjects struct{ chain, content, rewritten, withoutContents string }

func newChainSubjects(writer string) chainSubjects {
	return chainSubjects{
		chain:           "audit." + writer,
		content:         "audit." + writer + ".content",
		rewritten:       "audit." + writer + ".restated.",
		withoutContents: "audit." + writer + ".bare.",
	}
}

// chainEnd is the end of a chain.
type chainEnd struct {
	chain  chainID
	number uint64 // of the last batch; 0 = none yet
	last   uint64 // position of its last record
	hash   digest // of that record
	seq    uint64 // of its message, or of the last one that was not rewritten; 0 = none
	origin uint64 // of its first message, which may have been rewritten
}

// storedChain reads the chain of one writer in the stream.
type storedChain struct {
	stream   *store.Log
	keys     *contentkey.Keyring
	writer   string
	subjects chainSubjects
	shared   bool                     // other replicas may rewrite its last batches
	end      atomic.Pointer[chainEnd] // of the chain; nil = not known
	clock    clockHistory
	trimmed  atomic.Uint64             // position up to which records are being removed, or were by this process
	newest   atomic.Pointer[time.Time] // of the records since the clock was last set back; nil = not known
}

func newStoredChain(stream *store.Log, keys *contentkey.Keyring, writer string) *storedChain {
	return &storedChain{stream: stream, keys: keys, writer: writer, subjects: newChainSubjects(writer)}
}

func (c *storedChain) newestTime() time.Time {
	if at := c.newest.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

const (
	defaultLimit   = 100
	defaultMaxScan = 10_000
)

// Query selects outcome records.
type Query struct {
	Since  time.Time // by the time of the record; zero = all
	Cursor string    // Page.Next of the previous page; "" = from the beginning
	Limit  int       // maximum records of a page; 0 = 100
	// Filter reports whether a record is wanted; nil = all.
	Filter func(*Record) bool
	// MaxScan bounds the records that are read for one page; 0 = 10,000. A page that
	// reaches it may be short or empty, and is not the last.
	MaxScan int
}

// Page is a part of the answer. Next is always set; at the end of the log it is the
// place of the next record.
type Page struct {
	Records []Record
	Next    string
}

// pageCursor is a place between two records: the position of the next record in its
// chain, and the message from which to look for it. In a log with several chains this is
// the first message of the batch, and the batches of other chains before it were read.
type pageCursor struct {
	seq, pos uint64
	writer   string
}

func (c pageCursor) String() string {
	text := strconv.FormatUint(c.seq, 36) + "-" + strconv.FormatUint(c.pos, 36)
	if c.writer != DefaultWriter {
		text += "-" + c.writer
	}
	return text
}

func parseCursor(text string) (pageCursor, error) {
	seq, rest, _ := strings.Cut(text, "-")
	pos, writer, _ := strings.Cut(rest, "-")
	c := pageCursor{writer: cmp.Or(writer, DefaultWriter)}
	var err, err2 error
	c.seq, err = strconv.ParseUint(seq, 36, 64)
	c.pos, err2 = strconv.ParseUint(pos, 36, 64)
	if err != nil || err2 != nil || c.pos == 0 || !validWriter.MatchString(c.writer) || c.String() != text {
		return pageCursor{}, invalidCursor("is not a cursor of an earlier answer")
	}
	return c, nil
}

func invalidCursor(detail string) error {
	e := &contract.Error{Code: contract.CodeInvalidRequest, Message: "the query is not valid"}
	e.Add("/cursor", detail)
	return e
}

// Read returns outcome records, oldest first. The error for an invalid cursor is a
// *contract.Error.
func (l *Log) Read(ctx context.Context, q Query) (Page, error) {
	if l.others != nil {
		return readMerged(ctx, l, q)
	}
	at := l.end.Load() // before reading: records written meanwhile belong to the next page
	r := pageReader{log: l, chain: l.storedChain, query: q, next: pageCursor{seq: at.seq, pos: at.last + 1, writer: l.writer}}
	var from store.ReadFrom
	if !q.Since.IsZero() {
		var err error
		if from, err = l.clock.findSince(ctx, l.storedChain, q.Since.Add(-clockSlack)); err != nil {
			return Page{}, fmt.Errorf("read the audit log: %w", err)
		}
	}
	if number, seq, found, known := l.usage.firstSince(l.writer, q.Since); known && q.Cursor == "" && !q.Since.IsZero() {
		if !found {
			return Page{Next: r.next.String()}, nil
		}
		if seq == 0 {
			seq = at.seq
		}
		r.first, from = max(number, 1), store.ReadFrom{Seq: seq}
	}
	if q.Cursor != "" {
		c, err := parseCursor(q.Cursor)
		if err != nil {
			return Page{}, err
		}
		if c.seq > at.seq || c.pos > at.last+1 || c.writer != l.writer {
			return Page{}, invalidCursor("is ahead of the log")
		}
		r.from, r.next = c, c
		from = store.ReadFrom{Seq: max(c.seq, 1)}
	}
	r.setLimits()
	if err := l.walkBatches(ctx, from, r.startsAt, func(seq uint64, b *batch) error { return r.addBatch(ctx, seq, b) }); err != nil {
		return Page{}, fmt.Errorf("read the audit log: %w", err)
	}
	return Page{Records: r.records, Next: r.next.String()}, nil
}

type pageReader struct {
	log     *Log
	chain   *storedChain // of the next batch
	query   Query
	first   uint64 // number of the first batch; 0 = by time
	from    pageCursor
	next    pageCursor
	records []Record
	scanned int
}

func (r *pageReader) setLimits() {
	if r.query.Limit <= 0 {
		r.query.Limit = defaultLimit
	}
	if r.query.MaxScan <= 0 {
		r.query.MaxScan = defaultMaxScan
	}
}

func (r *pageReader) startsAt(b *batch) bool {
	switch {
	case r.from != (pageCursor{}):
		return b.lastPosition() >= r.from.pos
	case r.first != 0:
		return b.number >= r.first
	}
	return !b.newestTime().Before(r.query.Since.Add(-clockSlack)) // the times of a chain are only about in order
}

func (r *pageReader) addBatch(ctx context.Context, seq uint64, b *batch) error {
	for i := range b.entries {
		pos := b.first + uint64(i)
		if r.chain.writer == r.from.writer && pos < r.from.pos {
			continue
		}
		if len(r.records) == r.query.Limit || r.scanned == r.query.MaxScan {
			return store.ErrStop
		}
		rec, err := b.decodeRecord(i)
		if err != nil {
			return err
		}
		old := rec.At.Before(r.query.Since)
		if !old || r.first == 0 || b.number >= r.first+segmentBatches { // the first segment begins before the time asked for
			r.scanned++
		}
		r.next = pageCursor{seq: seq, pos: pos + 1, writer: r.chain.writer}
		if rec.Kind != KindOutcome || old {
			continue
		}
		if err := r.chain.loadContent(ctx, b, i, rec, false); err != nil {
			return err
		}
		if r.query.Filter == nil || r.query.Filter(rec) {
			r.records = append(r.records, *rec)
		}
	}
	return nil
}

// ListQuery selects records of every kind, newest first.
type ListQuery struct {
	Since, Until time.Time // by the time of the record, both included; zero = no limit
	Cursor       string    // ListPage.Next of the previous page; "" = from the end of the log
	Limit        int       // maximum records of a page; 0 = 100
	// Filter reports whether a record is wanted; nil = all.
	Filter func(*Record) bool
	// MaxScan bounds the records that are read for one page; 0 = 10,000. A page that
	// reaches it may be short or empty, and is not the last.
	MaxScan int
}

// afterAllRecords is a year in which no record can have been written. The store cannot
// compare times after the year 9999.
const afterAllRecords = 9000

// ListPage is a part of the answer. Next is "" if there are no older records.
type ListPage struct {
	Records []Record
	Next    string
}

// List returns records without contents, in the reverse order of Read. The error for an
// invalid cursor is a *contract.Error.
func (l *Log) List(ctx context.Context, q ListQuery) (ListPage, error) {
	q.Since, q.Until = q.Since.UTC(), q.Until.UTC()
	switch {
	case q.Since.Year() >= afterAllRecords:
		return ListPage{}, nil
	case q.Until.Year() >= afterAllRecords:
		q.Until = time.Time{}
	}
	at, err := pagination.ParseCursor(q.Cursor)
	if err != nil {
		return ListPage{}, err
	}
	r := listReader{log: l, query: q}
	if at != (pagination.Position{}) {
		if r.from, err = parseCursor(at.ID); err != nil {
			return ListPage{}, err
		}
		info, err := l.stream.Info(ctx)
		if err != nil {
			return ListPage{}, fmt.Errorf("list the audit log: %w", err)
		}
		if r.from.seq > info.Last+1 {
			return ListPage{}, invalidCursor("is ahead of the log")
		}
	}
	if l.others != nil {
		if err := l.others.catchUp(ctx); err != nil {
			return ListPage{}, fmt.Errorf("list the audit log: %w", err)
		}
	}
	r.query.Limit, r.query.MaxScan = cmp.Or(q.Limit, defaultLimit), cmp.Or(q.MaxScan, defaultMaxScan)
	if err := r.merge(ctx); err != nil {
		return ListPage{}, fmt.Errorf("list the audit log: %w", err)
	}
	return r.page, nil
}

// listReader reads a page of List.
type listReader struct {
	log     *Log
	query   ListQuery
	from    pageCursor // the record before the page; its batch is known by its first message
	page    ListPage
	scanned int
	last    pagination.Position // of the last record that was read
}

// merge adds the batches of all chains, newest first.
func (r *listReader) merge(ctx context.Context) error {
	var chains mergedChains
	defer chains.stop()
	for _, c := range r.log.allChains() {
		batches, err := r.batchesOf(ctx, c)
		if err != nil {
			return err
		}
		chains.add(&mergedChain{chain: c}, batches)
	}
	return chains.walk(func(a, b *batch) bool { return a.origin > b.origin }, func(m *mergedChain) error {
		return r.addBatch(m.chain.writer, m.head)
	})
}

// batchesOf returns the batches of a chain that may contain records of the page.
func (r *listReader) batchesOf(ctx context.Context, c *storedChain) (iter.Seq2[*batch, error], error) {
	none := func(func(*batch, error) bool) {}
	end := c.end.Load()
	if end == nil || end.number == 0 {
		return none, nil
	}
	newest, err := r.newestOf(ctx, c, batchPlace{end.number, end.seq})
	if err != nil {
		return nil, err
	}
	from, reached := store.ReadFrom{}, func(*batch) bool { return true }
	if since := r.query.Since.Add(-clockSlack); !r.query.Since.IsZero() { // the times of a chain are only about in order
		reached = func(b *batch) bool { return !b.newestTime().Before(since) }
		if from, err = c.clock.findSince(ctx, c, since); err != nil {
			return nil, err
		}
	}
	oldest, found, err := c.findBatch(ctx, from, reached)
	if err != nil || !found {
		return none, err
	}
	return c.batchesBack(ctx, newest, oldest), nil
}

// newestOf returns the newest batch of a chain for the page.
func (r *listReader) newestOf(ctx context.Context, c *storedChain, end batchPlace) (batchPlace, error) {
	var from store.ReadFrom
	var reached func(*batch) bool
	switch until := r.query.Until.Add(clockSlack); {
	case r.from != (pageCursor{}):
		from = store.ReadFrom{Seq: max(r.from.seq, 1)}
		reached = func(b *batch) bool {
			if c.writer == r.from.writer {
				return b.lastPosition() >= r.from.pos
			}
			return b.origin >= r.from.seq
		}
	case r.query.Until.IsZero() || len(c.clock.steps()) > 0: // later records may be older
		return end, nil
	default:
		from = store.ReadFrom{Since: until}
		reached = func(b *batch) bool { return !b.newestTime().Before(until) }
	}
	at, found, err := c.findBatch(ctx, from, reached)
	if err != nil || !found {
		return end, err
	}
	if r.from != (pageCursor{}) && c.writer != r.from.writer {
		at.number--
	}
	return at, nil
}

// addBatch adds the records of a batch. It returns store.ErrStop when the page is full.
func (r *listReader) addBatch(writer string, b *batch) error {
	for i := range slices.Backward(b.entries) {
		pos := b.first + uint64(i)
		if writer == r.from.writer && pos >= r.from.pos {
			continue
		}
		if len(r.page.Records) == r.query.Limit || r.scanned == r.query.MaxScan {
			r.page.Next = r.last.Cursor()
			return store.ErrStop
		}
		rec, err := b.decodeRecord(i)
		if err != nil {
			return err
		}
		r.scanned++
		r.last = pagination.Position{Created: rec.At, ID: pageCursor{seq: b.origin, pos: pos, writer: writer}.String()}
		if rec.At.Before(r.query.Since) || !r.query.Until.IsZero() && rec.At.After(r.query.Until) {
			continue
		}
		if r.query.Filter == nil || r.query.Filter(rec) {
			r.page.Records = append(r.page.Records, *rec)
		}
	}
	return nil
}
