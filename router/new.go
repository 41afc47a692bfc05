package router

import (
	"context"
	"errors"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/acceptance"
	"github.com/caprouter/caprouter/internal/asyncrun"
	"github.com/caprouter/caprouter/internal/decisionlog"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/fallbackpolicy"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/idempotency"
	"github.com/caprouter/caprouter/internal/inflight"
	"github.com/caprouter/caprouter/internal/session"
)

// New returns a Router without a View. SetView must be called before Handle.
func New(cfg Config, c Classifier, d execution.Dispatcher) (*Router, error) {
	if c == nil || d == nil {
		return nil, errors.New("router: a classifier and a dispatcher are required")
	}
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	storage, events := &cfg.Storage, cfg.Storage.eventLog()
	r := &Router{
		cfg: cfg, classifier: c,
		sessions:  session.NewStore(storage.sessionBucket(), storage.SessionQuota, cfg.Logger),
		questions: session.NewQuestions(storage.sessionBucket(), storage.SessionQuota, cfg.Logger),
		fallback: fallbackpolicy.New(fallbackpolicy.Config{
			Model: cfg.Model, Answers: cfg.Answers, Tickets: storage.Tickets, AnswerByDefault: cfg.AnswerByDefault,
			Logger: cfg.Logger, Now: cfg.Now,
		}),
		inflight: inflight.NewTable(),
		reporter: decisionlog.NewReporter(cfg.Logger, cfg.Metrics),
		peers: asyncrun.NewPeers(asyncrun.PeerConfig{
			Messages: storage.messenger(), Store: storage.Requests, AuditLog: storage.AuditLog, Owner: storage.Owner, IsLive: storage.IsLive, Logger: cfg.Logger,
		}),
	}
	r.acceptor = acceptance.New(acceptance.Config{
		Async: storage.Requests.Enabled(), Timeout: cfg.Timeout, SessionTrigger: cfg.SessionTrigger,
		Sessions: r.sessions, Questions: r.questions, Fallback: r.fallback, Redactor: cfg.Redactor, NewID: cfg.NewID,
	})
	r.journal = newJournal(&cfg)
	r.callbacks = newCallbacks(&cfg, r.inflight, r.peers)
	r.executor = execution.New(d, r.callbacks, cfg.NewID, cfg.Now)
	r.async = newRunner(r, events)
	r.history = history.New(history.Config{
		Log: storage.AuditLog, Recording: r.journal, Requests: storage.Requests, InFlight: r.inflight, Events: events,
		Sessions: r.sessions, Questions: r.questions, Tickets: storage.Tickets, Runs: storage.Runs, Feedback: storage.Feedback, Canceller: r.async, Peers: r.peers,
		IsLive: storage.IsLive, Catalogue: r.view.catalogue, OnFeedback: cfg.Metrics.RecordFeedback, MaskText: cfg.Redactor.RedactText, Logger: cfg.Logger, Now: cfg.Now,
	})
	r.keys = newKeys(r)
	return r, nil
}

// newJournal returns the journal of decisions, which names this process in them if others
// use the store.
func newJournal(cfg *Config) *history.Journal {
	decidedBy := ""
	if cfg.Storage.isShared() {
		decidedBy = cfg.Storage.Owner
	}
	return history.NewJournal(cfg.Storage.AuditLog, decidedBy, cfg.Storage.AuditOptional, cfg.Logger, cfg.Now)
}

// recordPollInterval is the first pause after which a request that waits for a callback reads
// its record, if several processes share the store.
const recordPollInterval = 3 * time.Second

func newCallbacks(cfg *Config, executing *inflight.Table, peers *asyncrun.Peers) *execution.Callbacks {
	storage := &cfg.Storage
	callbacks := execution.CallbackConfig{
		Results:  &execution.StoredResults{Store: storage.Requests, Logger: cfg.Logger},
		Requests: storage.Requests, InFlight: executing, Owner: storage.Owner, Peers: execution.NoPeers{},
		Logger: cfg.Logger,
	}
	if storage.isShared() {
		callbacks.Peers, callbacks.Poll = peers, recordPollInterval
	}
	return execution.NewCallbacks(callbacks)
}

// newRunner returns the runner of asynchronous requests. It uses the idempotency keys of
// the router when requests run, because the keys need the runner.
func newRunner(r *Router, events asyncrun.Publisher) *asyncrun.Runner {
	cfg, storage := &r.cfg, &r.cfg.Storage
	return asyncrun.New(asyncrun.Config{
		Store: storage.Requests, Owner: storage.Owner, IsLive: storage.IsLive, AuditLog: storage.AuditLog, Journal: r.journal, Events: events,
		Inflight: r.inflight, Peers: r.peers, Executor: r.executor, Tracer: cfg.Tracer, Logger: cfg.Logger, Now: cfg.Now,
		StartKey: func(ctx context.Context, keyName, requestID string) error {
			return r.keys.Start(ctx, idempotency.RestoreReservation(keyName), requestID)
		},
		EndKey: func(ctx context.Context, keyName string, resp *contract.Response) {
			r.keys.End(ctx, idempotency.RestoreReservation(keyName), resp)
		},
	}, asyncPipeline{r})
}

func newKeys(r *Router) keyReserver {
	storage := &r.cfg.Storage
	if storage.IdempotencyKeys == nil {
		return idempotency.NoKeys{}
	}
	return idempotency.New(idempotency.Config{
		Bucket: storage.IdempotencyKeys, Shares: storage.IdempotencyQuota, Requests: keyedRequests{r.history, storage.Requests, r.async},
		Owner: storage.Owner, IsLive: storage.IsLive, Logger: r.cfg.Logger, Now: r.cfg.Now,
	})
}
