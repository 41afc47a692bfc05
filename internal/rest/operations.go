package rest

import (
	"net/http"
	"time"

	"github.com/caprouter/caprouter/internal/httpserver"
)

// Health is the answer of GET /healthz.
type Health struct {
	Status string `json:"status"`
}

// Readiness is the answer of GET /readyz. Whoever provides one says
// ReadinessReady, ReadinessDegraded or ReadinessStarting; that the server drains
// it knows by itself.
type Readiness struct {
	Status     string           `json:"status"`
	Registry   RegistryStatus   `json:"registry"`
	Classifier ClassifierStatus `json:"classifier"`
	Store      *StoreStatus     `json:"store,omitempty"` // nil where nothing is stored
	Keys       *KeysStatus      `json:"keys,omitempty"`  // nil while all is well with them
}

// KeysStatus says that signing keys or the certificate have changed in a way that
// cannot be taken over: the last good ones are in force.
type KeysStatus struct {
	Stale bool   `json:"stale"`
	Error string `json:"error"`
}

// The values of Readiness.Status.
const (
	ReadinessReady    = "ready"
	ReadinessDegraded = "degraded" // serves, but something wants attention
	ReadinessStarting = "starting" // does not serve yet
	ReadinessDraining = "draining" // does not serve any more
)

// RegistryStatus says which registry is in force and whether a newer one was
// refused.
type RegistryStatus struct {
	Version  string     `json:"version"`
	LoadedAt *time.Time `json:"loaded_at"`
	Stale    bool       `json:"stale"`
	Error    string     `json:"error"`
}

// ClassifierStatus says how requests are classified (llm, cascade or lexical),
// and why so.
type ClassifierStatus struct {
	Mode   string       `json:"mode"`
	Reason string       `json:"reason"`
	Model  *ModelStatus `json:"model,omitempty"` // nil when none is configured
}

// ModelStatus says which model is configured and whether it is being asked. A
// model that fails makes nothing unready: the lexical classifier serves.
type ModelStatus struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Breaker  string `json:"breaker"` // closed, open or half_open
}

// StoreStatus says whether what must not be lost can be written. Where it
// cannot, reads go on and requests that need a record are refused.
type StoreStatus struct {
	Mode      string `json:"mode"` // embedded or external
	Ready     bool   `json:"ready"`
	Error     string `json:"error"` // why writes are refused now
	UsedBytes int64  `json:"used_bytes"`
	CapBytes  int64  `json:"cap_bytes"`
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
	c.SetHeader("Cache-Control", "no-store")
	return c.WriteJSON(status, httpserver.MediaTypeJSON, ready)
}

func (a *api) handleMetrics(c *httpserver.Context) error {
	a.deps.Metrics.ServeHTTP(c, c.Request)
	return nil
}

// jwksMaxAge is short: a new key is used as soon as it is made, and an agent
// that finds an unknown key id asks again anyway.
const jwksMaxAge = "public, max-age=60"

func (a *api) handleJWKS(c *httpserver.Context) error {
	c.SetHeader("Cache-Control", jwksMaxAge)
	c.WriteBytes(http.StatusOK, "application/jwk-set+json", a.deps.JWKS())
	return nil
}
