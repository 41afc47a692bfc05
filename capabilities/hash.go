package capabilities

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// digest is a SHA-256 sum. Versions of many entries are digests of their digests, so that
// a change of one entry does not encode the others again.
type digest = [sha256.Size]byte

func (c *Catalogue) hash() (string, error) {
	sum, err := digestJSON(struct {
		Format        int
		Agents        []*contract.RegistryEntry
		DomainAliases map[string][]string
		Routing       Routing
		Fallback      Fallback
	}{formatVersion, c.Learned, c.DomainAliases, c.Routing, c.Fallback})
	return formatDigest(sum), err
}

// digestMember returns the digest of what Catalogue.Members depends on.
func digestMember(p *entryParts) (digest, error) {
	return digestJSON(struct {
		Entry    *contract.RegistryEntry
		Disabled bool // determines Catalogue.IntentDomains
	}{p.catalogue, p.disabled})
}

// digestFleetEntry returns the digest of an entry of the fleet, and of what its JSON does
// not contain.
func digestFleetEntry(e *contract.RegistryEntry) (digest, error) {
	return digestJSON(struct {
		Entry     *contract.RegistryEntry
		Origin    contract.Origin
		State     contract.AgentState
		Instances []contract.Instance
	}{e, e.Origin, e.State, e.Instances})
}

// hashMembers returns Catalogue.Members.
func hashMembers(parts []*entryParts) string {
	hash, empty := sha256.New(), true
	for _, p := range parts {
		if p.memberDigest != (digest{}) {
			empty = false
			_, _ = hash.Write(p.memberDigest[:]) // returns no error
		}
	}
	if empty {
		return ""
	}
	return formatDigest(digest(hash.Sum(nil)))
}

// hashFleet returns Fleet.Revision.
func hashFleet(members string, parts []*entryParts, grants digest) string {
	hash := sha256.New()
	fmt.Fprintln(hash, formatVersion, members)
	_, _ = hash.Write(grants[:])
	for _, p := range parts {
		_, _ = hash.Write(p.fleetDigest[:])
	}
	return formatDigest(digest(hash.Sum(nil)))
}

func formatDigest(sum digest) string { return "sha256:" + hex.EncodeToString(sum[:]) }

func digestJSON(v any) (sum digest, err error) {
	hash := sha256.New()
	if err := strictjson.MarshalWrite(hash, v); err != nil {
		return sum, fmt.Errorf("hash the registry: %w", err)
	}
	return digest(hash.Sum(nil)), nil
}
