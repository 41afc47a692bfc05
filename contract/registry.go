package contract

import (
	"maps"
	"slices"
)

// AgentIDPattern is the pattern of agent ids.
const AgentIDPattern = `^[a-z][a-z0-9_-]{0,63}$`

// ValidAgentID reports whether id matches AgentIDPattern.
func ValidAgentID(id string) bool {
	if len(id) == 0 || len(id) > 64 || id[0] < 'a' || id[0] > 'z' {
		return false
	}
	for i := 1; i < len(id); i++ {
		c := id[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// RegistryEntry declares one agent: what it can do, under which conditions, and
// how to reach it. It is one value under `clients:` in the registry file.
type RegistryEntry struct {
	ID          string              `json:"id" yaml:"id"`
	Description string              `json:"description,omitempty" yaml:"description" validate:"omitempty,text=2000"`
	Match       Match               `json:"match" yaml:"match"`
	Examples    map[string][]string `json:"examples,omitempty" yaml:"examples"` // utterances by intent
	Keywords    []string            `json:"keywords,omitempty" yaml:"keywords" validate:"dive,text=100"`
	NotFor      []string            `json:"not_for,omitempty" yaml:"not_for" validate:"dive,text=2000"`
	Constraints Constraints         `json:"constraints,omitzero" yaml:"constraints"`
	Requires    Requires            `json:"requires,omitzero" yaml:"requires"`
	// AcceptsDataClasses are the kinds of data that a request for the agent may
	// contain. Absent means all for an entry of a file, and none for a registered
	// agent.
	AcceptsDataClasses DataClasses `json:"accepts_data_classes,omitempty" yaml:"accepts_data_classes" validate:"unique,dive,kind=all none"`
	Endpoint           Endpoint    `json:"endpoint,omitzero" yaml:"endpoint"`
	// MCPCapabilities limit the MCP servers whose tools the agent may use. Absent means all;
	// a registration cannot set them.
	MCPCapabilities []string    `json:"mcp_capabilities,omitempty" yaml:"mcp_capabilities" validate:"unique,dive,name"`
	Restore         DataClasses `json:"restore,omitempty" yaml:"restore" validate:"unique,dive,kind=all none"` // kinds that the agent receives unmasked; absent = all
	Health          Health      `json:"health,omitzero" yaml:"health"`
	MaxInFlight     int         `json:"max_in_flight,omitzero" yaml:"max_in_flight" validate:"range=0 100000"` // 0 = DefaultMaxInFlight
	Priority        int         `json:"priority,omitzero" yaml:"priority" validate:"range=-1000000 1000000"`
	// Origin is the source of the entry. It and the fields below cannot be set in a
	// file or body.
	Origin Origin `json:"-" yaml:"-"`
	// State is active, draining, expired or disabled; "" = active. The live state of
	// the agent comes on top: its circuit breakers, and its tasks in flight.
	State AgentState `json:"-" yaml:"-"`
	// Instances are the processes of a registered agent, sorted by name. An agent of a
	// file has none: its Endpoint is the only one.
	Instances []Instance `json:"-" yaml:"-"`
}

// Origin is the source of an entry and determines its trust: an address that
// was registered over the API is called only through the guard for outgoing
// connections. The zero value is the operator's file.
type Origin string

// Origins.
const (
	OriginFile         Origin = ""             // the operator's registry file
	OriginRegistration Origin = "registration" // the agent itself, over the API
)

// DefaultMaxInFlight is the default limit of concurrent tasks of an agent.
const DefaultMaxInFlight = 64

// Match lists the intents and domains an agent serves.
type Match struct {
	Intent  []string `json:"intent" yaml:"intent" validate:"unique,dive,intent"`
	Domains []string `json:"domains" yaml:"domains" validate:"unique,dive,domain"` // AnyDomain = any one
}

// Constraints are soft: violating one reduces the score by 0.2.
type Constraints struct {
	MaxTokens int `json:"max_tokens,omitzero" yaml:"max_tokens" validate:"range=0 100000000"` // 0 = none
}

// Requires are hard conditions: a request that does not meet them is not a
// candidate.
type Requires struct {
	Scopes      []string `json:"scopes,omitempty" yaml:"scopes" validate:"unique,dive,name"`
	Tenants     []string `json:"tenants,omitempty" yaml:"tenants" validate:"unique,dive,name"`
	DataClasses []string `json:"data_classes,omitempty" yaml:"data_classes" validate:"unique,dive,kind"`
}

// Protocols of Endpoint.Protocol.
const (
	ProtocolHTTP         = "http"
	ProtocolPull         = "pull"
	ProtocolMCP          = "mcp"
	ProtocolOrchestrator = "orchestrator"
)

// Endpoint describes how to reach an agent.
type Endpoint struct {
	Protocol   string `json:"protocol,omitempty" yaml:"protocol" validate:"omitempty,oneof=http pull mcp orchestrator"`
	URL        string `json:"url,omitempty" yaml:"url"`
	TimeoutMS  int    `json:"timeout_ms,omitzero" yaml:"timeout_ms" validate:"range=0 600000"` // 0 = remaining time of the request
	Idempotent bool   `json:"idempotent,omitzero" yaml:"idempotent"`                           // a task may be resent
	// Action and Arguments are for protocol mcp: the tool, and what it gets of a task.
	Action    string              `json:"action,omitempty" yaml:"action" validate:"omitempty,text=400"` // server and tool, for example weather.query
	Arguments map[string]Argument `json:"arguments,omitempty" yaml:"arguments"`                         // by name
}

// Argument is where the value of an argument of a tool comes from.
type Argument struct {
	From    string `json:"from,omitempty" yaml:"from"`                                                          // an ArgumentSource, or "inputs." and a name; "" = Default
	Match   string `json:"match,omitempty" yaml:"match"`                                                        // a regular expression: the value is its first group, or all of the match
	Default string `json:"default,omitempty" yaml:"default"`                                                    // if there is no value or no match; "" = none
	Type    string `json:"type,omitempty" yaml:"type" validate:"omitempty,oneof=string number integer boolean"` // of the value, which is a text; "" = string
}

// Values of Argument.From besides the inputs of a request.
const (
	FromPrompt    = "prompt"
	FromSubtask   = "subtask"
	FromIntent    = "intent"
	FromLocale    = "locale"
	FromSessionID = "session_id"

	FromInputPrefix = "inputs."
)

// ArgumentSources returns the values of Argument.From besides the inputs of a request.
func ArgumentSources() []string {
	return []string{FromPrompt, FromSubtask, FromIntent, FromLocale, FromSessionID}
}

// Equal reports whether both describe the same.
func (e *Endpoint) Equal(other *Endpoint) bool {
	return e.Protocol == other.Protocol && e.URL == other.URL && e.TimeoutMS == other.TimeoutMS && e.Idempotent == other.Idempotent &&
		e.Action == other.Action && maps.Equal(e.Arguments, other.Arguments)
}

// IsZero reports whether the endpoint is not declared.
func (e Endpoint) IsZero() bool { return e.Equal(&Endpoint{}) }

// DataClasses lists kinds of masked text: "all", "none" or kinds, for example
// ["email"]. In YAML it is a word or a list. nil is the default of its key.
type DataClasses []string

// Words of DataClasses that are not kinds.
const (
	AllClasses = "all"
	NoClasses  = "none"
)

// Health configures the health checks of an agent.
type Health struct {
	IntervalS int    `json:"interval_s,omitzero" yaml:"interval_s" validate:"range=0 86400"` // 0 = no checks
	Path      string `json:"path,omitempty" yaml:"path" validate:"omitempty,urlpath"`        // "" = DefaultHealthPath
}

// DefaultHealthPath is the path of health checks, at the host of the endpoint.
const DefaultHealthPath = "/healthz"

// Grant limits what a self-registering agent may declare. It is one value under
// `grants:`, whose keys are the ids of the agents, which are the subjects of their
// tokens as well.
type Grant struct {
	Intents []string `json:"intents" yaml:"intents" validate:"unique,dive,intent"`
	Domains []string `json:"domains" yaml:"domains" validate:"unique,dive,domain"` // AnyDomain = all of them
	// Priority and Requires are those of the agent, whatever it declares.
	Priority int      `json:"priority,omitzero" yaml:"priority" validate:"range=-1000000 1000000"`
	Requires Requires `json:"requires,omitzero" yaml:"requires"`
	// AcceptsDataClasses are the kinds of data that a request for the agent may
	// contain, of those that the agent declares to accept. Absent = none.
	AcceptsDataClasses DataClasses `json:"accepts_data_classes,omitempty" yaml:"accepts_data_classes" validate:"unique,dive,kind=all none"`
	// Restore are the kinds that the agent receives unmasked. Absent = none.
	Restore DataClasses `json:"restore,omitempty" yaml:"restore" validate:"unique,dive,kind=all none"`
}

// GrantsDomain reports whether the agent may declare the domain, which may be AnyDomain.
func (g *Grant) GrantsDomain(domain string) bool {
	return slices.Contains(g.Domains, domain) || slices.Contains(g.Domains, AnyDomain)
}
