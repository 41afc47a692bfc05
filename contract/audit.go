package contract

import "time"

// AuditKind is the kind of an entry of the audit log.
type AuditKind string

// Kinds of entries.
const (
	AuditDecision AuditKind = "decision"  // a decision, before its tasks are sent
	AuditOutcome  AuditKind = "outcome"   // the response to a request
	AuditToolCall AuditKind = "tool_call" // the start or the end of a call of a tool of an MCP server
	AuditRun      AuditKind = "run"       // an event of an orchestration
	AuditFeedback AuditKind = "feedback"  // a verdict on a decision
	AuditAdmin    AuditKind = "admin"     // an act of an administrator, an agent or the router
)

// AuditKinds returns all kinds.
func AuditKinds() []AuditKind {
	return []AuditKind{AuditDecision, AuditOutcome, AuditToolCall, AuditRun, AuditFeedback, AuditAdmin}
}

// AuditQuery selects entries of the audit log. Zero values select all.
type AuditQuery struct {
	Kinds        []AuditKind // any of these
	Since, Until time.Time   // both included
	Actor        string
	Agent        string
	Tool         string // server and tool, joined by a dot
	RequestID    string // of a request or an orchestration

	Limit  int    // 0 = 100
	Cursor string // of the previous page
}

// AuditPage is the response of GET /api/v1/audit, newest first. It may have fewer entries
// than the limit, or none, without being the last.
type AuditPage struct {
	Entries    []AuditEntry `json:"entries"`
	NextCursor string       `json:"next_cursor"` // "" on the last page
}

// AuditEntry contains the facts of one record of the audit log, without its content.
type AuditEntry struct {
	ID              string    `json:"id"` // the chain and the number of the record
	Time            time.Time `json:"time"`
	Kind            AuditKind `json:"kind"`
	Event           string    `json:"event,omitempty"` // of an orchestration, or the act
	RequestID       string    `json:"request_id,omitempty"`
	OrchestrationID string    `json:"orchestration_id,omitempty"` // of one that is a task of the request
	TraceID         string    `json:"trace_id,omitempty"`
	Tenant          string    `json:"tenant,omitempty"`
	Actor           string    `json:"actor,omitempty"`  // subject of the caller; "" = the router itself
	Issuer          string    `json:"issuer,omitempty"` // of the actor's token
	Status          Status    `json:"status,omitempty"`
	Agents          []string  `json:"agents,omitempty"`
	Tool            string    `json:"tool,omitempty"` // server and tool, joined by a dot
	DecisionID      string    `json:"decision_id,omitempty"`
	RegistryVersion string    `json:"registry_version,omitempty"`
	FallbackUsed    string    `json:"fallback_used,omitempty"`
	Verdict         Verdict   `json:"verdict,omitempty"`
	Rule            string    `json:"rule,omitempty"`     // of the policy, about a call of an orchestration
	Instance        string    `json:"instance,omitempty"` // of an agent
	Detail          string    `json:"detail,omitempty"`
	Erased          bool      `json:"erased,omitzero"` // the content was erased, or its retention has passed
}
