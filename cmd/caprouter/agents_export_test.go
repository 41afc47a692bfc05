package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// A caller that may not see the addresses of agents gets a valid registry file all the same.
func TestPrintRegistryFile_WithoutAddresses(t *testing.T) {
	var registry registryInForce
	for _, agent := range []string{
		`{"id":"sent","match":{"intent":["a"],"domains":["x"]},"endpoint":{"protocol":"http","idempotent":true}}`,
		`{"id":"shown","match":{"intent":["b"],"domains":["x"]},"endpoint":{"protocol":"http","url":"http://127.0.0.1:9101/"}}`,
		`{"id":"tool","match":{"intent":["c"],"domains":["x"]},"endpoint":{"protocol":"mcp"}}`,
		`{"id":"pulled","match":{"intent":["d"],"domains":["x"]},"endpoint":{"protocol":"pull"}}`,
	} {
		var entry map[string]json.RawMessage
		if err := strictjson.Unmarshal([]byte(agent), &entry); err != nil {
			t.Fatal(err)
		}
		registry.Agents = append(registry.Agents, entry)
	}
	registry.Aliases, registry.Routing, registry.Fallback = json.RawMessage("{}"), json.RawMessage("{}"), json.RawMessage("{}")
	var file strings.Builder
	if err := printRegistryFile(&file, &registry); err != nil {
		t.Fatal(err)
	}
	s, err := capabilities.Parse("registry.json", []byte(file.String()))
	if err != nil {
		t.Fatalf("got %v, want a valid file:\n%s", err, file.String())
	}
	for id, want := range map[string]string{"sent": "", "shown": "http://127.0.0.1:9101/", "tool": "", "pulled": ""} {
		if got := s.Entry(id).Endpoint.URL; got != want {
			t.Errorf("%s: got the URL %q, want %q", id, got, want)
		}
	}
	if got := s.Entry("pulled").Endpoint.Protocol; got != "pull" {
		t.Errorf("pulled: got the protocol %q, want pull", got)
	}
}
