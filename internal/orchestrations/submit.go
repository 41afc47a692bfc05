package orchestrations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/idempotency"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/orchestrator"
)

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
	runCtx, err := s.running.reserve(rec.ID, false)
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
		s.running.release(rec.ID)
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
		defer s.running.release(id)
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
