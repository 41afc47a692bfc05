package history

import (
	"context"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/events"
	"github.com/caprouter/caprouter/internal/store"
)

// NoLog is the audit log of a router that stores nothing, for example of a command
// that routes one request. It discards records.
type NoLog struct{}

// Append discards the record.
func (NoLog) Append(context.Context, audit.Record) error { return nil }

// Submit discards the record.
func (NoLog) Submit(_ context.Context, _ audit.Record, done func(error)) error {
	done(nil)
	return nil
}

// Admit admits every caller.
func (NoLog) Admit(*contract.Caller) error { return nil }

// Find returns store.ErrNotFound.
func (NoLog) Find(context.Context, string) (audit.RequestRecords, error) {
	return audit.RequestRecords{}, store.ErrNotFound
}

// FindWithin returns store.ErrNotFound.
func (NoLog) FindWithin(context.Context, string, time.Duration) (audit.RequestRecords, error) {
	return audit.RequestRecords{}, store.ErrNotFound
}

// Read returns not_found.
func (NoLog) Read(context.Context, audit.Query) (audit.Page, error) {
	return audit.Page{}, &contract.Error{Code: contract.CodeNotFound, Message: "no decisions are recorded here"}
}

// List returns not_found.
func (NoLog) List(context.Context, audit.ListQuery) (audit.ListPage, error) {
	return audit.ListPage{}, &contract.Error{Code: contract.CodeNotFound, Message: "nothing is recorded here"}
}

// Erase does nothing.
func (NoLog) Erase(context.Context, string, *contract.Caller, time.Duration) (int, error) {
	return 0, nil
}

// Unfinished returns nothing.
func (NoLog) Unfinished(context.Context) ([]audit.Record, error) { return nil, nil }

// NoRuns are the orchestrations of a router without any.
type NoRuns struct{}

// CancelRuns cancels none.
func (NoRuns) CancelRuns(context.Context, string, string) (bool, error) { return false, nil }

// EndedRuns returns none.
func (NoRuns) EndedRuns(context.Context, string) (EndedRuns, error) { return EndedRuns{}, nil }

// DeleteRun does nothing.
func (NoRuns) DeleteRun(context.Context, string) error { return nil }

// NoEvents is the event log of a router that stores no events.
type NoEvents struct{}

// Read returns events.ErrGone.
func (NoEvents) Read(context.Context, string, uint64, func(uint64, *contract.Event) error) error {
	return events.ErrGone
}

// Follow returns without an event.
func (NoEvents) Follow(context.Context, string, uint64, func(uint64, *contract.Event) error) error {
	return nil
}

// Position returns 0.
func (NoEvents) Position(context.Context) (uint64, error) { return 0, nil }

// Enqueue discards the event.
func (NoEvents) Enqueue(*contract.Event) {}

// Delete does nothing.
func (NoEvents) Delete(context.Context, string) error { return nil }
