package orchestrations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/idempotency"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/resilience"
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

// maxRuns bounds the runs that a process executes at a time. Runs that wait for a person
// do not count.
const maxRuns = 64

// Service executes runs. Its methods may be called from any goroutine.
type Service struct {
	cfg    Config
	store  *runStore
	keys   *idempotency.Keys
	engine *orchestrator.Orchestrator
	group  *run.Group

	newContext func() (context.Context, context.CancelCauseFunc) // of a run
	stopRuns   context.CancelFunc

	counts atomic.Pointer[map[contract.OrchestrationStatus]int] // of the last sweep

	mu      sync.Mutex
	running map[string]context.CancelCauseFunc
	closed  bool          // no run is begun any more
	idle    chan struct{} // closed when closed is set and running is empty
}

// New returns a Service. Close must be called.
func New(ctx context.Context, cfg Config) (*Service, error) {
	s := &Service{cfg: cfg, store: newRunStore(cfg.Bucket, cfg.Quota), running: map[string]context.CancelCauseFunc{}, idle: make(chan struct{})}
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
	s.group, s.stopRuns = run.New(base), stop
	s.newContext = func() (context.Context, context.CancelCauseFunc) { return context.WithCancelCause(base) }
	return s, nil
}

// Close stops the runs before their next call, and waits for the calls in flight until the
// context ends. Their records can be taken over.
func (s *Service) Close(ctx context.Context) {
	idle := s.rejectRuns()
	s.engine.Drain()
	select {
	case <-idle:
	case <-ctx.Done():
	}
	s.stopRuns()
	_ = s.group.Wait() // a run does not return an error
}

// rejectRuns rejects further runs. The channel is closed when none is executed.
func (s *Service) rejectRuns() (idle <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.closeIfIdle()
	}
	return s.idle
}

// closeIfIdle closes idle if there are no runs and will be none. The caller holds mu.
func (s *Service) closeIfIdle() {
	if s.closed && len(s.running) == 0 {
		close(s.idle)
	}
}

// Submission is a goal with its caller.
type Submission struct {
	Goal    *contract.Goal
	Caller  *contract.Caller
	ID      string
	TraceID string
	// Idempotency is the idempotency key of the caller; nil = none.
	Idempotency *contract.Idempotency
	// Agent is the agent of the registry whose task the goal is, and RequestID the request of
	// the task; "" = the caller's own goal.
	Agent, RequestID string
	Restricted       bool // the agent declares mcp_capabilities
	// MustResume means that the goal was submitted before, and must not be pursued again:
	// Complete only waits for its run.
	MustResume bool
}

// Submit stores a goal and begins to pursue it. If it was sent before with the same
// idempotency key, it returns the run of that time instead, with Replayed set. Errors are
// *contract.Error.
func (s *Service) Submit(ctx context.Context, sub Submission) (*contract.Orchestration, error) {
	rec, err := s.prepare(&sub)
	if err != nil {
		return nil, err
	}
	reservation, first, err := s.reserveKey(ctx, &sub)
	if err != nil {
		return nil, err
	}
	if first != "" {
		replayed, err := s.Get(ctx, first, sub.Caller)
		if err == nil {
			replayed.Replayed = true
		}
		return replayed, err
	}
	rec.KeyName = reservation.Name()
	if err := s.begin(ctx, rec, reservation); err != nil {
		return nil, err
	}
	return rec.Snapshot(), nil
}

// prepare checks a submission, and returns the record of its run.
func (s *Service) prepare(sub *Submission) (*orchestrator.Record, error) {
	if err := s.checkGoal(sub.Goal); err != nil {
		return nil, err
	}
	planner, verifier, err := s.describeModels(&sub.Goal.Constraints)
	if err != nil {
		return nil, err
	}
	if planner.Kind == contract.PlannerStatic {
		if err := s.checkPlan(sub.Goal.Constraints.Plan, verifier.Kind == contract.VerifierDeterministic); err != nil {
			return nil, err
		}
	}
	rec := s.newRecord(sub)
	rec.Planner, rec.Verifier = planner, verifier
	return rec, nil
}

// begin stores a run, and executes it in the background.
func (s *Service) begin(ctx context.Context, rec *orchestrator.Record, reservation idempotency.Reservation) error {
	runCtx, err := s.reserve(rec.ID, false)
	if err != nil {
		s.keys.Release(ctx, reservation, rec.ID)
		return err
	}
	err = s.store.create(ctx, rec)
	if err == nil {
		// The key is marked afterwards: until then, the same goal is a conflict. If this fails,
		// the stored run protects the goal, as long as it is stored.
		if err := s.keys.Start(ctx, reservation, rec.ID); err != nil {
			s.cfg.Logger.WarnContext(ctx, "an idempotency key is not marked as used", "orchestration_id", rec.ID, "error", err)
		}
		s.start(runCtx, rec)
		return nil
	}
	if errors.Is(err, store.ErrUnavailable) {
		s.withdraw(rec.ID) // it keeps its key, because it may be stored
	} else {
		s.release(rec.ID)
		s.keys.Release(ctx, reservation, rec.ID)
	}
	if e, ok := errors.AsType[*contract.Error](err); ok {
		return e
	}
	return store.CallerError(ctx, s.cfg.Logger, "the goal cannot be stored", err)
}

