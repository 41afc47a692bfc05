package fleet

import (
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// registrationRecord is the stored form of a registration.
type registrationRecord struct {
	Registration contract.Registration `json:"registration"`
	Issuer       string                `json:"issuer,omitempty"` // of the token that registered it
	Draining     bool                  `json:"draining,omitzero"`
}

// disabledRecord marks an agent that an operator has taken out of routing.
type disabledRecord struct {
	By string    `json:"by"` // subject of the operator's token
	At time.Time `json:"at"`
}

func (r *registrationRecord) instance(key instanceKey, revision uint64) *instance {
	return &instance{key: key, registration: r.Registration, issuer: r.Issuer, draining: r.Draining, revision: revision, size: r.size()}
}

// size returns the length of the record in bytes, as it is stored.
func (r *registrationRecord) size() int {
	data, err := strictjson.Marshal(r)
	if err != nil {
		return 0 // the store rejects it as well
	}
	return len(data)
}

// String returns the key of the instance's record. Neither part contains a dot.
func (k instanceKey) String() string { return k.agentID + "." + k.name }

// parseKey is the inverse of String.
func parseKey(text string) (instanceKey, bool) {
	agentID, name, ok := strings.Cut(text, ".")
	return instanceKey{agentID, name}, ok && contract.ValidAgentID(agentID) && contract.ValidAgentID(name)
}
