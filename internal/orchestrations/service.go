package orchestrations

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/idempotency"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/orchestrator"
)

// Config of a Service. Planner, Verifier, Budgets, GateTTL, BlockGates and SelfApproval may be
// zero; all other fields are required.
type Config struct {
	Bucket   *store.Bucket
	Quota    *quota.Ledger
	Owner    string                  // names this process
	IsLive   func(owner string) bool // whether the process with this owner id may execute runs
	Messages Messenger
	// IdempotencyKeys contains the keys of goals, and IdempotencyQuota counts their bytes.
	IdempotencyKeys  *store.Bucket
	IdempotencyQuota *quota.Ledger

	Servers  MCPServers
	Tools    ToolCaller
	Journal  Journal
	Contents ContentEraser // of the audit log
	Redactor *redact.Redactor
	Enforcer orchestrator.Enforcer
	Models   orchestrator.Models
	// Planner and Verifier are the models of the operator, as results describe them; Kind
	// "" = none.
	Planner, Verifier contract.RunModel

	Budgets    orchestrator.Budgets
	Timeout    time.Duration // of a goal without timeout_ms, and the longest one
	GateTTL    time.Duration // of a call that waits for an approval; 0 = an hour
	BlockGates bool          // end a run at a call that needs an approval, instead of waiting
	// SelfApproval permits callers to decide about the gates of their own runs.
	SelfApproval bool
	Meter        Meter
	Logger       *slog.Logger
}

// Meter counts the runs that end. *telemetry.Metrics implements it.
type Meter interface {
	RecordOrchestration(status contract.OrchestrationStatus, took time.Duration)
}

// Messenger sends messages to the other processes that share the store, which may be lost.
// *store.Store implements it.
type Messenger interface {
	Broadcast(topic string, data []byte) error
	Subscribe(ctx context.Context, topic string, fn func(data []byte)) error
}

// Service executes runs. Its methods may be called from any goroutine.
type Service struct {
	cfg    Config
	store  *runStore
	keys   *idempotency.Keys
	engine *orchestrator.Orchestrator
	group  *run.Group

	running  *runningRuns
	stopRuns context.CancelFunc // ends their contexts

	counts atomic.Pointer[map[contract.OrchestrationStatus]int] // of the last sweep
}

// New returns a Service. Close must be called.
func New(ctx context.Context, cfg Config) (*Service, error) {
	s := &Service{cfg: cfg, store: newRunStore(cfg.Bucket, cfg.Quota)}
	s.keys = idempotency.New(idempotency.Config{
		Bucket: cfg.IdempotencyKeys, Shares: cfg.IdempotencyQuota, Requests: keyedRuns{s.store},
		Owner: cfg.Owner, IsLive: cfg.IsLive, Logger: cfg.Logger, Now: time.Now,
	})
	var err error
	s.engine, err = orchestrator.New(orchestrator.Config{
		Registry: Gateway{cfg.Servers}, Invoker: toolInvoker{cfg.Tools}, Enforcer: cfg.Enforcer, Models: cfg.Models, Store: s.store,
		Auditor: auditor{cfg.Journal, cfg.Redactor}, Owner: cfg.Owner, Budgets: cfg.Budgets, GateTTL: cfg.GateTTL, BlockGates: cfg.BlockGates,
		Logger: cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	base, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.group, s.running, s.stopRuns = run.New(base), newRunningRuns(base), stop
	return s, nil
}

// Close stops the runs before their next call, and waits for the calls in flight until the
// context ends. Their records can be taken over.
func (s *Service) Close(ctx context.Context) {
	idle := s.running.close()
	s.engine.Drain()
	select {
	case <-idle:
	case <-ctx.Done():
	}
	s.stopRuns()
	_ = s.group.Wait() // a run does not return an error
}

// start executes a run in the background.
func (s *Service) start(ctx context.Context, rec *orchestrator.Record) {
	s.group.Go("orchestration", func(context.Context) error {
		done, err := s.execute(ctx, rec)
		if err == nil && done.State.Terminal() {
			s.conclude(context.WithoutCancel(ctx), done) // before the release, so that the sweep does not do it as well
		}
		s.running.release(rec.ID)
		switch {
		case err != nil:
			s.cfg.Logger.Debug("an orchestration is not continued here", "orchestration_id", rec.ID, "error", err)
		case done.NeedsWork(time.Now()): // a decision came when it began to wait
			s.tryResume(rec.ID)
		}
		return nil
	})
}

// execute executes a run, and ends it if that panics: otherwise every process that takes the
// run over would panic as well.
func (s *Service) execute(ctx context.Context, rec *orchestrator.Record) (done *orchestrator.Record, err error) {
	defer func() {
		if v := recover(); v != nil {
			s.cfg.Logger.Error("panic in an orchestration", "orchestration_id", rec.ID, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			done, err = s.engine.Abort(ctx, rec)
		}
	}()
	return s.engine.Run(ctx, rec)
}

// concludeTimeout bounds the writes after the end of a run.
const concludeTimeout = 10 * time.Second

// conclude writes the end of a run to the audit log and to its idempotency key, and removes it
// from the index of open ones. If the first or the last write fails, the sweep concludes it.
func (s *Service) conclude(ctx context.Context, rec *orchestrator.Record) {
	ctx, cancel := context.WithTimeout(ctx, concludeTimeout)
	defer cancel()
	last := rec.Events[len(rec.Events)-1]
	last.Rule, last.Action = string(rec.Reason), ""
	err := auditor{s.cfg.Journal, s.cfg.Redactor}.RecordRunEvent(ctx, rec, last)
	if err == nil {
		s.recordEnd(ctx, rec)
		err = s.store.close(ctx, rec.ID)
	}
	if err != nil {
		s.cfg.Logger.Error("the end of an orchestration is not recorded yet", "orchestration_id", rec.ID, "error", err)
		return
	}
	s.cfg.Meter.RecordOrchestration(rec.Status(), rec.EndedAt.Sub(rec.CreatedAt))
	s.cfg.Logger.Info("orchestration", "orchestration_id", rec.ID, "status", rec.Status(), "reason", rec.Reason, "calls", rec.Calls,
		"plans", rec.Plans, "took_ms", rec.EndedAt.Sub(rec.CreatedAt).Milliseconds())
}

// LoadQuota counts the records that were stored before the start.
func (s *Service) LoadQuota(ctx context.Context) error { return s.store.loadQuota(ctx) }
