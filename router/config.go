package router

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/asyncrun"
	"github.com/caprouter/caprouter/internal/events"
	"github.com/caprouter/caprouter/internal/fallbackpolicy"
	"github.com/caprouter/caprouter/internal/feedback"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/modeltext"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/session"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/telemetry"
)

// DefaultTimeout bounds a request that does not set a timeout.
const DefaultTimeout = 30 * time.Second

// Config contains everything that New does not require. The zero value works.
type Config struct {
	Timeout  time.Duration    // of a request that does not set one; 0 = DefaultTimeout
	Redactor *redact.Redactor // nil = mask all kinds
	// SessionTrigger specifies when a request of a session is classified again:
	// session.EveryRequest (also if empty), UserTurn or NewSession.
	SessionTrigger string
	Storage        Storage
	Model          modeltext.Model            // of direct answers (policy A) and summaries; nil = none
	Answers        fallbackpolicy.AnswerLimit // nil = no limit
	// SummarizeResults lets the model combine the results of several agents into the answer.
	SummarizeResults bool
	// AnswerByDefault selects policy A for a registry whose policy is auto.
	AnswerByDefault bool

	// IsRevoked reports whether the token of a caller was signed by a key that is
	// revoked; StopRevoked then ends its requests. nil = they go on.
	IsRevoked func(*contract.Caller) bool

	Logger  *slog.Logger       // nil = discard
	Metrics *telemetry.Metrics // nil = telemetry.DiscardMetrics()
	Tracer  *telemetry.Tracer  // of asynchronous requests; nil = their traces are not recorded
	Now     func() time.Time   // nil = time.Now
	NewID   func() string      // nil = NewID
}

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

// Classifier proposes a classification. It does not fail: its worst proposal is
// contract.Unknown, with the reason.
type Classifier interface {
	Classify(ctx context.Context, in classifier.Input) contract.Classification
}

// setDefaults validates the configuration and replaces all zero values.
func (cfg *Config) setDefaults() error {
	if cfg.Timeout < 0 || cfg.Timeout > contract.MaxTimeoutMS*time.Millisecond {
		return errors.New("router: the timeout must be between 0 and 10 minutes")
	}
	if cfg.Storage.Requests != nil && cfg.Storage.Owner == "" {
		return errors.New("router: asynchronous requests require the name of an owner")
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Metrics == nil {
		cfg.Metrics = telemetry.DiscardMetrics()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.NewID == nil {
		cfg.NewID = NewID
	}
	if cfg.IsRevoked == nil {
		cfg.IsRevoked = func(*contract.Caller) bool { return false }
	}
	if cfg.Answers == nil {
		cfg.Answers = fallbackpolicy.Unlimited{}
	}
	if cfg.Storage.Requests == nil {
		cfg.Storage.Requests = requests.Disabled()
	}
	if cfg.Storage.IsLive == nil {
		self := cfg.Storage.Owner
		cfg.Storage.IsLive = func(owner string) bool { return owner == self }
	}
	if cfg.Storage.IdempotencyQuota == nil {
		cfg.Storage.IdempotencyQuota = quota.Unlimited()
	}
	if cfg.Storage.SessionQuota == nil {
		cfg.Storage.SessionQuota = quota.Unlimited()
	}
	if cfg.Storage.AuditLog == nil {
		cfg.Storage.AuditLog = history.NoLog{}
	}
	if cfg.Storage.Runs == nil {
		cfg.Storage.Runs = history.NoRuns{}
	}
	if cfg.Storage.Feedback == nil {
		cfg.Storage.Feedback = feedback.NewStore(store.NoBucket{}, quota.Unlimited(), cfg.Logger)
	}
	if cfg.Storage.Tickets == nil {
		cfg.Storage.Tickets = fallbackpolicy.PreviewTickets{}
	}
	if cfg.Redactor == nil {
		var err error
		if cfg.Redactor, err = redact.New(redact.Config{}); err != nil {
			return fmt.Errorf("router: %w", err)
		}
	}
	return nil
}

// NewID returns a UUIDv7 (RFC 9562 §5.7) for a request, a decision or a task.
func NewID() string {
	// NewV7 fails only if the random source of the system does, and then
	// crypto/rand has ended the process already.
	id := uuid.Must(uuid.NewV7())
	// If the clock is set back, the library continues from its latest time. Records are found
	// by the time in the id, so it must be that of the clock, by which they are stored.
	now := time.Now()
	if at := time.Unix(id.Time().UnixTime()); at.Sub(now) > maxIDLead {
		var ms [8]byte
		binary.BigEndian.PutUint64(ms[:], uint64(now.UnixMilli()))
		copy(id[:6], ms[2:])
	}
	return id.String()
}

// maxIDLead is how far an id may be ahead of the clock: many ids of one millisecond are
// counted up.
const maxIDLead = time.Second
