package planner

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/orchestrator"
)

// ModelRef names a model of the operator or of a caller.
type ModelRef struct {
	Kind     string // gemini, genai or openai; planners also static, verifiers also deterministic
	Endpoint string // base URL; "" = that of the provider
	Model    string // "" = the default of the provider
}

// ModelsConfig configures Models. Open and Mask are required.
type ModelsConfig struct {
	Config

	// Planner and Verifier are those of the operator. An empty kind means that there is
	// no planner, and the verifier deterministic.
	Planner, Verifier ModelRef
	// EndpointsAllowed are the base URLs that a caller may choose.
	EndpointsAllowed []string
	// Settings are the settings of the operator's models: the key, temperature and the
	// like. Provider, Model and BaseURL are replaced. A model of a caller's endpoint gets
	// them without the key.
	Settings llm.Config
	// Open opens a provider without calling it.
	Open func(cfg llm.Config) (llm.Provider, error)
	// Client configures the clients: the shared token budget and the circuit breaker.
	// Provider, Model and Observe are replaced.
	Client llm.ClientConfig
	// Observe is called after every call of a model; nil = not.
	Observe func(ref ModelRef, call llm.Call)
	Mask    *redact.Redactor
}

// Models returns the planner and the verifier of a run, with one client for each kind,
// endpoint and model. It is safe for concurrent use.
type Models struct {
	cfg     ModelsConfig
	allowed []string

	mu      sync.Mutex
	clients []modelClient // least recently used first
}

// modelClient is the client of a model.
type modelClient struct {
	key    clientKey
	client *llm.Client
}

// clientKey distinguishes clients: an endpoint that a caller chooses has no key, also if it
// is that of the operator.
type clientKey struct {
	ModelRef
	callers bool
}

// maxClients bounds the clients, because callers choose names of models.
const maxClients = 64

// NewModels returns Models.
func NewModels(cfg ModelsConfig) (*Models, error) {
	if cfg.Open == nil || cfg.Mask == nil {
		return nil, errors.New("planner: a function that opens providers and a redactor are required")
	}
	m := &Models{cfg: cfg}
	for _, endpoint := range cfg.EndpointsAllowed {
		normalized, err := normalizeEndpoint(endpoint)
		if err != nil {
			return nil, fmt.Errorf("orchestrator.endpoints_allowed: %w", err)
		}
		m.allowed = append(m.allowed, normalized)
	}
	return m, nil
}

// Planner implements orchestrator.Models.
func (m *Models) Planner(c *contract.GoalConstraints) (orchestrator.Planner, error) {
	if c.PlannerKind == contract.PlannerStatic || c.PlannerKind == "" && (m.cfg.Planner.Kind == contract.PlannerStatic || len(c.Plan) > 0) {
		return orchestrator.Static{Raw: c.Plan}, nil
	}
	client, err := m.choose("planner", m.cfg.Planner, ModelRef{c.PlannerKind, c.PlannerEndpoint, c.PlannerModel})
	if err != nil {
		return nil, err
	}
	return New(m.cfg.Config, client, m.cfg.Mask)
}

// Verifier implements orchestrator.Models.
func (m *Models) Verifier(c *contract.GoalConstraints) (orchestrator.Verifier, error) {
	if cmp.Or(c.VerifierKind, m.cfg.Verifier.Kind, contract.VerifierDeterministic) == contract.VerifierDeterministic {
		return orchestrator.Deterministic{}, nil
	}
	client, err := m.choose("verifier", m.cfg.Verifier, ModelRef{c.VerifierKind, c.VerifierEndpoint, c.VerifierModel})
	if err != nil {
		return nil, err
	}
	return NewVerifier(m.cfg.Config, client, m.cfg.Mask)
}

// choose returns the client of the model that the caller chooses, or else of the operator's.
func (m *Models) choose(role string, operator, caller ModelRef) (*llm.Client, error) {
	refuse := func(format string, args ...any) error {
		return &orchestrator.PlanError{Reason: contract.ReasonPlannerNotConfigured, Message: fmt.Sprintf(format, args...)}
	}
	key := clientKey{ModelRef: ModelRef{cmp.Or(caller.Kind, operator.Kind), operator.Endpoint, cmp.Or(caller.Model, operator.Model)}}
	switch {
	case key.Kind == "" || key.Kind == contract.PlannerStatic || key.Kind == contract.VerifierDeterministic:
		return nil, refuse("no model is configured as %s: send a plan in constraints.plan (--plan), or set orchestrator.%s.kind, or constraints.%s_kind and constraints.%s_endpoint", role, role, role, role)
	case caller.Endpoint != "":
		endpoint, err := normalizeEndpoint(caller.Endpoint)
		if err != nil || !slices.Contains(m.allowed, endpoint) {
			return nil, refuse("constraints.%s_endpoint is not in orchestrator.endpoints_allowed", role)
		}
		key = clientKey{ModelRef: ModelRef{key.Kind, endpoint, caller.Model}, callers: true}
	case key.Kind != operator.Kind:
		return nil, refuse("the %s of the operator is not of kind %s: name an endpoint in constraints.%s_endpoint", role, key.Kind, role)
	}
	client, err := m.client(key)
	if err != nil {
		return nil, refuse("the model of the %s cannot be used: %v", role, err)
	}
	return client, nil
}

// client returns the client of a model, and opens it if there is none.
func (m *Models) client(key clientKey) (*llm.Client, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.IndexFunc(m.clients, func(c modelClient) bool { return c.key == key }); i >= 0 {
		c := m.clients[i]
		m.clients = append(slices.Delete(m.clients, i, i+1), c)
		return c.client, nil
	}
	settings := m.cfg.Settings
	settings.Provider, settings.Model, settings.BaseURL = key.Kind, key.Model, key.Endpoint
	if key.callers {
		settings.APIKey, settings.KeyEnv = llm.Secret{}, ""
	}
	provider, err := m.cfg.Open(settings)
	if err != nil {
		return nil, err
	}
	clientConfig := m.cfg.Client
	clientConfig.Provider, clientConfig.Model = key.Kind, key.Model
	clientConfig.Observe = func(call llm.Call) {
		if m.cfg.Observe != nil {
			m.cfg.Observe(key.ModelRef, call)
		}
	}
	c := modelClient{key, llm.NewClient(clientConfig, provider)}
	if len(m.clients) == maxClients {
		_ = m.clients[0].client.Close() // closes idle connections only
		m.clients = slices.Delete(m.clients, 0, 1)
	}
	m.clients = append(m.clients, c)
	return c.client, nil
}

// Close closes the idle connections of all clients.
func (m *Models) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var err error
	for _, c := range m.clients {
		err = errors.Join(err, c.client.Close())
	}
	return err
}

// normalizeEndpoint returns a base URL in one spelling: scheme and host in lower case, no
// slash at the end.
func normalizeEndpoint(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", errors.New("an endpoint is not a URL with http or https")
	}
	if u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return "", errors.New("an endpoint has a user, a query or a fragment")
	}
	return u.Scheme + "://" + strings.ToLower(u.Host) + strings.TrimRight(u.EscapedPath(), "/"), nil
}
