package audit

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
)

const (
	defaultLimit   = 100
	defaultMaxScan = 10_000
)

// Query selects outcome records.
type Query struct {
	Since  time.Time // by the record's own time; zero = all
	Cursor string    // Page.Next of the page before; "" = from the beginning
	Limit  int       // most records of a page; 0 = 100
	// Keep says whether a record belongs to the answer; nil = every one.
	Filter func(*Record) bool
	// MaxScan is how many records are looked at for one page; 0 = 10,000. A page
	// that ends for it may be short, even empty, and is not the last.
	MaxScan int
}

// Page is a part of the answer. Next is always set: at the end it is where what
// comes next will stand.
type Page struct {
	Records []Record
	Next    string
}

// cursor is a place between two records: the position of the next one, and the
// message from which on to look for it.
type cursor struct{ seq, pos uint64 }

func (c cursor) String() string {
	return strconv.FormatUint(c.seq, 36) + "-" + strconv.FormatUint(c.pos, 36)
}

func parseCursor(text string) (cursor, error) {
	seq, pos, _ := strings.Cut(text, "-")
	var c cursor
	var err, err2 error
	c.seq, err = strconv.ParseUint(seq, 36, 64)
	c.pos, err2 = strconv.ParseUint(pos, 36, 64)
	if err != nil || err2 != nil || c.pos == 0 || c.String() != text {
		return cursor{}, badCursor("is not a cursor that an answer gave")
	}
	return c, nil
}

func badCursor(detail string) error {
	e := &contract.Error{Code: contract.CodeInvalidRequest, Message: "the query is not valid"}
	e.Add("/cursor", detail)
	return e
}

// Read returns outcome records, oldest first. A cursor that is not one of this
// trail is a *contract.Error.
func (t *Log) Read(ctx context.Context, q Query) (Page, error) {
	at := t.now.Load() // before reading: what is written meanwhile is for the next page
	r := pageReader{trail: t, query: q, next: cursor{seq: at.seq, pos: at.last + 1}}
	from := store.ReadFrom{Since: q.Since}
	if !q.Since.IsZero() {
		from.Since = q.Since.Add(-clockSlack)
	}
	if q.Cursor != "" {
		c, err := parseCursor(q.Cursor)
		if err != nil {
			return Page{}, err
		}
		if c.seq > at.seq || c.pos > at.last+1 {
			return Page{}, badCursor("is ahead of the log")
		}
		r.from, r.next = c, c
		from = store.ReadFrom{Seq: max(c.seq, 1)}
	}
	if r.query.Limit <= 0 {
		r.query.Limit = defaultLimit
	}
	if r.query.MaxScan <= 0 {
		r.query.MaxScan = defaultMaxScan
	}
	if err := t.walk(ctx, from, r.reached, func(seq uint64, b *batch) error { return r.take(ctx, seq, b) }); err != nil {
		return Page{}, fmt.Errorf("read the audit trail: %w", err)
	}
	return Page{Records: r.records, Next: r.next.String()}, nil
}

type pageReader struct {
	trail   *Log
	query   Query
	from    cursor
	next    cursor
	records []Record
	scanned int
}

func (r *pageReader) reached(b *batch) bool {
	if r.from != (cursor{}) {
		return b.last() >= r.from.pos
	}
	return !b.newest().Before(r.query.Since.Add(-clockSlack)) // the times of a chain are only about in order
}

func (r *pageReader) take(ctx context.Context, seq uint64, b *batch) error {
	for i := range b.entries {
		pos := b.first + uint64(i)
		if pos < r.from.pos {
			continue
		}
		if len(r.records) == r.query.Limit || r.scanned == r.query.MaxScan {
			return store.ErrStop
		}
		r.scanned++
		r.next = cursor{seq: seq, pos: pos + 1}
		rec, err := r.trail.load(ctx, b, i)
		if err != nil {
			return err
		}
		if rec.Kind != KindOutcome || rec.At.Before(r.query.Since) {
			continue
		}
		if r.query.Filter == nil || r.query.Filter(rec) {
			r.records = append(r.records, *rec)
		}
	}
	return nil
}
