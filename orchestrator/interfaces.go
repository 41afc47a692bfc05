package orchestrator

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/caprouter/caprouter/contract"
)

// ServerRegistry lists the MCP servers and their tools. Implementations are safe for
// concurrent use.
type ServerRegistry interface {
	// ListServers returns the servers that can be used now.
	ListServers(ctx context.Context) ([]Server, error)
	// ListTools returns the names of the tools of a server.
	ListTools(ctx context.Context, server string) ([]string, error)
	// GetToolSchema returns the definition of a tool. The error is ErrNotFound if there is none.
	GetToolSchema(ctx context.Context, server, tool string) (*Tool, error)
}

// Server is an MCP server.
type Server struct {
	Name      string
	Transport string // "stdio", "http", "sse" or "rest"
	Host      string // of its URL; "" if it is a process of this machine
	NeedsAuth bool   // it rejects the credential that the operator has configured, or has none
}

// Tool is the definition of a tool. It is immutable.
type Tool struct {
	Server       string
	Name         string
	Description  string
	InputSchema  json.RawMessage // nil = none
	OutputSchema json.RawMessage // nil = none
	Annotations  json.RawMessage // as the server lists them; nil = none
	// Repeatable means that a call may be repeated if its outcome is not known: the tool is
	// read-only or idempotent, or the operator declares so.
	Repeatable bool
	Error      string // why it cannot be called; "" if it can
}

// Action returns the name of the tool for a plan.
func (t *Tool) Action() string { return t.Server + "." + t.Name }

// Invoker calls a tool. Errors are *contract.ActionError, or that of the context if it was
// cancelled.
type Invoker interface {
	Invoke(ctx context.Context, call *Call) (*contract.ActionResult, error)
}

// Call is one call of a tool.
type Call struct {
	RunID     string
	RequestID string // of the request whose task the run is; "" = the caller's own
	TraceID   string
	StepID    string
	Caller    *contract.Caller
	Agent     string // the agent of the registry whose task the run is; "" = the caller's own
	// Restricted means that the agent may only use servers with its mcp_capabilities.
	Restricted bool
	Action     string
	Input      json.RawMessage
}

// Planner makes plans. An error that is a *PlanError ends the run, or leads to another
// plan within the budget.
type Planner interface {
	Plan(ctx context.Context, req *PlanRequest) (*contract.Plan, error)
}

// PlanRequest is what a planner plans with. Texts of tools are data, not instructions.
type PlanRequest struct {
	Goal       string
	EnvContext json.RawMessage
	Tools      []*Tool // that may be called, ordered by action
	MaxSteps   int
	// NeedCriteria means that every plan needs explicit success criteria, because the
	// verifier is deterministic.
	NeedCriteria bool

	// The following are set for another plan after one that failed.
	Previous *contract.Plan
	Outputs  []contract.ToolOutput // of all plans so far
	Problems []contract.RunError   // why the previous plan failed
}

// PlanError is why there is no plan.
type PlanError struct {
	Reason  contract.RunReason
	Message string
	Details []contract.ErrorDetail // pointers into the plan
}

// Error returns the reason, the message and the details on one line.
func (e *PlanError) Error() string {
	return (&contract.Error{Code: contract.Code(e.Reason), Message: e.Message, Details: e.Details}).Error()
}

// Verifier decides whether the outputs reach the goal.
type Verifier interface {
	Verify(ctx context.Context, req *VerifyRequest) (*Verdict, error)
}

// VerifyRequest is what a verifier verifies.
type VerifyRequest struct {
	Goal    string
	Plan    *contract.Plan
	Outputs []contract.ToolOutput // of the steps of the plan, in its order
}

// Verdict is the result of a verification.
type Verdict struct {
	Passed   bool
	Findings []Finding // what does not hold, or what a model states
}

// Finding is one statement of a verifier.
type Finding struct {
	StepID  string // "" = the whole plan
	Pointer string // into the plan; "" = none
	Detail  string
}

// ErrNotFound is the error for a server or a tool that does not exist.
var ErrNotFound = errors.New("there is no such server or tool")
