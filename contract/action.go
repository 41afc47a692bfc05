package contract

import "encoding/json"

// Action is a call of one tool of an MCP server.
type Action struct {
	Action   string          `json:"action"`           // server and tool, for example weather.query
	Input    json.RawMessage `json:"input,omitempty"`  // an object; absent = {}
	Context  ActionContext   `json:"context,omitzero"` // passed on to servers of transport rest
	Response ActionResponse  `json:"response"`         // the form of the result
}

// ActionContext is where a call belongs.
type ActionContext struct {
	SessionID string `json:"session_id,omitempty"`
	Locale    string `json:"locale,omitempty"` // BCP 47
	TraceID   string `json:"trace_id,omitempty"`
}

// ActionResponse is the form of a result.
type ActionResponse struct {
	Format string `json:"format,omitempty"` // "auto"
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
	Structured json.RawMessage `json:"structured_content,omitempty"` // as the output schema of the tool describes it
	MIMEType   string          `json:"mime_type,omitempty"`          // required for image and audio
	Metadata   ActionMetadata  `json:"metadata"`
	Stream     bool            `json:"stream"`
}

// ActionMetadata describes how a result was made.
type ActionMetadata struct {
	Provider  string `json:"provider"` // id of the server
	LatencyMS int64  `json:"latency_ms"`
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
)

// ActionError is why an Action has no result.
type ActionError struct {
	Code       string        `json:"error_code"`
	Message    string        `json:"message"`
	Suggestion string        `json:"suggestion,omitempty"`
	Severity   string        `json:"severity"`
	Details    []ErrorDetail `json:"details,omitempty"` // of invalid input
}

// Error returns the code, the message and the suggestion on one line.
func (e *ActionError) Error() string {
	text := e.Code + ": " + e.Message
	if e.Suggestion != "" {
		text += ": " + e.Suggestion
	}
	return text
}
