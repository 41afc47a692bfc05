package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/caprouter/caprouter/test/internal/process"
)

// The ids of the agents in the registry.
const (
	plainAgent      = "plain_agent"  // idempotent, answers
	onceAgent       = "once_agent"   // not idempotent, answers, sometimes with failure
	onceStandby     = "once_standby" // its standby
	asyncAgent      = "later_agent"  // not idempotent, answers 202 and calls back
	unreliableAgent = "shaky_agent"  // idempotent, fails often
	spareAgent      = "spare_agent"  // its standby
)

// publicURL is the base of callback URLs. The port of the router changes with each
// start; currentRouter knows it.
const publicURL = "http://localhost"

// writeConfig writes configuration and registry into dir, and returns the path of the
// configuration. store contains the keys of the store. The registry has no examples:
// the prompts contain the intents.
func writeConfig(dir, agentsURL, store string) (string, error) {
	var registry strings.Builder
	registry.WriteString("version: 1\nclients:\n")
	for _, a := range []struct {
		id, intent, domain string
		priority           int
	}{
		{plainAgent, "code_review", "python", 0},
		{onceAgent, "cost_analysis", "azure", 1},
		{onceStandby, "cost_analysis", "azure", 0},
		{asyncAgent, "travel_booking", "flights", 0},
		{unreliableAgent, "log_search", "cluster", 1},
		{spareAgent, "log_search", "cluster", 0},
	} {
		fmt.Fprintf(&registry, `  %[1]s:
    match: { intent: [%[2]s], domains: [%[3]s] }
    endpoint: { protocol: http, url: "%[4]s/%[1]s", timeout_ms: 60000, idempotent: %[5]t }
    max_in_flight: 100000
    priority: %[6]d
`, a.id, a.intent, a.domain, agentsURL, isIdempotent(a.id), a.priority)
	}
	registry.WriteString("routing: { topk: 3 }\n")
	return process.WriteConfig(dir, fmt.Sprintf(`listen: 127.0.0.1:0
public_url: %s
data_dir: %s
registry: { file: %s, hot_reload: false }
classifier: { mode: lexical }
limits: { classify: { rps: 0 } }
store: { %s }
`, publicURL, dataDir(dir), filepath.Join(dir, "capabilities.yaml"), store), registry.String())
}

func dataDir(dir string) string { return filepath.Join(dir, "data") }

const (
	plainPrompt = "code review of python module %d"
	asyncPrompt = "travel booking of flights %d"
	costPrompt  = "cost analysis of azure bill %d"
	logPrompt   = "log search on the cluster %d"
)

// longPrompt has about 63 KB, twice of which are stored.
func longPrompt(n int) string {
	return fmt.Sprintf(plainPrompt, n) + strings.Repeat(" of the python module", 3000)
}

// promptTemplates are formatted with a number, so that no two requests are equal.
func promptTemplates() []string {
	return []string{
		plainPrompt,
		costPrompt,
		asyncPrompt,
		logPrompt,
		"code review of python module %d. Then do a travel booking of flights. Then do a cost analysis of the azure bill.",
		"cost analysis of the azure bill %d, then travel booking of flights",
	}
}
