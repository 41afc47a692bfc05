package app

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/auth/issuance"
	"github.com/caprouter/caprouter/internal/auth/jwk"
	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// TokenGrant specifies the subject, the rights and the lifetime of a token.
type TokenGrant struct {
	Subject string
	Tenant  string // "" = none
	Scopes  []string
	TTL     time.Duration // at most a day
}

// MintCallerToken returns a token that a router with this data directory accepts. The
// router may be running, because nothing is written and the store is not opened. The
// error is a *ScopeError if a scope is unknown, an *AgentError if an agent is, and an
// *issuance.ClaimError if a claim is not valid. It is a *ToolError if the token is for an
// agent and names a tool that the agent may not call.
func MintCallerToken(cfg config.Config, g TokenGrant) (string, error) {
	now := time.Now()
	grant := issuance.CallerGrant{
		Issuer: cfg.Auth.Issuer, Audience: cfg.Auth.Audience,
		Subject: g.Subject, Tenant: g.Tenant, Scopes: g.Scopes,
		Expires: now.Add(g.TTL),
	}
	if err := grant.Check(now); err != nil {
		return "", err
	}
	agents := newTokenAgents(&cfg.Registry)
	if err := agents.checkScopes(g.Scopes); err != nil {
		return "", err
	}
	if _, err := ListKeys(cfg); err != nil { // because opening the ring would create a key
		return "", err
	}
	if err := agents.checkIDs(agentsOf(g)); err != nil {
		return "", err
	}
	if err := agents.checkTools(g, &cfg.MCP); err != nil {
		return "", err
	}
	ring, err := keyring.Open(cfg.DataDir)
	if err != nil {
		return "", err
	}
	issuer, err := issuance.New(ring, jwk.EdDSA)
	if err != nil {
		return "", err
	}
	return issuer.CallerToken(grant)
}

// ListKeys describes the keys of the data directory, the newest first.
func ListKeys(cfg config.Config) ([]keyring.Info, error) {
	keys, err := keyring.List(cfg.DataDir, time.Now())
	return keys, explainKeyError(cfg.DataDir, err)
}

// RotateKeys creates a new signing key in the data directory. A running router reloads
// it.
func RotateKeys(cfg config.Config, revoke bool) (*keyring.Rotation, error) {
	done, err := keyring.Rotate(cfg.DataDir, revoke, time.Now())
	return done, explainKeyError(cfg.DataDir, err)
}

// explainKeyError adds a suggestion if there is no key.
func explainKeyError(dir string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no signing key in %s: name the router's data directory with --data-dir, or start the router once, which makes a key", dir)
	}
	return err
}

// ScopeError is a scope that neither the router nor an agent requires.
type ScopeError struct {
	Scope string
	Near  string // the most similar scope; "" = none
}

func (e *ScopeError) Error() string {
	if e.Near != "" {
		return fmt.Sprintf("unknown scope %q, did you mean %s?", e.Scope, e.Near)
	}
	if strings.HasPrefix(e.Scope, contract.ScopeInvokePrefix) && strings.Contains(e.Scope, "*") {
		return fmt.Sprintf("unknown scope %q: it names one tool, and there is no wildcard: add a scope for each tool", e.Scope)
	}
	return fmt.Sprintf("unknown scope %q: the scopes are %s, agent:ID, mcp:invoke:ACTION, and what agents of the registry require",
		e.Scope, strings.Join(contract.Scopes(), ", "))
}

// tokenAgents are the agents that tokens may name: those that the registry file declares
// or grants.
type tokenAgents struct {
	path string // of the registry file
	// load returns the agents by id. It reads the file once, because most tokens do not need
	// it. A file that may be absent counts as empty.
	load func() (map[string]tokenAgent, error)
}

// tokenAgent is what tokens depend on of an agent.
type tokenAgent struct {
	requires        contract.Requires
	mcpCapabilities []string
	declared        bool // false = it has a grant only
}

