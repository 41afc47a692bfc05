package capabilities

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

func (c *Catalogue) hash() (string, error) {
	return hashJSON(struct {
		Format        int
		Agents        []*contract.RegistryEntry
		DomainAliases map[string][]string
		Routing       Routing
		Fallback      Fallback
	}{formatVersion, c.Learned, c.DomainAliases, c.Routing, c.Fallback})
}

// hashMembers returns Catalogue.Members.
func (s *Snapshot) hashMembers() (string, error) {
	type member struct {
		Entry    *contract.RegistryEntry
		Disabled bool // determines Catalogue.IntentDomains
	}
	var members []member
	for i, a := range s.Fleet.Agents {
		if a.Origin == contract.OriginRegistration {
			members = append(members, member{s.Catalogue.Agents[i], isDisabledMember(a)})
		}
	}
	if len(members) == 0 {
		return "", nil
	}
	return hashJSON(members)
}

func (f *Fleet) hash(members string) (string, error) {
	type unwritten struct { // what an entry's JSON does not contain
		Origin    contract.Origin
		State     contract.AgentState
		Instances []contract.Instance
	}
	others := make([]unwritten, len(f.Agents))
	for i, a := range f.Agents {
		others[i] = unwritten{a.Origin, a.State, a.Instances}
	}
	return hashJSON(struct {
		Format  int
		Members string
		Agents  []*contract.RegistryEntry
		Others  []unwritten
		Grants  map[string]contract.Grant
	}{formatVersion, members, f.Agents, others, f.Grants})
}

func hashJSON(v any) (string, error) {
	hash := sha256.New()
	if err := strictjson.MarshalWrite(hash, v); err != nil {
		return "", fmt.Errorf("hash the registry: %w", err)
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil)), nil
}
