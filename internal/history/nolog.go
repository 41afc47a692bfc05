package history

import (
	"context"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
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
