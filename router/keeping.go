package router

import (
	"context"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/events"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/tickets"
)

// Keeping is what of a request outlives it. Each fact has one owner: Book has
// what can still change, Trail what happened. The zero value keeps nothing, which
// is what a command wants that routes one request and ends: then there are no
// sessions, no asynchronous requests, no stored answers and no tickets.
type Keeping struct {
	Trail    Trail           // the record of decisions and answers
	Optional bool            // requests are served though they cannot be recorded (audit.required: false)
	Book     *requests.Store // asynchronous requests
	Events   *events.Stream  // what happens to them
	Sessions *store.Bucket   // sessions and open clarifications; its age limit is theirs
	Keys     *store.Bucket   // idempotency keys
	Tickets  Tickets         // policy C
	Owner    string          // this process, in the records of what it works on
}

// Trail is the record of what was decided and answered (audit.Trail).
type Trail interface {
	Append(ctx context.Context, rec audit.Record) error
	Find(ctx context.Context, requestID string) (audit.RequestRecords, error)
	FindWithin(ctx context.Context, requestID string, life time.Duration) (audit.RequestRecords, error)
	Read(ctx context.Context, q audit.Query) (audit.Page, error)
	Erase(ctx context.Context, requestID, by string) (int, error)
	Unfinished(ctx context.Context) ([]audit.Record, error)
}

// Tickets gathers what nobody could serve (tickets.Desk).
type Tickets interface {
	Propose(ctx context.Context, d *tickets.Demand) (*contract.Proposal, error)
	EraseRequest(ctx context.Context, requestID string) error
}

// keepTimeout bounds what is written when nobody waits for it any more.
const keepTimeout = 10 * time.Second

// lastMoment is what a caller is kept waiting beyond the deadline for the answer
// to be put on record.
const lastMoment = 150 * time.Millisecond

// afterwards is a context for what must still be written when the request's own
// has ended.
func afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), keepTimeout)
}

// closing is a context for what is written at the end of the request. Who waits is
// not kept waiting for a slow disk: what is on its way is written all the same.
func (j *job) closing(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if j.tracked != nil || !ok {
		return afterwards(ctx)
	}
	return context.WithDeadline(context.WithoutCancel(ctx), deadline.Add(lastMoment))
}
