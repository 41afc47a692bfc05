package issuance

import (
	"fmt"

	"github.com/caprouter/caprouter/internal/auth/jwk"
	"github.com/caprouter/caprouter/internal/auth/keyring"
)

// Issuer issues the tokens of the router. It is safe for concurrent use.
type Issuer struct {
	keys     *keyring.Ring
	agentAlg string // jwk.EdDSA or jwk.ES256
}

// New returns an Issuer that signs with the keys of the ring, tokens for agents with
// the algorithm agentAlg: jwk.EdDSA, or jwk.ES256 for agents whose libraries do not have
// Ed25519.
func New(keys *keyring.Ring, agentAlg string) (*Issuer, error) {
	if agentAlg != jwk.EdDSA && agentAlg != jwk.ES256 {
		return nil, fmt.Errorf("algorithm %q of tokens for agents: want %s or %s", agentAlg, jwk.EdDSA, jwk.ES256)
	}
	return &Issuer{keys: keys, agentAlg: agentAlg}, nil
}

// KeyID returns the id of the current signing key. A token that was issued with another
// one may be signed with a revoked key.
func (i *Issuer) KeyID() string { return i.keys.KeyID() }
