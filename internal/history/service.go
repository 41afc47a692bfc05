package history

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/inflight"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/session"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/visibility"
)

// AuditLog is the audit log. *audit.Log and NoLog implement it.
type AuditLog interface {
	Finder
	Reader
	Lister
	Erase(ctx context.Context, requestID string, by *contract.Caller, life time.Duration) (int, error)
}

// Finder finds the records of one request.
type Finder interface {
	Find(ctx context.Context, requestID string) (audit.RequestRecords, error)
	FindWithin(ctx context.Context, requestID string, life time.Duration) (audit.RequestRecords, error)
}

// Recording writes the log, and knows the responses that are being written. *Journal implements it.
type Recording interface {
	// Await waits for the response to a request, or with "" for those to all requests.
	Await(ctx context.Context, requestID string) error
	// Unrecorded returns the outcome of a request that could not be written yet, or nil.
	Unrecorded(requestID string) *audit.Record
	// RecordFeedback writes a verdict on a request.
	RecordFeedback(ctx context.Context, requestID, traceID string, f *contract.Feedback, caller *contract.Caller) error
}

// EventLog contains the events of asynchronous requests. *events.Stream and
// NoEvents implement it.
type EventLog interface {
	Read(ctx context.Context, requestID string, after uint64, fn func(seq uint64, ev *contract.Event) error) error
	Follow(ctx context.Context, requestID string, after uint64, fn func(seq uint64, ev *contract.Event) error) error
	Position(ctx context.Context) (uint64, error)
	Delete(ctx context.Context, requestID string) error
}

// TicketEraser removes the text of a request from tickets.
type TicketEraser interface {
	EraseRequest(ctx context.Context, requestID string) error
}

// RequestRuns are the orchestrations of requests: those that are tasks of a request, and the one
// that has its id. orchestrations.Eraser and NoRuns implement it.
type RequestRuns interface {
	// CancelRuns cancels the tasks' runs of a request that has ended, for the subject of a
	// caller, and reports whether one had not ended. They may end a moment later. Errors are
	// *contract.Error.
	CancelRuns(ctx context.Context, requestID, by string) (cancelled bool, err error)
	// EndedRuns returns those of a request. Errors are *contract.Error: conflict if one has not ended,
	// that of NewEndingError if it is about to end.
	EndedRuns(ctx context.Context, requestID string) (EndedRuns, error)
	// DeleteRun removes the record of one of them. It is no error if there is none.
	DeleteRun(ctx context.Context, id string) error
}

// EndedRuns are orchestrations that have ended.
type EndedRuns struct {
	IDs []string
	At  time.Time // when the last one ended; zero without one
}

// Canceller cancels an asynchronous request in its record, and its tasks. If the
// request has ended already, its response is returned with requests.ErrEnded. The error wraps
// store.ErrNotFound if the request has no record.
type Canceller interface {
	CancelStored(ctx context.Context, requestID, detail string) (*contract.Response, error)
}

// Peers are the other processes that share the store.
type Peers interface {
	// IsExecuting reports whether another live process has this owner id.
	IsExecuting(owner string) bool
	// Cancel asks the process that executes a request without a record to cancel it. The
	// message may be lost.
	Cancel(requestID string)
}

// Config is what a Service needs. All fields are required.
type Config struct {
	Log       AuditLog
	Recording Recording
	Requests  *requests.Store
	InFlight  *inflight.Table
	Events    EventLog
	Sessions  *session.Store
	Questions *session.Questions
	Tickets   TicketEraser
	Runs      RequestRuns
	Feedback  FeedbackStore
	Canceller Canceller
	Peers     Peers
	// IsLive reports whether the process with this owner id may execute requests.
	IsLive    func(owner string) bool
	Catalogue func() *capabilities.Catalogue // the one in use
	// OnFeedback is called with a verdict that is new or differs from the caller's last one.
	OnFeedback func(contract.Verdict)
	MaskText   func(string) string // masks comments
	Logger     *slog.Logger
	Now        func() time.Time
}

// Service gives callers access to stored requests. A request that the caller may
// not see is not_found, like one that does not exist. Service is safe for
// concurrent use.
type Service struct{ cfg Config }

// New returns a Service.
func New(cfg Config) *Service { return &Service{cfg: cfg} }

