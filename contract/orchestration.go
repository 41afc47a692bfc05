package contract

import (
	"encoding/json"
	"time"
)

// Limits of an orchestration.
const (
	MaxGoalBytes     = 16 << 10  // goal
	MaxPlanBytes     = 256 << 10 // a plan as JSON
	MaxPlanSteps     = 100       // steps of a plan, whatever the budget of the operator
	MaxStepCriteria  = 20        // success_criteria of a step
	MaxStepID        = 64        // bytes of the id of a step
	MaxRationaleSize = 4 << 10   // bytes of the rationale of a step
)

// Goal is the body of POST /api/v1/orchestrations. Only goal is required.
type Goal struct {
	Goal        string          `json:"goal" validate:"required,max=16384"`
	Constraints GoalConstraints `json:"constraints,omitzero"`
	EnvContext  json.RawMessage `json:"env_context,omitempty"` // an object: facts for the planner
	// AvailableServers are the MCP servers that may be used; empty = all.
	AvailableServers []string `json:"available_servers,omitempty" validate:"max=100,dive,max=128"`
}

// Kinds of planners and verifiers.
const (
	PlannerStatic         = "static" // the plan is part of the request
	PlannerGemini         = "gemini"
	PlannerGenAI          = "genai"
	PlannerOpenAI         = "openai"
	VerifierDeterministic = "deterministic" // the success criteria of the plan
)

// GoalConstraints limit how a goal is pursued. Empty members have the values of the operator.
type GoalConstraints struct {
	PlannerKind      string `json:"planner_kind,omitempty" validate:"omitempty,oneof=static gemini genai openai"`
	PlannerEndpoint  string `json:"planner_endpoint,omitempty" validate:"max=2048"`
	PlannerModel     string `json:"planner_model,omitempty" validate:"max=200"`
	VerifierKind     string `json:"verifier_kind,omitempty" validate:"omitempty,oneof=deterministic gemini genai openai"`
	VerifierEndpoint string `json:"verifier_endpoint,omitempty" validate:"max=2048"`
	VerifierModel    string `json:"verifier_model,omitempty" validate:"max=200"`

	// Plan is the plan of the planner static: a Plan, of which the steps may have the names
	// mcp_action and entities for action and arguments.
	Plan     json.RawMessage `json:"plan,omitempty"`
	PlanOnly bool            `json:"plan_only,omitzero"` // return the plan and call no tool

	TimeoutMS int      `json:"timeout_ms,omitzero" validate:"min=0,max=86400000"`
	Allow     []string `json:"allow,omitempty" validate:"max=100,dive,max=400"` // patterns of the actions that may be called; empty = all
	Deny      []string `json:"deny,omitempty" validate:"max=100,dive,max=400"`  // patterns of the actions that may not
}

// Plan is what a planner returns. The keys of its JSON are those of Plan, PlanStep and
// SuccessCriterion; another key rejects the plan.
type Plan struct {
	Steps []PlanStep `json:"steps"`
}

// PlanStep is one call of a tool.
type PlanStep struct {
	ID     string `json:"id"`
	Action string `json:"action"` // server and tool, for example weather.query
	// Arguments is an object. ${steps.ID.output.PATH} in a string refers to the output of an
	// earlier step; a string that is one reference has the type of what it refers to.
	Arguments       json.RawMessage    `json:"arguments"`
	Rationale       string             `json:"rationale,omitempty"`
	DependsOn       []string           `json:"depends_on,omitempty"`
	SuccessCriteria []SuccessCriterion `json:"success_criteria,omitempty"`
}

// SuccessCriterion is a condition on the output of a step: Contains, or Schema, or Equals
// with or without JSONPath.
type SuccessCriterion struct {
	Contains string          `json:"contains,omitempty"` // the text of the output contains it
	JSONPath string          `json:"jsonpath,omitempty"` // for example $.items[0].name
	Equals   json.RawMessage `json:"equals,omitzero"`    // the output, or the value at JSONPath, is equal
	Schema   json.RawMessage `json:"schema,omitzero"`    // the output matches the JSON Schema
}

// OrchestrationStatus is the status of a run. The terminal ones are also
// states of the run.
type OrchestrationStatus string

