package contract

import (
	"encoding/json"
	"time"
)

// Action is a call of one tool of an MCP server.
type Action struct {
	Action   string          `json:"action" validate:"required,max=400"` // server and tool, for example weather.query
	Input    json.RawMessage `json:"input,omitempty"`                    // an object; absent = {}
	Context  ActionContext   `json:"context,omitzero"`                   // passed on to servers of transport rest
	Response ActionResponse  `json:"response"`                           // the form of the result
}

// ActionContext is where a call belongs.
type ActionContext struct {
	SessionID string `json:"session_id,omitempty" validate:"max=200"`
	Locale    string `json:"locale,omitempty" validate:"max=64"` // BCP 47
	TraceID   string `json:"trace_id,omitempty" validate:"max=200"`
}

// ActionResponse is the form of a result.
type ActionResponse struct {
	Format string `json:"format,omitempty" validate:"omitempty,oneof=auto"` // "auto"
	Stream bool   `json:"stream"`
}

// Types of an ActionResult.
const (
	ActionText       = "text"
	ActionImage      = "image"
	ActionAudio      = "audio"
	ActionToolResult = "tool_result"
)

// ActionResult is the result of an Action, the same for all transports.
type ActionResult struct {
	Type string `json:"type"`
	// Content is a string (text, or base64 or a URL for image and audio), or the array
	// of all blocks for tool_result.
	Content    json.RawMessage `json:"content"`
	Structured json.RawMessage `json:"structured_content,omitzero"` // as the output schema of the tool describes it
	MIMEType   string          `json:"mime_type,omitempty"`         // required for image and audio
	Metadata   ActionMetadata  `json:"metadata"`
	Stream     bool            `json:"stream"`
}

// ActionMetadata describes how a result was made.
type ActionMetadata struct {
	Provider  string `json:"provider"` // id of the server
	LatencyMS int64  `json:"latency_ms"`
}

// ActionProgress is what a tool reports while it is executed.
type ActionProgress struct {
	Progress float64 `json:"progress"`
	Total    float64 `json:"total,omitzero"` // 0 = unknown
	Message  string  `json:"message,omitempty"`
}

// Severities of an ActionError.
const (
	SeverityWarning = "WARNING"
	SeveritySevere  = "SEVERE"
)

// Error codes of the gateway. A tool may report its own.
const (
	ActionNotFound       = "ACTION_NOT_FOUND"
	ActionAmbiguous      = "ACTION_AMBIGUOUS"
	ActionInvalidInput   = "INVALID_INPUT"
	ActionUnavailable    = "SERVER_UNAVAILABLE" // the tool was not called
	ActionTimeout        = "TIMEOUT"            // of a tool that can be called again
	ActionOutcomeUnknown = "OUTCOME_UNKNOWN"    // the tool may have been executed
	ActionFailed         = "TOOL_ERROR"         // the tool or its server reports an error
	ActionBadResult      = "BAD_RESULT"         // the result does not have the promised form
	ActionForbidden      = "FORBIDDEN"          // the caller or the agent may not call the tool
	ActionRateLimited    = "RATE_LIMITED"       // the caller calls the tool too often
	ActionQuarantined    = "TOOL_QUARANTINED"   // the definition of the tool is not approved
	ActionNotRecorded    = "AUDIT_UNAVAILABLE"  // the call cannot be recorded, so it is not made
)

// ActionError is why an Action has no result.
type ActionError struct {
	Code       string        `json:"error_code"`
	Message    string        `json:"message"`
	Suggestion string        `json:"suggestion,omitempty"`
	Severity   string        `json:"severity"`
	Details    []ErrorDetail `json:"details,omitempty"` // of invalid input
	// Missing are the members of the input that the schema requires and the input lacks.
	Missing []string `json:"-"`
	// RetryAfterMS is when a call that was rate limited is permitted.
	RetryAfterMS int64 `json:"retry_after_ms,omitzero"`
	// RPCCode is the code of the JSON-RPC error with which the server rejected the call; 0 = none.
	RPCCode int64 `json:"-"`
}

// Error returns the code, the message and the suggestion on one line.
func (e *ActionError) Error() string {
	text := e.Code + ": " + e.Message
	if e.Suggestion != "" {
		text += ": " + e.Suggestion
	}
	return text
}

// Types of a GatewayEvent.
const (
	AgentBriefingEvent   = "AgentBriefingEvent"   // a capability of an agent was lost or has recovered
	ServerStatusEvent    = "ServerStatusEvent"    // the status of a server has changed
	ToolQuarantinedEvent = "ToolQuarantinedEvent" // the definition of a tool waits for approval
)

// States of a binding.
const (
	BindingBound    = "BOUND"
	BindingDegraded = "DEGRADED" // no server provides the capability
)

// GatewayEvent is a change that agents or operators should know of.
type GatewayEvent struct {
	Type       string    `json:"type"`
	AgentID    string    `json:"agent_id,omitempty"`
	Capability string    `json:"capability,omitempty"`
	Server     string    `json:"server,omitempty"`
	Tool       string    `json:"tool,omitempty"` // name of the action
	Status     string    `json:"status,omitempty"`
	State      string    `json:"state,omitempty"`
	Error      string    `json:"error,omitempty"`
	Suggestion string    `json:"suggestion,omitempty"`
	At         time.Time `json:"at"`
}
