package rest

import (
	"net/http"
	"time"

	"github.com/caprouter/caprouter/internal/httpserver"
)

// Health is the response of GET /healthz.
type Health struct {
	Status string `json:"status"`
}

// Readiness is the response of GET /readyz. The handler sets ReadinessDraining
// itself; Deps.Readiness returns one of the other states.
type Readiness struct {
	Status     string           `json:"status"`
	Registry   RegistryStatus   `json:"registry"`
	Classifier ClassifierStatus `json:"classifier"`
	Store      *StoreStatus     `json:"store,omitempty"` // nil without a store
	Keys       *KeysStatus      `json:"keys,omitempty"`  // nil while they are valid
	MCP        *MCPStatus       `json:"mcp,omitempty"`   // nil without MCP servers
}

// MCPStatus describes the MCP servers. Servers that are not connected do not affect the
// readiness. It is stale if a newer registry file was rejected.
type MCPStatus struct {
	Servers   int    `json:"servers"`
	Connected int    `json:"connected"`
	Stale     bool   `json:"stale"`
	Error     string `json:"error"`
}

// KeysStatus reports that new signing keys or a new certificate could not be
// loaded. The previous ones remain in use.
type KeysStatus struct {
	Stale bool   `json:"stale"`
	Error string `json:"error"`
}

// The values of Readiness.Status.
const (
	ReadinessReady    = "ready"
	ReadinessDegraded = "degraded" // serves requests, but an operator should act
	ReadinessStarting = "starting" // does not serve requests yet
	ReadinessDraining = "draining" // shuts down gracefully
)

// RegistryStatus is the version of the registry in use. It is stale if a newer file
// was rejected.
type RegistryStatus struct {
	Version  string     `json:"version"`
	LoadedAt *time.Time `json:"loaded_at"`
	Stale    bool       `json:"stale"`
	Error    string     `json:"error"`
}

// ClassifierStatus is the mode of the classifier (llm, cascade or lexical) and the
// reason for it.
type ClassifierStatus struct {
	Mode   string       `json:"mode"`
	Reason string       `json:"reason"`
	Model  *ModelStatus `json:"model,omitempty"` // nil if none is configured
}

// ModelStatus is the configured model and the state of its circuit breaker. A
// failing model does not affect readiness, because the lexical classifier replaces
// it.
type ModelStatus struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Breaker  string `json:"breaker"` // closed, open or half_open
}

// StoreStatus reports whether the store accepts writes. If it does not, reads still
// work and requests that must be recorded are rejected.
type StoreStatus struct {
	Mode      string `json:"mode"` // embedded or external
	Ready     bool   `json:"ready"`
	Error     string `json:"error"` // reason why writes are rejected
	UsedBytes int64  `json:"used_bytes"`
	CapBytes  int64  `json:"cap_bytes"`
	Replicas  int    `json:"replicas"` // live processes that share the store, this one included
}

func (a *api) handleHealth(c *httpserver.Context) error {
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, Health{Status: "ok"})
}

func (a *api) handleReady(c *httpserver.Context) error {
	ready := a.deps.Readiness()
	if c.Draining() {
		ready.Status = ReadinessDraining
	}
	status := http.StatusOK
	if ready.Status == ReadinessStarting || ready.Status == ReadinessDraining {
		status = http.StatusServiceUnavailable
	}
	return c.WriteJSON(status, httpserver.MediaTypeJSON, ready)
}

func (a *api) handleMetrics(c *httpserver.Context) error {
	a.deps.Metrics.ServeHTTP(c, c.Request)
	return nil
}

// jwksMaxAge is short, because a new key is used at once. An agent that finds an
// unknown key id fetches the key set again.
const jwksMaxAge = "public, max-age=60"

func (a *api) handleJWKS(c *httpserver.Context) error {
	c.SetHeader("Cache-Control", jwksMaxAge)
	c.WriteBytes(http.StatusOK, "application/jwk-set+json", a.deps.JWKS())
	return nil
}
