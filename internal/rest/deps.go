package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
)

// Deps is what the edge stands in front of. All but Meter are required; every
// function is called from many goroutines at a time.
type Deps struct {
	Router     Router
	Tickets    Tickets
	Registry   func() *capabilities.Snapshot // the one in force
	AgentState func(id string) AgentState
	Readiness  func() Readiness
	JWKS       func() []byte // the key set agents verify their tokens with, as JSON
	NewID      func() string // makes request ids (UUIDv7)
	Metrics    http.Handler  // what /metrics answers
	Meter      Meter         // nil counts nothing

	// TaskTokens reads the token an agent calls back with. Whatever its error is,
	// the agent is told that the token is not valid.
	TaskTokens func(token string) (contract.TaskGrant, error)
}

// Router is the core as this edge needs it. Of its errors a *contract.Error is
// told to the caller, any other only to the log.
type Router interface {
	// Handle routes a request and waits for the answer. A request nobody may serve
	// is an answer (contract.StatusUnsupported), not an error.
	Handle(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Response, error)

	// Stream is Handle that tells what happens on the way. emit is called by one
	// goroutine at a time and never after the return. The event final is not
	// emitted: it is what is returned.
	Stream(ctx context.Context, req *contract.Request, caller *contract.Caller, emit func(*contract.Event)) (*contract.Response, error)

	// Submit accepts a request that nobody waits for. When it returns, the request
	// is on disk.
	Submit(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Response, error)

	Classify(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Classification, error)

	// Decisions returns a page of the decision log, as far as the caller may see it.
	Decisions(ctx context.Context, query contract.DecisionQuery, caller *contract.Caller) (*contract.DecisionPage, error)

	Requests
	Tasks
}

// Requests finds earlier requests again. One that the caller may not see is
// contract.CodeNotFound, like one that never was.
type Requests interface {
	// Request returns the answer, or how far the request has come.
	Request(ctx context.Context, id string, caller *contract.Caller) (*contract.Response, error)

	// Cancel ends a request and returns it as it is then. contract.CodeConflict
	// when it has ended otherwise.
	Cancel(ctx context.Context, id string, caller *contract.Caller) (*contract.Response, error)

	// Erase removes what was said in a request. contract.CodeConflict while it runs.
	Erase(ctx context.Context, id string, caller *contract.Caller) error

	// Events emits what happens to the request after the sequence, 0 for all, and
	// returns nil after the event final. It ends early with the context, and with
	// the error of emit. Sequence 0 stands for an event without one: a reader
	// cannot resume there.
	Events(ctx context.Context, id string, caller *contract.Caller, after uint64, emit func(seq uint64, ev *contract.Event) error) error
}

// Tasks takes what agents send of their tasks later. contract.CodeNotFound for
// a task that does not exist, or is another agent's; contract.CodeConflict when
// it comes too late, or another result was there before.
type Tasks interface {
	Result(ctx context.Context, grant contract.TaskGrant, res *contract.Result) error
	Progress(ctx context.Context, grant contract.TaskGrant, p *contract.Progress) error
}

// Tickets is the record of unmet demand, as far as the caller may see it.
type Tickets interface {
	Tickets(ctx context.Context, query contract.TicketQuery, caller *contract.Caller) (*contract.TicketPage, error)
	Ticket(ctx context.Context, id string, caller *contract.Caller) (*contract.Ticket, error)
	CloseTicket(ctx context.Context, id, note string, caller *contract.Caller) (*contract.Ticket, error)
}

// Meter counts what only the edge sees. Answers the core counts itself.
type Meter interface {
	// Request counts a routing request that got an error and no answer; outcome
	// is the error's code.
	Request(outcome string, took time.Duration)
	// InFlight adds to the number of requests being worked on.
	InFlight(delta int)
}

// check names every dependency that is missing, so that it shows at start and
// not with the first request to the path.
func (d *Deps) check() error {
	var missing []error
	v := reflect.ValueOf(d).Elem()
	for field, value := range v.Fields() {
		if field.Name != "Meter" && value.IsNil() {
			missing = append(missing, fmt.Errorf("rest: Deps.%s is required", field.Name))
		}
	}
	return errors.Join(missing...)
}
