package capabilities

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// document is the registry file: the keys of 003 §1 and ours beside them.
type document struct {
	Version  int                               `yaml:"version"`
	Clients  map[string]contract.RegistryEntry `yaml:"clients"`
	Routing  Routing                           `yaml:"routing"`
	Fallback Fallback                          `yaml:"fallback"`
	Grants   map[string]contract.Grant         `yaml:"grants"`
}

// formatVersion is the only `version:` there is; a file need not name it.
const formatVersion = 1

// Load reads and parses the registry file at path. A file that is wrong is
// strictyaml.Errors; one that cannot be read is the system's error.
func Load(path string) (*Snapshot, error) {
	data, err := strictyaml.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load the registry: %w", err)
	}
	return Parse(path, data)
}

// Parse turns a registry file into a Snapshot. file names it in errors. The
// error is strictyaml.Errors with every mistake that could be found in one go.
func Parse(file string, data []byte) (*Snapshot, error) {
	doc, err := strictyaml.Parse(file, data)
	if err != nil {
		return nil, err
	}
	d := document{Version: formatVersion, Routing: DefaultRouting(), Fallback: DefaultFallback()}
	// What Decode finds is told together with what check finds.
	_ = doc.Decode(&d, strictyaml.ScalarOrList[contract.Restore]())
	check(doc, &d)
	if err := doc.Err(); err != nil {
		return nil, err
	}
	return snapshot(&d)
}

func snapshot(d *document) (*Snapshot, error) {
	s := &Snapshot{
		Agents:   make([]*contract.RegistryEntry, 0, len(d.Clients)),
		Routing:  d.Routing,
		Fallback: d.Fallback,
		Grants:   d.Grants,
	}
	intents, domains := map[string]bool{}, map[string]bool{}
	for _, id := range slices.Sorted(maps.Keys(d.Clients)) {
		entry := d.Clients[id]
		entry.ID = id
		entry.Requires = tidy(entry.Requires)
		s.Agents = append(s.Agents, &entry)
		for _, intent := range entry.Match.Intent {
			intents[intent] = true
		}
		for _, domain := range entry.Match.Domains {
			domains[domain] = true
		}
	}
	for subject, grant := range s.Grants {
		grant.Requires = tidy(grant.Requires)
		s.Grants[subject] = grant
	}
	delete(domains, contract.AnyDomain)
	s.Intents = slices.Sorted(maps.Keys(intents))
	s.Domains = slices.Sorted(maps.Keys(domains))
	for _, a := range s.Agents {
		if p := a.Endpoint.Protocol; p != "" && p != contract.ProtocolHTTP {
			s.Warnings = append(s.Warnings, fmt.Sprintf("%s is reached by protocol %s, which is not served yet: every task for it fails", a.ID, p))
		}
	}
	var err error
	s.Version, err = version(s)
	return s, err
}

// tidy makes no difference between an empty list and none, so that the version
// makes none either.
func tidy(r contract.Requires) contract.Requires {
	for _, list := range []*[]string{&r.Scopes, &r.Tenants, &r.DataClasses} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	return r
}

// version hashes the content as it is understood, defaults included, so that
// two files that mean the same have one version.
func version(s *Snapshot) (string, error) {
	hash := sha256.New()
	err := strictjson.MarshalWrite(hash, struct {
		Format   int
		Agents   []*contract.RegistryEntry
		Routing  Routing
		Fallback Fallback
		Grants   map[string]contract.Grant
	}{formatVersion, s.Agents, s.Routing, s.Fallback, s.Grants})
	if err != nil {
		return "", fmt.Errorf("hash the registry: %w", err)
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil)), nil
}