func newTokenAgents(registry *config.Registry) *tokenAgents {
	path, optional := registry.FilePath()
	return &tokenAgents{path: path, load: sync.OnceValues(func() (map[string]tokenAgent, error) {
		agents := map[string]tokenAgent{}
		snapshot, err := capabilities.Load(path)
		if optional && errors.Is(err, fs.ErrNotExist) {
			return agents, nil
		}
		if err != nil {
			return nil, err
		}
		for id, g := range snapshot.Fleet.Grants {
			agents[id] = tokenAgent{requires: g.Requires}
		}
		for _, a := range snapshot.Entries() {
			agents[a.ID] = tokenAgent{requires: a.Requires, mcpCapabilities: a.MCPCapabilities, declared: true}
		}
		return agents, nil
	})}
}

// checkScopes rejects unknown scopes, because they are probably misspelt. Agents may
// require scopes of the operator.
func (t *tokenAgents) checkScopes(scopes []string) error {
	i := slices.IndexFunc(scopes, func(s string) bool { return !contract.ValidScope(s) })
	if i < 0 {
		return nil
	}
	agents, err := t.load()
	if err != nil {
		return fmt.Errorf("scope %q is none of the router's, and what agents require cannot be read: %w", scopes[i], err)
	}
	var required []string
	for _, id := range slices.Sorted(maps.Keys(agents)) {
		required = append(required, agents[id].requires.Scopes...)
	}
	for _, s := range scopes[i:] {
		if !contract.ValidScope(s) && !slices.Contains(required, s) {
			return &ScopeError{Scope: s, Near: nearestScope(s, required)}
		}
	}
	return nil
}

// AgentError is an agent that the registry does not declare.
type AgentError struct {
	ID       string
	Near     string // the most similar agent; "" = none
	Registry string // path of the file
}

func (e *AgentError) Error() string {
	if e.Near != "" {
		return fmt.Sprintf("unknown agent %q, did you mean %s?", e.ID, e.Near)
	}
	return fmt.Sprintf("unknown agent %q: %s neither declares it under clients nor has grants for it; add it, or name the registry with --registry", e.ID, e.Registry)
}

// agentsOf returns the agents that the token is for: those that the caller may use, and
// the subject if it may act as an agent.
func agentsOf(g TokenGrant) []string {
	var ids []string
	for _, s := range g.Scopes {
		id, ok := strings.CutPrefix(s, contract.ScopeAgentPrefix)
		switch {
		case ok && id != "*":
			ids = append(ids, id)
		case isAgentScope(s):
			ids = append(ids, g.Subject)
		}
	}
	return ids
}

// isAgentScope reports whether a token with the scope is for an agent, its subject.
func isAgentScope(scope string) bool {
	return scope == contract.ScopeAgentsRegister || scope == contract.ScopeTasksWork
}

// checkIDs rejects agents that are neither declared nor granted, because they are probably
// misspelt.
func (t *tokenAgents) checkIDs(ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	agents, err := t.load()
	if err != nil {
		return fmt.Errorf("agent %q cannot be checked: %w", ids[0], err)
	}
	for _, id := range ids {
		if _, known := agents[id]; !known {
			return &AgentError{ID: id, Near: strictyaml.Nearest(id, slices.Sorted(maps.Keys(agents))), Registry: t.path}
		}
	}
	return nil
}

// MissingScopes are scopes that an agent requires of its callers (requires.scopes) and that
// a token does not have, so that the token cannot use the agent.
type MissingScopes struct {
	AgentID string
	Scopes  []string
}

// FindMissingScopes returns the agents that scopes of a token name, but that require others
// as well. agent:* names none.
func FindMissingScopes(cfg *config.Config, scopes []string) ([]MissingScopes, error) {
	agents := newTokenAgents(&cfg.Registry)
	var list []MissingScopes
	for _, s := range scopes {
		id, ok := strings.CutPrefix(s, contract.ScopeAgentPrefix)
		if !ok || id == "*" {
			continue
		}
		known, err := agents.load()
		if err != nil {
			return nil, err
		}
		missing := slices.DeleteFunc(slices.Clone(known[id].requires.Scopes), func(s string) bool { return slices.Contains(scopes, s) })
		if len(missing) > 0 {
			list = append(list, MissingScopes{AgentID: id, Scopes: missing})
		}
	}
	return list, nil
}

func nearestScope(scope string, required []string) string {
	if strings.HasPrefix(scope, contract.ScopeAgentPrefix) {
		return "" // agents may be unknown to this registry
	}
	return strictyaml.Nearest(scope, append(contract.Scopes(), required...))
}