// withdraw cancels a run that may be stored although its caller got an error, and then
// releases it. Until then it counts as running, so that the sweep does not execute it.
func (s *Service) withdraw(id string) {
	s.group.Go("withdraw orchestration "+id, func(ctx context.Context) error {
		defer s.release(id)
		backoff := resilience.Backoff{Min: minWritePause, Max: maxWritePause}
		for {
			rec, err := s.store.cancelCreated(ctx, id, s.cfg.Owner)
			if errors.Is(err, store.ErrNotFound) {
				rec, err = nil, s.store.forget(ctx, id)
			}
			switch {
			case rec != nil && err == nil:
				s.conclude(ctx, rec)
				return nil
			case err == nil, errors.Is(err, orchestrator.ErrNotOwner):
				return nil
			case !store.IsTemporary(err):
				s.cfg.Logger.Error("an orchestration whose caller got an error cannot be cancelled", "orchestration_id", id, "error", err)
				return nil
			case !backoff.Sleep(ctx):
				return nil
			}
		}
	})
}

// Pauses between two attempts to cancel a run.
const (
	minWritePause = 100 * time.Millisecond
	maxWritePause = 5 * time.Second
)

// newRecord returns the record of a run that begins now.
func (s *Service) newRecord(sub *Submission) *orchestrator.Record {
	now := time.Now().UTC()
	timeout := s.cfg.Timeout
	if ms := sub.Goal.Constraints.TimeoutMS; ms > 0 {
		timeout = time.Duration(ms) * time.Millisecond
	}
	return &orchestrator.Record{
		ID: sub.ID, TraceID: cmp.Or(sub.TraceID, strings.ReplaceAll(sub.ID, "-", "")),
		Caller: *sub.Caller, Agent: sub.Agent, RequestID: sub.RequestID, Restricted: sub.Restricted, Goal: *sub.Goal,
		State: orchestrator.StateInit, Owner: s.cfg.Owner, CreatedAt: now, Deadline: now.Add(timeout),
	}
}

// checkGoal returns the mistakes in a goal that its struct tags do not report.
func (s *Service) checkGoal(goal *contract.Goal) error {
	invalid := contract.InvalidRequestDetails(nil)
	if len(goal.EnvContext) > 0 && goal.EnvContext[0] != '{' {
		invalid.Add("/env_context", "must be an object")
	}
	if ms := goal.Constraints.TimeoutMS; time.Duration(ms)*time.Millisecond > s.cfg.Timeout {
		invalid.Add("/constraints/timeout_ms", fmt.Sprintf("must be at most %d (orchestrator.budgets.timeout_ms)", s.cfg.Timeout.Milliseconds()))
	}
	addActionMistakes(invalid, "/constraints/allow/", goal.Constraints.Allow)
	addActionMistakes(invalid, "/constraints/deny/", goal.Constraints.Deny)
	if len(invalid.Details) > 0 {
		return invalid
	}
	return nil
}

// addActionMistakes adds the patterns that cannot match any action, because the name of
// an action is that of a server, a dot and that of a tool. Such a pattern in deny would
// look as if it protected a tool.
func addActionMistakes(invalid *contract.Error, pointer string, patterns []string) {
	for i, pattern := range patterns {
		if !strings.ContainsAny(pattern, ".*") {
			invalid.Add(pointer+strconv.Itoa(i), fmt.Sprintf("%q matches no action: an action is SERVER.TOOL, and SERVER.* is all tools of a server", pattern))
		}
	}
}

// checkPlan checks the plan of a request as far as it is possible without the tools.
func (s *Service) checkPlan(raw []byte, needCriteria bool) error {
	if len(raw) == 0 {
		return nil // the run reports it
	}
	plan, mistakes := orchestrator.ParsePlan(raw)
	if len(mistakes) == 0 {
		mistakes = orchestrator.CheckPlan(plan, orchestrator.PlanRules{MaxSteps: s.cfg.Budgets.Steps, NeedCriteria: needCriteria})
	}
	if len(mistakes) == 0 {
		return nil
	}
	invalid := &contract.Error{Code: contract.CodeInvalidRequest, Message: "the plan is not valid"}
	for _, m := range mistakes {
		invalid.Add("/constraints/plan"+m.Pointer, m.Detail)
	}
	return invalid
}

// reserve counts a run that this process is about to execute, and returns its context. A
// run that has begun elsewhere is executed in any case.
func (s *Service) reserve(id string, begun bool) (context.Context, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, &contract.Error{Code: contract.CodeOverloaded, Message: "the server is stopping"}
	case s.running[id] != nil:
		return nil, errRunning
	case !begun && len(s.running) >= maxRuns:
		return nil, &contract.Error{Code: contract.CodeOverloaded, Message: fmt.Sprintf("%d orchestrations are running, the maximum", maxRuns)}
	}
	ctx, cancel := s.newContext()
	s.running[id] = cancel
	return ctx, nil
}

var errRunning = errors.New("this process executes the run")

func (s *Service) release(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.running[id]; cancel != nil {
		cancel(nil)
		delete(s.running, id)
		s.closeIfIdle()
	}
}

// start executes a run in the background.
func (s *Service) start(ctx context.Context, rec *orchestrator.Record) {
	s.group.Go("orchestration", func(context.Context) error {
		done, err := s.execute(ctx, rec)
		if err == nil && done.State.Terminal() {
			s.conclude(context.WithoutCancel(ctx), done) // before the release, so that the sweep does not do it as well
		}
		s.release(rec.ID)
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
