package router

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/idempotency"
	"github.com/caprouter/caprouter/internal/inflight"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/session"
	"github.com/caprouter/caprouter/internal/telemetry"
)

// DefaultTimeout is how long a request may take that names no timeout.
const DefaultTimeout = 30 * time.Second

// Config holds what New does not require; its zero value works.
type Config struct {
	Timeout  time.Duration    // of a request that names none; 0 = DefaultTimeout
	Redactor *redact.Redactor // nil = all kinds are masked
	// SessionTrigger says when a request of a session is classified anew; "" =
	// EveryRequest.
	SessionTrigger string
	Keeping        Keeping
	Model          fallback.Model // answers by policy A; nil = none
	Answers        AnswerLimit    // of each caller; nil = as many as the model gives
	// AnswerByDefault makes A the policy of a registry that leaves the choice.
	AnswerByDefault bool

	Logger  *slog.Logger       // nil = silent
	Metrics *telemetry.Metrics // nil = none
	Now     func() time.Time   // nil = time.Now
	NewID   func() string      // nil = NewID
}

// Classifier proposes what a request is. It never fails: the worst it says is
// contract.Unknown, with the reason.
type Classifier interface {
	Classify(ctx context.Context, in classifier.Input) contract.Classification
}

// New returns a Router without a View; SetView must come before Handle.
func New(cfg Config, c Classifier, d execution.Dispatcher) (*Router, error) {
	if c == nil || d == nil {
		return nil, errors.New("router: a classifier and a dispatcher are required")
	}
	if cfg.Timeout < 0 || cfg.Timeout > contract.MaxTimeoutMS*time.Millisecond {
		return nil, errors.New("router: the timeout must be between 0 and 10 minutes")
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.NewID == nil {
		cfg.NewID = NewID
	}
	if cfg.Redactor == nil {
		var err error
		if cfg.Redactor, err = redact.New(redact.Config{}); err != nil {
			return nil, fmt.Errorf("router: %w", err)
		}
	}
	if cfg.Keeping.Book != nil && cfg.Keeping.Owner == "" {
		return nil, errors.New("router: whoever works on records has a name (Keeping.Owner)")
	}
	if cfg.Keeping.Book == nil {
		cfg.Keeping.Book = requests.Disabled()
	}
	if cfg.Keeping.Trail == nil {
		cfg.Keeping.Trail = history.NoLog{}
	}
	callbacks := execution.NewCallbacks(&execution.StoredResults{Book: cfg.Keeping.Book, Logger: cfg.Logger})
	var sessions interface {
		session.Bucket
		session.QuestionBucket
	} = session.NoBucket{}
	if cfg.Keeping.Sessions != nil {
		sessions = cfg.Keeping.Sessions
	}
	r := &Router{
		sessions: session.NewStore(sessions, cfg.Logger), questions: session.NewQuestions(sessions, cfg.Logger),
		cfg: cfg, keep: cfg.Keeping, classifier: c, dispatcher: d, redactor: cfg.Redactor,
		inflight: inflight.NewTable(), journal: history.NewJournal(cfg.Keeping.Trail, cfg.Keeping.Optional, cfg.Logger, cfg.Now), callbacks: callbacks, executor: execution.New(d, callbacks, cfg.NewID, cfg.Now),
		limiter: execution.NewConcurrencyLimiter(maxAtWork), group: run.New(context.Background()),
		keys: idempotency.NoKeys{},
	}
	stored := history.Config{
		Log: cfg.Keeping.Trail, Book: cfg.Keeping.Book, InFlight: r.inflight, Events: history.NoEvents{},
		Sessions: r.sessions, Questions: r.questions, Tickets: history.NoTickets{}, Canceller: storedCanceller{r},
		Catalogue: r.catalogue, Logger: cfg.Logger, Now: cfg.Now,
	}
	if cfg.Keeping.Events != nil {
		stored.Events = cfg.Keeping.Events
	}
	if cfg.Keeping.Tickets != nil {
		stored.Tickets = cfg.Keeping.Tickets
	}
	r.history = history.New(stored)
	if cfg.Keeping.Keys != nil {
		r.keys = idempotency.New(cfg.Keeping.Keys, keyedRequests{r.history, r}, cfg.Logger, cfg.Now)
	}
	return r, nil
}

// Close ends the work nobody waits for: what is not done by the end of ctx stays
// on record and goes on with the next start. Of several calls the first one counts.
func (r *Router) Close(ctx context.Context) {
	r.closing.Do(func() {
		r.drain(ctx)
		r.group.Stop(dispatch.ErrHandedOver)
		_ = r.group.Wait() // its goroutines return nil
	})
}

// NewID returns a UUIDv7 (RFC 9562 §5.7): request, decision and task ids.
func NewID() string {
	// NewV7 fails only when the system's random source does, which crypto/rand
	// already turns into the end of the process.
	return uuid.Must(uuid.NewV7()).String()
}
