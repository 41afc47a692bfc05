package starter

import (
	"path/filepath"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/cli/localfile"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/orchestrator/policy"
)

// SchemaDir is the directory that init writes the schemas into, beside the files that
// refer to them.
const SchemaDir = "schemas"

// Schema is the JSON Schema of one kind of YAML file of the user.
type Schema struct {
	Name     string // the file is Name.json
	generate func() (map[string]any, error)
}

// Schemas returns the schemas of all kinds of files.
func Schemas() []Schema {
	return []Schema{
		{"registry", capabilities.Schema},
		{"config", config.Schema},
		{"cases", golden.Schema},
		{"policy", policy.Schema},
	}
}

// Encode returns the schema as indented JSON.
func (s *Schema) Encode() ([]byte, error) {
	schema, err := s.generate()
	if err != nil {
		return nil, err
	}
	data, err := strictjson.MarshalIndent(schema)
	return append(data, '\n'), err
}

// schemaFiles returns the schemas as files below dir.
func schemaFiles(dir string) ([]localfile.File, error) {
	var files []localfile.File
	for _, s := range Schemas() {
		data, err := s.Encode()
		if err != nil {
			return nil, err
		}
		files = append(files, localfile.File{Path: filepath.Join(dir, SchemaDir, s.Name+".json"), Content: data})
	}
	return files, nil
}
