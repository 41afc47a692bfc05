package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Limits of a request's parts, in bytes or entries.
const (
	MaxPromptBytes  = 64 << 10 // content.prompt
	MaxBodyBytes    = 1 << 20  // a whole JSON body of the REST interface
	MaxHistoryTurns = 64       // history
	MaxTimeoutMS    = 600_000  // options.timeout_ms of a caller who waits

	MaxAsyncTimeoutMS     = 86_400_000 // … of one who does not: a day
	DefaultAsyncTimeoutMS = 600_000    // … and says nothing
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

	// Never decoded: a UUIDv7, and the 32 hex digits of the caller's traceparent
	// (W3C Trace Context). What the edge leaves empty the router makes anew.
	RequestID string `json:"-"`
	TraceID   string `json:"-"`
	// Never decoded: nil unless the caller names the request, so that it is done
	// once however often it is sent.
	Idempotency *Idempotency `json:"-"`
}

// Idempotency is a caller's Idempotency-Key with what it was sent with.
type Idempotency struct {
	Key  string
	Body [32]byte // SHA-256 of the body, the path and whether an answer is waited for
}

// Content is what the caller wants done: a prompt in plain language and, for
// the agent only, free-form inputs that no model sees.
type Content struct {
	Prompt string                     `json:"prompt" validate:"required"`
	Inputs map[string]json.RawMessage `json:"inputs,omitempty"`
}

// Turn is one earlier message of the conversation.
type Turn struct {
	Role    string `json:"role" validate:"oneof=user assistant"`
	Content string `json:"content" validate:"max=65536"`
}

// Metadata describes the request without being part of it.
type Metadata struct {
	Locale string `json:"locale,omitempty" validate:"omitempty,max=35"` // BCP 47, e.g. "pt-BR"
}

// ClarificationChoice answers an earlier clarification_required response.
type ClarificationChoice struct {
	RequestID string `json:"request_id" validate:"required,max=64"`
	OptionID  string `json:"option_id" validate:"required,max=64"`
}

// Modes of Options.Mode.
const (
	ModeSync  = "sync"
	ModeAsync = "async"
)

// Options steers one request. TimeoutMS 0 means the server's default, in mode
// async DefaultAsyncTimeoutMS.
type Options struct {
	DryRun    bool    `json:"dry_run,omitzero"`
	Mode      string  `json:"mode,omitempty" validate:"omitempty,oneof=sync async"`
	TimeoutMS int     `json:"timeout_ms,omitzero" validate:"min=0,max=86400000"`
	Fallback  *string `json:"fallback,omitempty" validate:"omitempty,oneof=A B C"`
}

// Validate checks what a struct tag cannot: byte limits and combinations.
// It returns nil or an *Error with code CodeInvalidRequest.
func (r *Request) Validate() *Error {
	var e Error
	if r.Content.Prompt == "" {
		e.Add("/content/prompt", "is required")
	}
	if n := len(r.Content.Prompt); n > MaxPromptBytes {
		e.Add("/content/prompt", fmt.Sprintf("is %d bytes long; at most %d are taken", n, MaxPromptBytes))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Content.Inputs)) {
		// A decoder that folds case would take any of them for the prompt.
		if strings.EqualFold(name, "prompt") {
			e.Add("/content/inputs/"+name, "is reserved: agents receive content.prompt under this name")
		}
	}
	if ms := r.Options.TimeoutMS; ms > MaxTimeoutMS && r.Options.Mode != ModeAsync {
		e.Add("/options/timeout_ms", fmt.Sprintf("must be at most %d (%d with mode async)", MaxTimeoutMS, MaxAsyncTimeoutMS))
	}
	if r.Options.DryRun && r.Options.Mode == ModeAsync {
		e.Add("/options/mode", "a dry run is answered at once: leave async out")
	}
	if r.AgentID != nil && !ValidAgentID(*r.AgentID) {
		e.Add("/agent_id", "is not an agent id ("+AgentIDPattern+")")
	}
	if len(e.Details) == 0 {
		return nil
	}
	e.Code, e.Message = CodeInvalidRequest, "the request is not valid"
	return &e
}

// Caller is who asks, as the edge authenticated it. Authorisation uses this
// and nothing a model says.
type Caller struct {
	Subject   string   // token sub; "local" without authentication
	Issuer    string   `json:",omitzero"` // token iss: who vouches for the subject; "" without authentication
	Tenant    string   // "" when the token names none
	Scopes    []string // e.g. "route:submit", "agent:quality_agent"
	AllAgents bool     // holds agent:* (or every scope)
	AllScopes bool     // the local principal: every scope is held
}

// ScopeAdmin lets its holder see the records of every tenant and every agent. It
// stands for no other scope and entitles to no agent.
const ScopeAdmin = "admin"

// HasScope reports whether the caller holds the named scope.
func (c *Caller) HasScope(scope string) bool {
	if c.AllScopes {
		return true
	}
	return slices.Contains(c.Scopes, scope)
}

// MayUse reports whether the caller is entitled to the agent: whether the agent
// may be given work of the caller's.
func (c *Caller) MayUse(agentID string) bool {
	if c.AllAgents || c.AllScopes {
		return true
	}
	return slices.ContainsFunc(c.Scopes, func(scope string) bool {
		id, ok := strings.CutPrefix(scope, "agent:")
		return ok && id == agentID
	})
}

// SeesAll reports whether nothing is hidden from the caller: of no tenant, and
// of no agent.
func (c *Caller) SeesAll() bool { return c.AllScopes || c.HasScope(ScopeAdmin) }

// MaySee reports whether the caller may learn of the agent: it may use it, or
// sees all.
func (c *Caller) MaySee(agentID string) bool { return c.MayUse(agentID) || c.SeesAll() }

// SamePrincipal reports whether both are the same principal: who vouches for it counts, the
// scopes do not.
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

// SameTenant reports whether both are of one tenant. Those whose tokens name none
// are so only where the same issuer vouches for them: issuers share no such tenant.
func (c *Caller) SameTenant(other *Caller) bool {
	return c.Tenant == other.Tenant && (c.Tenant != "" || c.Issuer == other.Issuer)
}
