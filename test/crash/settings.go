package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// The agents, as the registry names them.
const (
	plainAgent  = "plain_agent"  // idempotent, answers
	onceAgent   = "once_agent"   // not idempotent, answers, seldom says failure
	onceStandby = "once_standby" // behind it
	laterAgent  = "later_agent"  // not idempotent, answers 202 and calls back
	shakyAgent  = "shaky_agent"  // idempotent, fails often
	spareAgent  = "spare_agent"  // behind it
)

// publicURL is where agents call back. The router listens on another port each
// time it starts; the door knows which.
const publicURL = "http://localhost"

// writeConfig writes configuration and registry into dir and returns the path of
// the former. The model's key is kept out of the process, so that intents are
// known by their names alone.
func writeConfig(dir, agents string) (string, error) {
	registry := `version: 1
clients:
  ` + plainAgent + `:
    match: { intent: [code_review], domains: [python] }
    endpoint: { protocol: http, url: "` + agents + `/` + plainAgent + `", timeout_ms: 60000, idempotent: true }
    max_in_flight: 100000
  ` + onceAgent + `:
    match: { intent: [cost_analysis], domains: [azure] }
    endpoint: { protocol: http, url: "` + agents + `/` + onceAgent + `", timeout_ms: 60000 }
    max_in_flight: 100000
    priority: 1
  ` + onceStandby + `:
    match: { intent: [cost_analysis], domains: [azure] }
    endpoint: { protocol: http, url: "` + agents + `/` + onceStandby + `", timeout_ms: 60000 }
    max_in_flight: 100000
  ` + laterAgent + `:
    match: { intent: [travel_booking], domains: [flights] }
    endpoint: { protocol: http, url: "` + agents + `/` + laterAgent + `", timeout_ms: 60000 }
    max_in_flight: 100000
  ` + shakyAgent + `:
    match: { intent: [log_search], domains: [cluster] }
    endpoint: { protocol: http, url: "` + agents + `/` + shakyAgent + `", timeout_ms: 60000, idempotent: true }
    max_in_flight: 100000
    priority: 1
  ` + spareAgent + `:
    match: { intent: [log_search], domains: [cluster] }
    endpoint: { protocol: http, url: "` + agents + `/` + spareAgent + `", timeout_ms: 60000, idempotent: true }
    max_in_flight: 100000
routing: { topk: 3 }
`
	config := fmt.Sprintf(`listen: 127.0.0.1:0
public_url: %s
data_dir: %s
registry: { file: %s, hot_reload: false }
classifier: { mode: lexical }
`, publicURL, dataDir(dir), filepath.Join(dir, "capabilities.yaml"))
	path := filepath.Join(dir, "caprouter.yaml")
	for file, content := range map[string]string{filepath.Join(dir, "capabilities.yaml"): registry, path: config} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return "", err
		}
	}
	return path, nil
}

func dataDir(dir string) string { return filepath.Join(dir, "data") }

// The prompts for one agent, idempotent or one that calls back.
const (
	plainPrompt = "code review of python module %d"
	laterPrompt = "travel booking of flights %d"
)

// prompts are what callers ask for. Every prompt holds a number: no two requests
// are the same.
func prompts() []string {
	return []string{
		plainPrompt,
		"cost analysis of azure bill %d",
		laterPrompt,
		"log search on the cluster %d",
		"code review of python module %d. Then do a travel booking of flights. Then do a cost analysis of the azure bill.",
		"cost analysis of the azure bill %d, then travel booking of flights",
	}
}
