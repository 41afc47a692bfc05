package router

import (
	"context"
	"errors"
	"log/slog"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/asyncrun"
	"github.com/caprouter/caprouter/internal/events"
	"github.com/caprouter/caprouter/internal/fallbackpolicy"
	"github.com/caprouter/caprouter/internal/feedback"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/session"
	"github.com/caprouter/caprouter/internal/store"
)

// Storage is the storage of the router. The zero value stores nothing, which is
// enough for a command that routes one request: there are no sessions, asynchronous
// requests, stored responses and tickets.
type Storage struct {
	AuditLog         AuditLog
	AuditOptional    bool            // serve requests even if they cannot be recorded (audit.required: false)
	AnswerFirst      bool            // respond before the response is recorded, if the decision is (audit.outcome: background)
	Requests         *requests.Store // asynchronous requests
	Events           *events.Stream  // of asynchronous requests
	Sessions         *store.Bucket   // sessions and open clarifications; its age limit is theirs
	IdempotencyKeys  *store.Bucket
	IdempotencyQuota *quota.Ledger // of IdempotencyKeys; nil = no limit
	SessionQuota     *quota.Ledger // of Sessions; nil = no limit
	Tickets          Tickets       // policy C
	// Runs erases the orchestrations of a request with it; nil = there are none.
	Runs     history.RequestRuns
	Feedback history.FeedbackStore
	Owner    string // names this process in stored requests
	// IsLive reports whether the process with this owner id, which is this one or another
	// one that uses the store, may execute requests; nil = no other process uses it.
	IsLive func(owner string) bool
	// Messages sends messages to the other processes that use the store; nil = there
	// are none.
	Messages asyncrun.Messenger
}

// setDefaults validates the storage and replaces the zero values.
func (s *Storage) setDefaults(logger *slog.Logger) error {
	if s.Requests != nil && s.Owner == "" {
		return errors.New("router: asynchronous requests require the name of an owner")
	}
	if s.Requests == nil {
		s.Requests = requests.Disabled()
	}
	if s.IsLive == nil {
		self := s.Owner
		s.IsLive = func(owner string) bool { return owner == self }
	}
	if s.IdempotencyQuota == nil {
		s.IdempotencyQuota = quota.Unlimited()
	}
	if s.SessionQuota == nil {
		s.SessionQuota = quota.Unlimited()
	}
	if s.AuditLog == nil {
		s.AuditLog = history.NoLog{}
	}
	if s.Runs == nil {
		s.Runs = history.NoRuns{}
	}
	if s.Feedback == nil {
		s.Feedback = feedback.NewStore(store.NoBucket{}, quota.Unlimited(), logger)
	}
	if s.Tickets == nil {
		s.Tickets = fallbackpolicy.PreviewTickets{}
	}
	return nil
}

// isShared reports whether other processes use the store.
func (s *Storage) isShared() bool { return s.Messages != nil }

func (s *Storage) messenger() asyncrun.Messenger {
	if s.Messages == nil {
		return asyncrun.NoMessages{}
	}
	return s.Messages
}

// sessionBucket stores sessions and the questions of clarifications.
type sessionBucket interface {
	session.Bucket
	session.QuestionBucket
}

func (s *Storage) sessionBucket() sessionBucket {
	if s.Sessions == nil {
		return store.NoBucket{}
	}
	return s.Sessions
}

// eventLog stores and publishes the events of asynchronous requests.
type eventLog interface {
	history.EventLog
	asyncrun.Publisher
}

func (s *Storage) eventLog() eventLog {
	if s.Events == nil {
		return history.NoEvents{}
	}
	return s.Events
}

// AuditLog contains the decisions and the responses. *audit.Log implements it.
type AuditLog interface {
	// Admit returns quota_exceeded if a request of the caller cannot be recorded.
	Admit(caller *contract.Caller) error
	history.JournalLog
	history.AuditLog
	asyncrun.AuditLog
}

// Tickets collects unmet demand.
type Tickets interface {
	fallbackpolicy.Tickets
	EraseRequest(ctx context.Context, requestID string) error
}
