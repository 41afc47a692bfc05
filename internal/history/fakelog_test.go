package history_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/store"
)

// fakeLog is an audit log of records in memory.
type fakeLog struct {
	history.NoLog
	records         []audit.Record
	finds, searches int // of the whole log, and within a window
	erasedBy        []string
	erasedWithin    time.Duration // of the last erasure
	err             error
	onFind          func()
	proceed         chan struct{} // if not nil, an append waits for it
	submitFails     error         // result of Submit

	mu sync.Mutex // serializes appends
}

func (l *fakeLog) Find(_ context.Context, id string) (found audit.RequestRecords, err error) {
	l.finds++
	return l.find(id)
}

func (l *fakeLog) FindWithin(_ context.Context, id string, _ time.Duration) (audit.RequestRecords, error) {
	l.searches++
	return l.find(id)
}

func (l *fakeLog) find(id string) (found audit.RequestRecords, err error) {
	if l.onFind != nil {
		l.onFind()
	}
	for i := range l.records {
		switch rec := &l.records[i]; {
		case rec.RequestID != id, rec.Kind == audit.KindFeedback:
		case rec.Kind == audit.KindOutcome:
			found.Outcome = rec
		case rec.Kind == audit.KindToolCall, rec.Kind == audit.KindRun:
			found.ToolCall = rec
		default:
			found.Decision = rec
		}
	}
	if found.Outcome == nil && found.Decision == nil && found.ToolCall == nil {
		err = store.ErrNotFound
	}
	return found, errors.Join(err, l.err)
}

func (l *fakeLog) Read(_ context.Context, q audit.Query) (page audit.Page, err error) {
	for i := range l.records {
		if l.records[i].Kind == audit.KindOutcome && q.Filter(&l.records[i]) {
			page.Records = append(page.Records, l.records[i])
		}
	}
	return page, l.err
}

// List returns the records that the query selects as one page.
func (l *fakeLog) List(_ context.Context, q audit.ListQuery) (page audit.ListPage, err error) {
	for i, rec := range slices.Backward(l.records) {
		if q.Filter(&rec) {
			rec.Writer, rec.Position = "main", uint64(i+1)
			page.Records = append(page.Records, rec)
		}
	}
	return page, l.err
}

func (l *fakeLog) Erase(_ context.Context, id string, by *contract.Caller, life time.Duration) (int, error) {
	l.erasedWithin = life
	name := by.Subject
	if by.Issuer != "" {
		name += " (" + by.Issuer + ")"
	}
	l.erasedBy = append(l.erasedBy, name)
	for i := range l.records {
		if l.records[i].RequestID == id {
			l.records[i].Content = nil
		}
	}
	return 1, nil
}

// Append implements history.JournalLog for the journal that writes the test's records.
func (l *fakeLog) Append(_ context.Context, rec audit.Record) error {
	if l.proceed != nil {
		<-l.proceed
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, rec)
	return nil
}

// Submit calls done from another goroutine, as the writer of an audit log does.
func (l *fakeLog) Submit(ctx context.Context, rec audit.Record, done func(error)) error {
	go func() {
		if l.submitFails != nil {
			done(l.submitFails)
			return
		}
		done(l.Append(ctx, rec))
	}()
	return nil
}
