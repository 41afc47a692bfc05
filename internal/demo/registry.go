package demo

import (
	_ "embed"
	"strings"
)

// The ids of the sample agents, as in registry.yaml.
const (
	QualityAgent = "quality_agent"
	RAGAgent     = "rag_agent"
	BillingAgent = "billing_agent"
)

// registryFile is a registry that loads as it is; its endpoints are the places
// below.
//
//go:embed registry.yaml
var registryFile string

// places are the endpoints registry.yaml names, by agent.
var places = map[string]string{
	QualityAgent: "http://127.0.0.1:9101/tasks",
	RAGAgent:     "http://127.0.0.1:9102/tasks",
	BillingAgent: "http://127.0.0.1:9103/tasks",
}

// Registry returns the sample registry with the agents at the given URLs. An
// agent that is not among them stays where registry.yaml puts it.
func Registry(urls URLs) []byte {
	text := registryFile
	for id, url := range urls {
		text = strings.ReplaceAll(text, places[id], url)
	}
	return []byte(text)
}
