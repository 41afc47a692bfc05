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

// registryFile is a valid registry with the endpoints in defaultURLs.
//
//go:embed registry.yaml
var registryFile string

var defaultURLs = URLs{
	QualityAgent: "http://127.0.0.1:9101/tasks",
	RAGAgent:     "http://127.0.0.1:9102/tasks",
	BillingAgent: "http://127.0.0.1:9103/tasks",
}

// Registry returns the sample registry with the agents at the given URLs. An agent
// without a URL keeps its default.
func Registry(urls URLs) []byte {
	text := registryFile
	for id, url := range urls {
		text = strings.ReplaceAll(text, defaultURLs[id], url)
	}
	return []byte(text)
}
