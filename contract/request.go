package contract

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Limits of a request in bytes or entries.
const (
	MaxPromptBytes  = 64 << 10 // content.prompt
	MaxBodyBytes    = 1 << 20  // JSON body of the REST interface
	MaxHistoryTurns = 64       // history
	MaxTimeoutMS    = 600_000  // options.timeout_ms of a synchronous request

	MaxAsyncTimeoutMS     = 86_400_000 // … of an asynchronous request: a day
	DefaultAsyncTimeoutMS = 600_000    // … if it is not set
)

// Request is the body of POST /api/v1/route. Only content.prompt is required.
type Request struct {
	Content       Content              `json:"content"`
	History       []Turn               `json:"history,omitempty" validate:"max=64,dive"`
	Metadata      Metadata             `json:"metadata,omitzero"`
	SessionID     string               `json:"session_id,omitempty" validate:"max=128"`
	AgentID       *string              `json:"agent_id,omitempty" validate:"omitempty,max=64"`
	Clarification *ClarificationChoice `json:"clarification,omitempty"`
	Options       Options              `json:"options,omitzero"`

	// Not decoded from the body: a UUIDv7, and the 32 hex digits of the
	// caller's traceparent (W3C Trace Context). The router generates missing
	// values.
	RequestID string `json:"-"`
	TraceID   string `json:"-"`
	// Not decoded from the body: set if the caller sent an idempotency key, so
	// that the request is executed once even if it is sent again.
	Idempotency *Idempotency `json:"-"`
}

// Idempotency is a caller's idempotency key with a hash of the request that it
// was first sent with.
type Idempotency struct {
	Key  string
	Body [32]byte // SHA-256 of the body, the path and the mode (sync or async)
}

// Content is the request itself: a prompt in plain language, and inputs that
// only the agent receives, not the model.
type Content struct {
	Prompt string                     `json:"prompt" validate:"required"`
	Inputs map[string]json.RawMessage `json:"inputs,omitempty"`
}

// Turn is one earlier message of the conversation.
type Turn struct {
	Role    string `json:"role" validate:"oneof=user assistant"`
	Content string `json:"content" validate:"max=65536"`
}

// Metadata describes the request.
type Metadata struct {
	Locale string `json:"locale,omitempty" validate:"omitempty,max=35"` // BCP 47, e.g. "pt-BR"
}

// ClarificationChoice is the answer to an earlier clarification_required
// response.
type ClarificationChoice struct {
	RequestID string `json:"request_id" validate:"required,max=64"`
	OptionID  string `json:"option_id" validate:"required,max=64"`
}

// Modes of Options.Mode.
const (
	ModeSync  = "sync"
	ModeAsync = "async"
)

// Options controls how one request is processed. TimeoutMS 0 means the server's
// default, for async requests DefaultAsyncTimeoutMS.
type Options struct {
	DryRun    bool    `json:"dry_run,omitzero"`
	Explain   bool    `json:"explain,omitzero"` // list the evidence for the classification even if agents serve the request
	Mode      string  `json:"mode,omitempty" validate:"omitempty,oneof=sync async"`
	TimeoutMS int     `json:"timeout_ms,omitzero" validate:"min=0,max=86400000"`
	Fallback  *string `json:"fallback,omitempty" validate:"omitempty,oneof=A B C"`
	Logs      bool    `json:"logs,omitzero"` // return the logs of the agents
	// Reclassify classifies the request although its session would reuse a
	// classification, or an agent asked for this turn.
	Reclassify bool `json:"reclassify,omitzero"`
}

// Validate checks what struct tags cannot: byte limits and combinations. It
// returns nil or an *Error with CodeInvalidRequest.
func (r *Request) Validate() *Error {
	details := r.invalidMembers()
	if len(details) == 0 {
		return nil // and nothing is allocated for a valid request
	}
	return InvalidRequestDetails(details)
}

