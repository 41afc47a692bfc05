package main

import (
	"path/filepath"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/cli/localfile"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/orchestrator/policy"
)

// schemaDir is the directory that init writes the schemas into, beside the files that
// refer to them.
const schemaDir = "schemas"

// fileSchema is the JSON Schema of one kind of YAML file.
type fileSchema struct {
	name     string // argument of the command; the file is name.json
	generate func() (map[string]any, error)
}

func fileSchemas() []fileSchema {
	return []fileSchema{
		{"registry", capabilities.Schema},
		{"config", config.Schema},
		{"cases", golden.Schema},
		{"policy", policy.Schema},
	}
}

func (s *fileSchema) encode() ([]byte, error) {
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
	for _, s := range fileSchemas() {
		data, err := s.encode()
		if err != nil {
			return nil, err
		}
		files = append(files, localfile.File{Path: filepath.Join(dir, schemaDir, s.name+".json"), Content: data})
	}
	return files, nil
}
