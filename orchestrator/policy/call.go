package policy

import (
	"encoding/json"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// Call is one call of a tool that is about to be made. It is not changed.
type Call struct {
	Server, Tool string
	Action       string // name in plans and in the caller's lists; "" = Server.Tool
	Arguments    json.RawMessage
	Description  string
	InputSchema  json.RawMessage
	Annotations  Annotations
	Transport    string // of the server: stdio, http, sse or rest
	Host         string // of a remote server

	// Texts of the caller of the run. The destinations that they name are trusted.
	Goal       string
	EnvContext json.RawMessage
	// Patterns of actions, such as github.*, of the caller's constraints.
	Allow, Deny []string

	Earlier []Step // the calls of the run so far, oldest first
}

// Step is an earlier call of the run.
type Step struct {
	Action    string
	Arguments json.RawMessage
	Output    json.RawMessage // JSON; a text is a JSON string
}

func (c *Call) action() string {
	if c.Action != "" {
		return c.Action
	}
	return c.Server + "." + c.Tool
}

// Annotations are the hints of a tool. nil = the server does not state it.
type Annotations struct {
	ReadOnly    *bool `json:"readOnlyHint,omitempty" yaml:"read_only"`
	Destructive *bool `json:"destructiveHint,omitempty" yaml:"destructive"`
	Idempotent  *bool `json:"idempotentHint,omitempty" yaml:"idempotent"`
	OpenWorld   *bool `json:"openWorldHint,omitempty" yaml:"open_world"`
}

// ParseAnnotations reads the annotations of a tool as a server lists them. Annotations that
// are not an object of these types count as absent, so that the tool is judged without them.
func ParseAnnotations(raw json.RawMessage) Annotations {
	var a Annotations
	if len(raw) == 0 || strictjson.UnmarshalAllowUnknown(raw, &a) != nil {
		return Annotations{}
	}
	return a
}

// Effect is the decision about a call.
type Effect string

// Effects, from the weakest to the strictest.
const (
	Allow Effect = "allow"
	Gate  Effect = "gate" // a person must approve the call
	Deny  Effect = "deny"
)

// strictness orders effects.
func (e Effect) strictness() int {
	switch e {
	case Deny:
		return 2
	case Gate:
		return 1
	case Allow:
	}
	return 0
}

// Verdict is the decision about a call. Its texts contain no value of an argument.
type Verdict struct {
	Effect   Effect    `json:"effect"`
	Rule     string    `json:"rule,omitempty"`     // id; "" if no rule matches
	Category Category  `json:"category,omitempty"` // of the finding
	Reason   string    `json:"reason,omitempty"`
	Findings []Finding `json:"findings,omitempty"` // all, also those that have no consequence
}
