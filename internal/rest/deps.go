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
	"github.com/caprouter/caprouter/internal/httpserver"
)

// Config configures the REST interface.
type Config struct {
	// ClassifyLimit limits how often a caller may have a prompt classified. nil is
	// no limit.
	ClassifyLimit httpserver.RateLimiter
	// CheckLimit limits how often a caller may have a registry checked. nil is no
	// limit.
	CheckLimit httpserver.RateLimiter
	// ReadLimit limits how often a caller may read the decision log, the audit log and the
	// list of tickets, and give feedback. nil is no limit.
	ReadLimit httpserver.RateLimiter
	// RegisterLimit limits how often a caller may register an agent. nil is no limit.
	RegisterLimit httpserver.RateLimiter

	// AnswerByDefault is that of the router: policy A applies if a registry leaves the
	// choice.
	AnswerByDefault bool
}

// Deps are the dependencies of the handlers. All are required, and are called
// from many goroutines at a time.
type Deps struct {
	Router           Router
	Requests         Requests
	Decisions        Decisions
	AuditLog         AuditLog
	Feedback         Feedback
	Tasks            Tasks
	Leases           Leases
	Tickets          Tickets
	Fleet            Fleet
	Tools            Tools
	MCPServers       MCPServers
	MCPRegistrations MCPRegistrations
	MCPApprovals     MCPApprovals
	MCPBindings      MCPBindings
	Runs             Runs
	RunLister        RunLister
	RunControl       RunControl
	RunEraser        RunEraser
	Registry         func() *capabilities.Snapshot // returns the current snapshot
	AgentState       func(id string) AgentState
	Readiness        func() Readiness
	JWKS             func() []byte // the JSON key set that agents verify their tokens with
	Metrics          http.Handler  // of /metrics
	Meter            Meter

	// TaskTokens verifies the token with which an agent reports on its task. The
	// agent does not see the reason of an error.
	TaskTokens func(token string) (contract.TaskGrant, error)
}

// Router routes and classifies requests. Clients receive only errors that are a
// *contract.Error; others go to the log.
type Router interface {
	// HandleJSON routes a request and returns its response. If no agent is eligible,
	// the response has contract.StatusUnsupported; that is not an error.
	// The response is also returned as JSON, or nil if it is not encoded yet.
	HandleJSON(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Response, []byte, error)

	// Stream is HandleJSON with events of the progress. emit is called by one goroutine
	// at a time and not after Stream returns. The event "final" is not emitted,
	// because Stream returns the response.
	Stream(ctx context.Context, req *contract.Request, caller *contract.Caller, emit func(*contract.Event)) (*contract.Response, error)

	// Submit accepts an asynchronous request. When it returns, the request is
	// stored durably.
	Submit(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Response, error)

	Classify(ctx context.Context, req *contract.Request, caller *contract.Caller) (*contract.Classification, error)
}

// Requests gives access to stored requests. A request that the caller may not see
// is contract.CodeNotFound, like one that does not exist.
type Requests interface {
	// Request returns the response, or the current state if there is none yet.
	Request(ctx context.Context, id string, caller *contract.Caller) (*contract.Response, error)

	// Cancel ends a request and returns its state. It returns
	// contract.CodeConflict if the request has ended otherwise.
	Cancel(ctx context.Context, id string, caller *contract.Caller) (*contract.Response, error)

	// Erase removes the texts of a request. It returns contract.CodeConflict while
	// the request runs.
	Erase(ctx context.Context, id string, caller *contract.Caller) error

	// Events emits the events of the request after a sequence number, 0 for all,
	// and returns nil after the event "final". It ends early if the context ends
	// or emit returns an error. A reader cannot resume after an event with
	// sequence number 0.
	Events(ctx context.Context, id string, caller *contract.Caller, after uint64, emit func(seq uint64, ev *contract.Event) error) error
}

// Decisions returns pages of the decision log with the entries that the caller
// may see.
type Decisions interface {
	Decisions(ctx context.Context, query contract.DecisionQuery, caller *contract.Caller) (*contract.DecisionPage, error)
}

// Feedback stores the verdict of the caller on the decision about a request. It returns
// contract.CodeConflict if there is no decision.
type Feedback interface {
	AddFeedback(ctx context.Context, id string, req *contract.FeedbackRequest, caller *contract.Caller) (*contract.Feedback, error)
}

// Tasks accepts what agents report on tasks that they answered with 202. It
// returns contract.CodeNotFound if the task does not exist or belongs to another
// agent, and contract.CodeConflict if it has ended or has a different result.
type Tasks interface {
	AcceptResult(ctx context.Context, grant contract.TaskGrant, res *contract.Result) error
	AcceptProgress(ctx context.Context, grant contract.TaskGrant, p *contract.Progress) error
}

// Leases gives tasks to agents that pull them.
type Leases interface {
	// Lease returns the next task, after waiting for it as the request specifies, but not
	// after stop is closed; ok is false if there is none.
	Lease(ctx context.Context, agentID string, req *contract.LeaseRequest, stop <-chan struct{}) (leased contract.LeasedTask, ok bool, err error)
	// Renew renews the lease of the grant. It returns contract.CodeNotFound if the agent
	// has not pulled the task.
	Renew(ctx context.Context, grant contract.TaskGrant) (contract.TaskLease, error)
}

// Tickets gives access to the tickets that the caller may see.
type Tickets interface {
	Tickets(ctx context.Context, query contract.TicketQuery, caller *contract.Caller) (*contract.TicketPage, error)
	Ticket(ctx context.Context, id string, caller *contract.Caller) (*contract.Ticket, error)
	CloseTicket(ctx context.Context, id, note string, caller *contract.Caller) (*contract.Ticket, error)
}

// Meter counts routing requests that end with an error instead of a response; the
// router counts the others.
type Meter interface {
	// RecordRequest counts one request. outcome is the code of the error.
	RecordRequest(outcome string, took time.Duration)
}

// check returns an error that names each missing dependency.
func (d *Deps) check() error {
	var missing []error
	v := reflect.ValueOf(d).Elem()
	for field, value := range v.Fields() {
		if value.IsNil() {
			missing = append(missing, fmt.Errorf("rest: Deps.%s is required", field.Name))
		}
	}
	return errors.Join(missing...)
}
