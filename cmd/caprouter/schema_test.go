package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"gopkg.in/yaml.v3"
)

// The files of init, of examples and of the demonstration are valid by their schemas,
// and a misspelt key is not.
func TestFileSchemas(t *testing.T) {
	dir := t.TempDir()
	if err := runInit(t.Output(), dir); err != nil {
		t.Fatal(err)
	}
	files := map[string][]string{
		"registry": {filepath.Join(dir, "capabilities.yaml"), "../../examples/capabilities.yaml", "../../internal/demo/registry.yaml", "../../capabilities/testdata/full.yaml"},
		"config":   {filepath.Join(dir, "caprouter.yaml"), "../../examples/caprouter.yaml"},
		"cases":    {filepath.Join(dir, "cases.yaml")},
	}
	more, err := filepath.Glob("../../examples/golden/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files["cases"] = append(files["cases"], more...)
	for _, s := range fileSchemas() {
		data, err := s.encode()
		if err != nil {
			t.Fatal(err)
		}
		var schema openapi3.Schema
		if err := schema.UnmarshalJSON(data); err != nil {
			t.Fatal(err)
		}
		for _, file := range files[s.name] {
			if err := schema.VisitJSON(readYAML(t, file)); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
		if err := schema.VisitJSON(map[string]any{"clientz": map[string]any{}}); err == nil {
			t.Errorf("schema %s: got no error for an unknown key", s.name)
		}
	}
}

func readYAML(t *testing.T, file string) any {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := yaml.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