// Request returns the response to a request, or its state if there is none yet.
func (s *Service) Request(ctx context.Context, id string, caller *contract.Caller) (*contract.Response, error) {
	found, err := s.findVisible(ctx, id, caller)
	if err != nil {
		return nil, err
	}
	resp, err := found.response()
	if err != nil {
		return nil, err
	}
	return s.withFeedback(ctx, s.filter(caller, found.owner).Response(resp), caller), nil
}

// Cancel ends a request of the caller and cancels its tasks at their agents. The
// response is partial if an agent has delivered a result already. Cancelling a
// cancelled request succeeds; if it had ended otherwise, Cancel returns conflict, unless an
// orchestration of it had not ended: its process stopped, and the orchestration went on.
func (s *Service) Cancel(ctx context.Context, id string, caller *contract.Caller) (*contract.Response, error) {
	found, err := s.findVisible(ctx, id, caller)
	if err != nil {
		return nil, err
	}
	if !visibility.MayEndRequest(caller, found.owner) {
		return nil, errNotOwner("cancel")
	}
	resp, err := s.cancel(ctx, found)
	ended := errors.Is(err, requests.ErrEnded)
	switch {
	case errors.Is(err, store.ErrNotFound): // it was erased meanwhile
		return nil, errNoSuchRequest()
	case err != nil && !ended:
		return nil, err
	}
	cancelled, err := s.cfg.Runs.CancelRuns(ctx, id, caller.Subject)
	switch {
	case err != nil:
		return nil, err
	case ended && !cancelled && resp.Status != contract.StatusCancelled:
		return nil, &contract.Error{Code: contract.CodeConflict, Message: "the request has ended already: " + string(resp.Status)}
	}
	return s.filter(caller, found.owner).Response(resp), nil
}

// cancelDetail is the reason in the tasks of a cancelled request.
const cancelDetail = "the request was cancelled"

// cancel ends the request. The error is requests.ErrEnded if it had ended before.
func (s *Service) cancel(ctx context.Context, found *storedRequest) (*contract.Response, error) {
	switch {
	case found.record != nil:
		return s.cfg.Canceller.CancelStored(ctx, found.id, cancelDetail)
	case found.inFlight != nil:
		found.inFlight.Cancel(inflight.ErrCancelled)
		select {
		case <-found.inFlight.Done():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return found.response()
	}
	if found.elsewhere {
		return s.cancelElsewhere(ctx, found.id)
	}
	resp, err := found.response()
	return resp, cmp.Or(err, requests.ErrEnded)
}

// findVisible looks up a request that the caller may see. Calls of tools and orchestrations
// are no requests, although their ids look the same.
func (s *Service) findVisible(ctx context.Context, id string, caller *contract.Caller) (*storedRequest, error) {
	found, err := s.findErasable(ctx, id, caller)
	switch {
	case err != nil:
		return nil, err
	case found.toolCall == nil:
		return found, nil
	case found.toolCall.Kind == audit.KindRun:
		return nil, &contract.Error{Code: contract.CodeNotFound, Message: "there is no such request: the id is that of an orchestration, see /api/v1/orchestrations/" + id}
	}
	return nil, errNoSuchRequest()
}

// findErasable looks up a request that the caller may see, or a call of a tool or an
// orchestration of the caller.
func (s *Service) findErasable(ctx context.Context, id string, caller *contract.Caller) (*storedRequest, error) {
	if parsed, err := uuid.Parse(id); err != nil || parsed.Version() != 7 || parsed.String() != id {
		return nil, errNoSuchRequest()
	}
	found, err := s.lookup(ctx, id, s.searchWindow(id))
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && !found.isVisibleTo(caller):
		return nil, errNoSuchRequest()
	case err != nil:
		return nil, s.storeError(ctx, "the request cannot be looked up", err)
	}
	return found, nil
}

// filter returns the visibility filter for what the caller may see of a request of
// the owner.
func (s *Service) filter(caller, owner *contract.Caller) *visibility.Filter {
	return visibility.NewFilter(s.cfg.Catalogue(), caller, owner)
}

func (s *Service) storeError(ctx context.Context, operation string, err error) error {
	return store.CallerError(ctx, s.cfg.Logger, operation, err)
}

func errNoSuchRequest() error {
	return &contract.Error{Code: contract.CodeNotFound, Message: "there is no such request; responses are stored for a limited time (store.retention)"}
}

func errNotOwner(operation string) error {
	return &contract.Error{Code: contract.CodeForbidden, Message: "only the sender of the request, or an administrator, may " + operation + " it"}
}
