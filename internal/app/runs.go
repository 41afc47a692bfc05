package app

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/dispatch/orchestratortarget"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/orchestrations"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/orchestrator"
	"github.com/caprouter/caprouter/orchestrator/planner"
	"github.com/caprouter/caprouter/orchestrator/policy"
	"github.com/caprouter/caprouter/prompts"
)

// openRuns creates the service of orchestrations. It starts no run.
func (c *serverCore) openRuns(ctx context.Context, opts *Options, redactor *redact.Redactor) (*orchestrations.Service, error) {
	cfg, p := &c.cfg.Orchestrator, c.persistence
	rules, err := policy.Default()
	if cfg.PolicyFile != "" {
		rules, err = policy.Load(cfg.PolicyFile)
	}
	if err != nil {
		return nil, fmt.Errorf("orchestrator.policy_file: %w", err)
	}
	models, err := c.openRunModels(opts, redactor)
	if err != nil {
		return nil, err
	}
	metrics := c.telemetry.Metrics()
	service, err := orchestrations.New(ctx, orchestrations.Config{
		Bucket: p.buckets.runs, Quota: p.quotas.runs, Owner: p.owner, IsLive: p.members.IsLive, Messages: p.store,
		IdempotencyKeys: p.buckets.idempotencyKeys, IdempotencyQuota: p.quotas.idempotencyKeys,
		Servers: c.mcp, Tools: c.mcp, Journal: c.newToolJournal(), Contents: p.auditLog, Redactor: redactor, Enforcer: rules,
		Models:     models,
		Planner:    contract.RunModel{Kind: cfg.Planner.Kind, Endpoint: cfg.Planner.Endpoint, Model: c.cfg.LLM.RunModelName(cfg.Planner.Kind, cfg.Planner.Model), PromptVersion: prompts.PlannerVersion},
		Verifier:   contract.RunModel{Kind: cfg.Verifier.Kind, Endpoint: cfg.Verifier.Endpoint, Model: c.cfg.LLM.RunModelName(cfg.Verifier.Kind, cfg.Verifier.Model), PromptVersion: prompts.VerifierVersion},
		Budgets:    orchestrator.Budgets{Steps: cfg.Budgets.Steps, Replans: cfg.Budgets.Replans, Retries: cfg.Budgets.Retries},
		Timeout:    time.Duration(cfg.Budgets.TimeoutMS) * time.Millisecond,
		GateTTL:    time.Duration(cfg.GateTTLS) * time.Second,
		BlockGates: cfg.OnGate == config.GateBlock, SelfApproval: cfg.ApproveOwn || c.cfg.Auth.Mode == config.AuthNone, Meter: metrics, Logger: c.log,
	})
	if err == nil {
		metrics.ObserveOpenRuns(service.CountOpen)
	}
	return service, err
}

// goalRunner pursues the goals of tasks of agents.
type goalRunner struct{ core *serverCore }

// RunForTask implements orchestratortarget.Runner. The run has the id of the task, so that a
// task that is sent again finds its run.
func (g goalRunner) RunForTask(ctx context.Context, goal *contract.Goal, call dispatch.Call) (*contract.Orchestration, error) {
	return g.core.runs.Complete(ctx, orchestrations.Submission{
		Goal: goal, Caller: call.Caller, ID: call.Task.TaskID, TraceID: call.Task.TraceID,
		Agent: call.Agent.ID, RequestID: call.Task.RequestID, Restricted: len(call.Agent.MCPCapabilities) > 0,
		MustResume: call.MustResume(),
	}, func(gate *contract.ApprovalGate) {
		grant := contract.TaskGrant{AgentID: call.Agent.ID, RequestID: call.Task.RequestID, TaskID: call.Task.TaskID}
		g.core.router.Callbacks().EmitProgress(grant, orchestratortarget.NewGateProgress(call.Task.TaskID, gate))
	})
}

// noGoals pursues no goals.
type noGoals struct{}

// RunForTask implements orchestratortarget.Runner.
func (noGoals) RunForTask(context.Context, *contract.Goal, dispatch.Call) (*contract.Orchestration, error) {
	return nil, &contract.Error{Code: contract.CodeToolUnavailable, Message: "goals are pursued by a running router only: use --url"}
}

// requestRuns are the orchestrations of requests. It implements history.RequestRuns.
type requestRuns struct{ core *serverCore }

// CancelRuns implements history.RequestRuns.
func (r requestRuns) CancelRuns(ctx context.Context, requestID, by string) (bool, error) {
	return r.core.runs.Eraser().CancelRuns(ctx, requestID, by)
}

// EndedRuns implements history.RequestRuns.
func (r requestRuns) EndedRuns(ctx context.Context, requestID string) (history.EndedRuns, error) {
	return r.core.runs.Eraser().EndedRuns(ctx, requestID)
}

// DeleteRun implements history.RequestRuns.
func (r requestRuns) DeleteRun(ctx context.Context, id string) error {
	return r.core.runs.Eraser().DeleteRun(ctx, id)
}

// openRunModels returns the planners and verifiers of orchestrations, and calls none.
func (c *serverCore) openRunModels(opts *Options, redactor *redact.Redactor) (*planner.Models, error) {
	cfg, key := &c.cfg.Orchestrator, c.cfg.LLM.APIKey(opts.EnvLookup())
	if err := c.cfg.LLM.CheckKeyOwner(key); err != nil {
		return nil, err
	}
	ref := func(kind, endpoint, model string) planner.ModelRef {
		if kind == c.cfg.LLM.Provider {
			endpoint = cmp.Or(endpoint, c.cfg.LLM.BaseURL)
		}
		return planner.ModelRef{Kind: kind, Endpoint: endpoint, Model: c.cfg.LLM.RunModelName(kind, model)}
	}
	metrics := c.telemetry.Metrics()
	return planner.NewModels(planner.ModelsConfig{
		Planner:          ref(cfg.Planner.Kind, cfg.Planner.Endpoint, cfg.Planner.Model),
		Verifier:         ref(cfg.Verifier.Kind, cfg.Verifier.Endpoint, cfg.Verifier.Model),
		EndpointsAllowed: cfg.EndpointsAllowed,
		Settings:         modelConfig(&c.cfg, opts, key), Client: llm.ClientConfig{Budget: c.tokens}, Mask: redactor,
		Open: func(settings llm.Config) (llm.Provider, error) {
			if settings.Provider != c.cfg.LLM.Provider || settings.BaseURL != c.cfg.LLM.BaseURL {
				settings.APIKey, settings.KeyEnv = llm.Secret{}, "" // the key belongs to the server of llm
			}
			return openProvider(settings)
		},
		Observe: func(_ planner.ModelRef, call llm.Call) {
			metrics.RecordModelCall(call.Purpose, call.Outcome, call.Tokens, call.Latency)
		},
	})
}
