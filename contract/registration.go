package contract

import "time"

// Registration is what an agent declares about itself with PUT /api/v1/agents/{id}.
// The operator's grant for the agent limits it: see Grant.
type Registration struct {
	// Instance names the process that registers. Several instances of an agent share
	// its tasks. "" = DefaultInstance.
	Instance string `json:"instance,omitempty"`
	// LeaseTTLS is the time in seconds, 2 to 3,600, after which the registration
	// expires without a heartbeat. 0 = DefaultLeaseTTLS.
	LeaseTTLS int `json:"lease_ttl_s,omitzero"`

	// The other members are those of a RegistryEntry.

	Description        string              `json:"description,omitempty"`
	Match              Match               `json:"match"`
	Examples           map[string][]string `json:"examples,omitempty"`
	Keywords           []string            `json:"keywords,omitempty"`
	NotFor             []string            `json:"not_for,omitempty"`
	Constraints        Constraints         `json:"constraints,omitzero"`
	AcceptsDataClasses DataClasses         `json:"accepts_data_classes,omitempty"`
	Endpoint           Endpoint            `json:"endpoint"`
	Health             Health              `json:"health,omitzero"`
	MaxInFlight        int                 `json:"max_in_flight,omitzero"` // of the instance
}

// Defaults and limits of a Registration.
const (
	DefaultInstance  = "default"
	DefaultLeaseTTLS = 30
	MinLeaseTTLS     = 2
	MaxLeaseTTLS     = 3600
)

// HeartbeatsPerLease is how many heartbeats an agent sends during the TTL of its lease.
const HeartbeatsPerLease = 3

// Entry returns the registry entry that the registration of the agent declares, before
// it is limited to the grant.
func (r *Registration) Entry(agentID string) *RegistryEntry {
	return &RegistryEntry{
		ID: agentID, Description: r.Description, Match: r.Match, Examples: r.Examples, Keywords: r.Keywords, NotFor: r.NotFor,
		Constraints: r.Constraints, AcceptsDataClasses: r.AcceptsDataClasses, Endpoint: r.Endpoint, Health: r.Health,
		MaxInFlight: r.MaxInFlight, Origin: OriginRegistration,
	}
}

// Lease is the router's reply to a registration and to each heartbeat.
type Lease struct {
	AgentID  string     `json:"agent_id"`
	Instance string     `json:"instance"`
	State    AgentState `json:"state"` // of the instance
	// Reasons are codes why the instance gets no tasks although it is active:
	// ReasonNothingGranted.
	Reasons []string `json:"reasons"`
	// ExpiresAt is when the registration expires, unless a heartbeat renews it.
	ExpiresAt  time.Time `json:"expires_at"`
	HeartbeatS float64   `json:"heartbeat_s"` // the interval of heartbeats in seconds
	// Granted are the declared intents and domains that the operator has granted:
	// only these count for routing.
	Granted Match `json:"granted"`
	// Refused are sentences about declarations that the grant does not contain.
	Refused []string `json:"refused"`
}

// ReasonNothingGranted is the reason of a registered agent that gets no tasks because
// the operator has granted none of its intents.
const ReasonNothingGranted = "nothing_granted"

// AgentState is the state of an agent, or of one of its instances.
type AgentState string

// The agent states. Only active and degraded agents get tasks.
const (
	AgentActive AgentState = "active"
	// AgentDegraded is the state of an agent of which some instances fail while
	// others serve.
	AgentDegraded AgentState = "degraded"
	// AgentDraining means that the agent finishes its tasks and gets no new ones.
	AgentDraining AgentState = "draining"
	// AgentExpired means that no heartbeat came within the TTL of the lease.
	AgentExpired AgentState = "expired"
	// AgentDisabled means that an operator has taken the agent out of routing.
	AgentDisabled AgentState = "disabled"
)

// Instance is one process of a registered agent.
type Instance struct {
	Name        string
	Endpoint    Endpoint
	MaxInFlight int        // 0 = DefaultMaxInFlight
	State       AgentState // active, draining or expired
}