// Statuses of an Orchestration.
const (
	OrchestrationRunning  OrchestrationStatus = "running"
	OrchestrationWaiting  OrchestrationStatus = "waiting_approval" // a gate waits for a person
	OrchestrationDone     OrchestrationStatus = "DONE"             // the goal is reached and verified
	OrchestrationFailed   OrchestrationStatus = "FAILED"           // the outputs do not reach the goal, or the run was cancelled
	OrchestrationBlocked  OrchestrationStatus = "BLOCKED"          // a policy or a person does not permit a call
	OrchestrationDegraded OrchestrationStatus = "DEGRADED"         // something that the run needs is not available or not valid
)

// Terminal reports whether the run has ended.
func (s OrchestrationStatus) Terminal() bool {
	switch s {
	case OrchestrationDone, OrchestrationFailed, OrchestrationBlocked, OrchestrationDegraded:
		return true
	case OrchestrationRunning, OrchestrationWaiting:
	}
	return false
}

// RunReason is why a run ended as it did. It is empty for DONE.
type RunReason string

// Reasons of BLOCKED.
const (
	ReasonPolicyBlocked  RunReason = "policy_blocked"  // the policy denies a call
	ReasonGateDenied     RunReason = "gate_denied"     // a person denied a call
	ReasonGateExpired    RunReason = "gate_expired"    // there was no decision in time
	ReasonGateUnattended RunReason = "gate_unattended" // a call needs an approval, and on_gate is block
	ReasonNotAuthorized  RunReason = "not_authorized"  // the caller may call none of the tools
)

// Reasons of DEGRADED.
const (
	ReasonNoServers            RunReason = "no_mcp_servers_available"
	ReasonNoTools              RunReason = "no_tools_available" // the servers have none that can be called
	ReasonPlannerNotConfigured RunReason = "planner_not_configured"
	ReasonPlannerFailed        RunReason = "planner_failed" // no reply of the model
	ReasonPlanInvalid          RunReason = "plan_invalid"   // keys, steps, references or dependencies
	ReasonSchemaInvalid        RunReason = "schema_invalid" // arguments or results do not match the schema of the tool
	ReasonCallFailed           RunReason = "call_failed"    // of a call that must not be repeated
	ReasonRetryBudget          RunReason = "retry_budget_exhausted"
	ReasonStepBudget           RunReason = "step_budget_exhausted"
	ReasonTimeout              RunReason = "timeout"
	ReasonOutcomeUnknown       RunReason = "outcome_unknown" // a call may have been executed, and must not be repeated
	ReasonVerifierFailed       RunReason = "verifier_failed" // no reply of the model
	ReasonAuditUnavailable     RunReason = "audit_unavailable"
	ReasonInternal             RunReason = "internal"
)

// Reasons of FAILED.
const (
	ReasonVerificationFailed RunReason = "verification_failed"
	ReasonCancelled          RunReason = "cancelled"
)

// Orchestration is the state of a run, and its result when it has ended.
type Orchestration struct {
	OrchestrationID string              `json:"orchestration_id"`
	TraceID         string              `json:"trace_id"`
	Status          OrchestrationStatus `json:"status"`
	State           string              `json:"state"` // of the state machine, for example EXECUTE
	Reason          RunReason           `json:"reason,omitempty"`
	Goal            string              `json:"goal"`
	Plan            *Plan               `json:"plan"` // the last one; null before there is one
	ToolOutputs     []ToolOutput        `json:"tool_outputs"`
	Gates           []ApprovalGate      `json:"gates,omitempty"`
	Provenance      Provenance          `json:"provenance"`
	AuditTrail      []RunEvent          `json:"audit_trail"`
	Errors          []RunError          `json:"errors"`
	CreatedAt       time.Time           `json:"created_at"`
	EndedAt         time.Time           `json:"ended_at,omitzero"`

	Replayed bool `json:"-"` // run of an earlier goal with the same idempotency key
}

// UndecidedGates returns the calls that wait for a person, or waited when the run ended.
func (o *Orchestration) UndecidedGates() []ApprovalGate {
	var gates []ApprovalGate
	for i := range o.Gates {
		if o.Gates[i].Decision == "" {
			gates = append(gates, o.Gates[i])
		}
	}
	return gates
}

// RunQuery filters orchestrations. Zero members select all.
type RunQuery struct {
	Status OrchestrationStatus
	Limit  int    // 0 = 100
	Cursor string // of the previous page
}

