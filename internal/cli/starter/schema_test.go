package starter

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"gopkg.in/yaml.v3"
)

// The files of init, of examples and of the demonstration are valid according to their schemas. A
// misspelt key, an unknown word and a number out of range are not.
func TestFileSchemas(t *testing.T) {
	dir := t.TempDir()
	cfg := defaultConfig()
	if _, err := Write(dir, &cfg); err != nil {
		t.Fatal(err)
	}
	files := map[string][]string{
		"registry": {filepath.Join(dir, "capabilities.yaml"), "../../../examples/capabilities.yaml", "../../../internal/demo/registry.yaml", "../../../capabilities/testdata/full.yaml"},
		"config":   {filepath.Join(dir, "caprouter.yaml"), "../../../examples/caprouter.yaml"},
		"cases":    {filepath.Join(dir, "cases.yaml")},
		"policy":   {"../../../orchestrator/policy/defaults.yaml", "../../../examples/policy.yaml"},
	}
	more, err := filepath.Glob("../../../examples/golden/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files["cases"] = append(files["cases"], more...)
	for _, s := range Schemas() {
		data, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		var schema openapi3.Schema
		if err := schema.UnmarshalJSON(data); err != nil {
			t.Fatal(err)
		}
		for _, file := range files[s.Name] {
			if err := schema.VisitJSON(readYAML(t, file)); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
		for _, content := range append(invalidFiles()[s.Name], "clientz: {}") {
			var v any
			if err := yaml.Unmarshal([]byte(content), &v); err != nil {
				t.Fatal(err)
			}
			if err := schema.VisitJSON(v); err == nil {
				t.Errorf("schema %s: got no error for %s", s.Name, content)
			}
		}
	}
}

// invalidFiles returns contents with one mistake each, by the name of their schema.
func invalidFiles() map[string][]string {
	agent := func(keys string) string {
		return "clients: { a: { match: { intent: [x], domains: [y] }, " + keys + " } }"
	}
	return map[string][]string{
		"registry": {
			"routing: { topk: 9 }", "routing: { min_confidence: 1.5 }", "routing: { conflict_policy: first }",
			"fallback: { policy: D }", "fallback: { language: '?' }",
			agent("endpoint: { protocol: grpc }"), agent("max_in_flight: -1"), agent("restore: everything"), agent("restore: [emial]"),
			agent("health: { path: x }"), agent("keywords: ['']"), "clients: { a: { match: { intent: [x, x], domains: [] } } }",
		},
		"config": {
			"classifier: { mode: fast }", "dispatch: { timeout_ms: 0 }", "llm: { provider: other }", "data_dir: ''",
			"auth: { keys: [{ kid: a, alg: none }] }", "session: { classify_trigger: never }",
		},
		"policy": {"rules: [{ id: a, effect: block }]", "rules: [{ id: a, effect: deny, when: { tool: [x] } }]", "rules: [{ id: a, effect: deny, when: { categories: [net] } }]", "version: 2", "roots: /a"},
		"cases":  {"cases: [{ id: a, split: holdout }]", "cases: [{ id: a, expect: { outcome: dispach } }]", "cases: [{ id: a, history: [{ role: system }] }]"},
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
