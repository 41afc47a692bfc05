package capabilities

import (
	"fmt"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/filekind"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// fileContent is the structure of the registry file.
type fileContent struct {
	Version       int                               `yaml:"version"`
	Clients       map[string]contract.RegistryEntry `yaml:"clients" synonym:"agents"`
	DomainAliases map[string][]string               `yaml:"domain_aliases"`
	Routing       Routing                           `yaml:"routing"`
	Fallback      Fallback                          `yaml:"fallback"`
	Grants        map[string]contract.Grant         `yaml:"grants"`
}

// dataClassesOption permits a word for a list of kinds.
func dataClassesOption() strictyaml.Option { return strictyaml.ScalarOrList[contract.DataClasses]() }

// Schema returns the JSON Schema of registry files.
func Schema() (map[string]any, error) {
	shape, err := shapeValidator()
	if err != nil {
		return nil, err
	}
	return strictyaml.Schema("caprouter capability registry", fileContent{}, shape, dataClassesOption()), nil
}

// formatVersion is the only valid `version:`, and its default.
const formatVersion = 1

// Load reads and parses the registry file at path. If the file has mistakes, the
// error is strictyaml.Errors.
func Load(path string) (*Snapshot, error) {
	data, err := strictyaml.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load the registry: %w", err)
	}
	s, err := Parse(path, data)
	return s, filekind.Explain(err, filekind.Registry, path, data)
}

// Parse returns the snapshot of a registry file. Errors contain file as its name.
// The error is strictyaml.Errors with all mistakes of the file.
func Parse(file string, data []byte) (*Snapshot, error) {
	d, err := ParseDefinition(file, data)
	if err != nil {
		return nil, err
	}
	return NewSnapshot(d)
}

// ParseDefinition is Parse for a file that is merged with other sources.
func ParseDefinition(file string, data []byte) (*Definition, error) {
	doc, err := strictyaml.Parse(file, data)
	if err != nil {
		return nil, err
	}
	d := fileContent{Version: formatVersion, Routing: DefaultRouting(), Fallback: DefaultFallback()}
	// The document collects the errors of Decode and of check, so that one pass
	// reports both.
	_ = doc.Decode(&d, dataClassesOption())
	if policy, ok := policyWords[d.Fallback.Policy]; ok {
		d.Fallback.Policy = policy
	}
	if err := checkDocument(doc, &d); err != nil {
		return nil, err
	}
	def := &Definition{DomainAliases: d.DomainAliases, Routing: d.Routing, Fallback: d.Fallback, Grants: d.Grants}
	for id, entry := range d.Clients {
		entry.ID = id
		def.Agents = append(def.Agents, &entry)
	}
	return def, nil
}