// RunSummary is an orchestration in a list.
type RunSummary struct {
	OrchestrationID string              `json:"orchestration_id"`
	Status          OrchestrationStatus `json:"status"`
	State           string              `json:"state"`
	Reason          RunReason           `json:"reason,omitempty"`
	Goal            string              `json:"goal"`            // cut after 200 characters
	Gates           []ApprovalGate      `json:"gates,omitempty"` // those that wait for a person
	CreatedAt       time.Time           `json:"created_at"`
	EndedAt         time.Time           `json:"ended_at,omitzero"`
}

// RunPage is the response of GET /api/v1/orchestrations.
type RunPage struct {
	Orchestrations []RunSummary `json:"orchestrations"`
	NextCursor     string       `json:"next_cursor"` // "" on the last page
}

// Statuses of a ToolOutput.
const (
	OutputOK      = "ok"
	OutputError   = "error"   // the tool, its server or the gateway reports an error
	OutputUnknown = "unknown" // the call may have been executed
)

// ToolOutput is what a step has returned.
type ToolOutput struct {
	StepID    string          `json:"step_id"`
	Action    string          `json:"action"`
	Plan      int             `json:"plan"` // number of the plan that the step belongs to, from 1
	Status    string          `json:"status"`
	Arguments json.RawMessage `json:"arguments"` // with the values of its references
	Result    *ActionResult   `json:"result,omitempty"`
	Error     *ActionError    `json:"error,omitempty"`
	Attempts  int             `json:"attempts"`
	LatencyMS int64           `json:"latency_ms"`
}

// Decisions about an ApprovalGate.
const (
	GateApprove = "approve"
	GateDeny    = "deny"
	GateExpired = "expired" // there was no decision in time
)

// ApprovalGate is a call that waits for a person, or has waited.
type ApprovalGate struct {
	StepID      string    `json:"step_id"`
	Action      string    `json:"action"`
	Rule        string    `json:"rule"` // of the policy
	Reason      string    `json:"reason"`
	RequestedAt time.Time `json:"requested_at"`
	ExpiresAt   time.Time `json:"expires_at"`
	Decision    string    `json:"decision,omitempty"` // "" = waits
	DecidedBy   string    `json:"decided_by,omitempty"`
	DecidedAt   time.Time `json:"decided_at,omitzero"`
	Comment     string    `json:"comment,omitempty"`
}

// Approval is the body of POST /api/v1/orchestrations/{id}/approve.
type Approval struct {
	Step     string `json:"step" validate:"required,max=64"`
	Decision string `json:"decision" validate:"required,oneof=approve deny"`
	Comment  string `json:"comment,omitempty" validate:"max=1000"`
}

// Provenance describes what a result was made with.
type Provenance struct {
	Planner  RunModel    `json:"planner"`
	Verifier RunModel    `json:"verifier"`
	Servers  []ServerUse `json:"servers"`
	Plans    int         `json:"plans"`                 // how often a plan was made
	PlanHash string      `json:"plan_sha256,omitempty"` // of the last plan
	Calls    int         `json:"calls"`
	Retries  int         `json:"retries"`
}

// RunModel is a planner or a verifier.
type RunModel struct {
	Kind          string `json:"kind"` // "" = none is configured
	Model         string `json:"model,omitempty"`
	Endpoint      string `json:"endpoint,omitempty"` // "" = that of the operator or of the provider
	PromptVersion string `json:"prompt_version,omitempty"`
}

// ServerUse is an MCP server that was offered to the planner.
type ServerUse struct {
	Name      string `json:"name"`
	Transport string `json:"transport"`
	Tools     int    `json:"tools"`
}

// RunEvent is one entry of the audit trail of a run, and one event of its stream.
type RunEvent struct {
	Seq    int       `json:"seq"` // from 1
	At     time.Time `json:"at"`
	Event  string    `json:"event"` // of the state machine, for example plan_ready
	State  string    `json:"state"` // after the event
	StepID string    `json:"step_id,omitempty"`
	Action string    `json:"action,omitempty"`
	Effect string    `json:"effect,omitempty"` // of the policy: allow, deny or gate
	Rule   string    `json:"rule,omitempty"`
	Detail string    `json:"detail,omitempty"`
	By     string    `json:"by,omitempty"` // the person who decided about a gate
}

// RunError is why a run did not reach its goal, or why a step failed.
type RunError struct {
	Reason     RunReason     `json:"reason"`
	StepID     string        `json:"step_id,omitempty"`
	Code       string        `json:"error_code,omitempty"` // of the call
	Message    string        `json:"message"`
	Suggestion string        `json:"suggestion,omitempty"`
	Details    []ErrorDetail `json:"details,omitempty"` // pointers into the plan
}