func (r *Request) invalidMembers() []ErrorDetail {
	var e Error
	if strings.TrimSpace(r.Content.Prompt) == "" {
		e.Add("/content/prompt", "is required")
	}
	if n := len(r.Content.Prompt); n > MaxPromptBytes {
		e.Add("/content/prompt", fmt.Sprintf("is %d bytes long; at most %d are taken", n, MaxPromptBytes))
	}
	reserved := 0
	for name := range r.Content.Inputs {
		// A case-insensitive decoder would confuse any of these with the
		// prompt.
		if strings.EqualFold(name, "prompt") {
			e.Add("/content/inputs/"+name, "is reserved: agents receive content.prompt under this name")
			reserved++
		}
	}
	slices.SortFunc(e.Details[len(e.Details)-reserved:], func(a, b ErrorDetail) int { return strings.Compare(a.Pointer, b.Pointer) })
	if ms := r.Options.TimeoutMS; ms > MaxTimeoutMS && r.Options.Mode != ModeAsync {
		e.Add("/options/timeout_ms", fmt.Sprintf("must be at most %d (%d with mode async)", MaxTimeoutMS, MaxAsyncTimeoutMS))
	}
	if r.Options.DryRun && r.Options.Mode == ModeAsync {
		e.Add("/options/mode", "a dry run is answered at once: leave async out")
	}
	if r.Options.Reclassify && r.Clarification != nil {
		e.Add("/options/reclassify", "must be left out with a clarification: the chosen option is the classification")
	}
	if r.AgentID != nil && !ValidAgentID(*r.AgentID) {
		e.Add("/agent_id", "is not an agent id ("+AgentIDPattern+")")
	}
	return e.Details
}

// Caller is the authenticated caller. Authorization depends only on it, never
// on the output of a model.
type Caller struct {
	Subject   string   // token sub; "local" without authentication
	Issuer    string   `json:",omitzero"` // token iss; "" without authentication
	Tenant    string   // "" if the token has none
	Scopes    []string // e.g. "route:submit", "agent:quality_agent"
	AllAgents bool     // holds agent:* (or every scope)
	AllScopes bool     // the local principal: holds every scope
	KeyID     string   `json:",omitzero"` // kid of the key that signed the token; "" if it has none
}

// LocalCaller returns the principal of this process, which is also the only one without
// authentication. It holds every scope.
func LocalCaller() *Caller {
	return &Caller{Subject: "local", AllScopes: true, AllAgents: true}
}

// ScopeAdmin permits reading the records of all tenants and agents, without the scopes that
// other callers need to read. It includes no other scope and no entitlement to agents.
const ScopeAdmin = "admin"

// HasScope reports whether the caller has the scope.
func (c *Caller) HasScope(scope string) bool {
	if c.AllScopes {
		return true
	}
	return slices.Contains(c.Scopes, scope)
}

// MayInvoke reports whether the caller may call the tool, "" for any one.
func (c *Caller) MayInvoke(action string) bool {
	if c.AllScopes || action != "" {
		return c.HasScope(ScopeInvokePrefix + action)
	}
	return slices.ContainsFunc(c.Scopes, func(scope string) bool { return strings.HasPrefix(scope, ScopeInvokePrefix) })
}

// MayUse reports whether the caller is entitled to the agent: whether the agent
// may receive the caller's tasks.
func (c *Caller) MayUse(agentID string) bool {
	if c.AllAgents || c.AllScopes {
		return true
	}
	return slices.ContainsFunc(c.Scopes, func(scope string) bool {
		id, ok := strings.CutPrefix(scope, ScopeAgentPrefix)
		return ok && id == agentID
	})
}

// SeesAll reports whether the caller may see all tenants and agents.
func (c *Caller) SeesAll() bool { return c.AllScopes || c.HasScope(ScopeAdmin) }

// SamePrincipal reports whether both are the same principal: subject, issuer
// and tenant. Scopes do not matter.
func (c *Caller) SamePrincipal(other *Caller) bool {
	return c.Subject == other.Subject && c.Issuer == other.Issuer && c.Tenant == other.Tenant
}

// KeyParts are the parts of a store key for a name that the caller chose, so that
// another principal that chooses the same name gets another key.
func (c *Caller) KeyParts(name string) []string {
	parts := []string{c.Tenant, c.Subject, name}
	if c.Issuer != "" {
		parts = append(parts, c.Issuer)
	}
	return parts
}

// SameTenant reports whether both belong to the same tenant. If their tokens
// contain no tenant, they must have the same issuer, because an empty tenant is
// not shared between issuers.
func (c *Caller) SameTenant(other *Caller) bool {
	return c.Tenant == other.Tenant && (c.Tenant != "" || c.Issuer == other.Issuer)
}
