package workload

import (
	"fmt"
	"strings"
)

// The ids of the agents in the registry.
const (
	PlainAgent      = "plain_agent"  // idempotent, answers
	OnceAgent       = "once_agent"   // not idempotent, answers, sometimes with failure
	OnceStandby     = "once_standby" // its standby
	AsyncAgent      = "later_agent"  // not idempotent, answers 202 and calls back
	UnreliableAgent = "shaky_agent"  // idempotent, fails often
	SpareAgent      = "spare_agent"  // its standby
	PullAgent       = "once_puller"  // not idempotent, pulls its tasks
	JoinedAgent     = "joined_agent" // idempotent, answers; not in the registry, but it may register itself
)

// registry returns the registry of the agents at agentsURL. It has no examples: the
// prompts contain the intents.
func registry(agentsURL string) string {
	var registry strings.Builder
	registry.WriteString("version: 1\nclients:\n")
	for _, a := range []struct {
		id, intent, domain string
		priority           int
	}{
		{PlainAgent, "code_review", "python", 0},
		{OnceAgent, "cost_analysis", "azure", 1},
		{OnceStandby, "cost_analysis", "azure", 0},
		{AsyncAgent, "travel_booking", "flights", 0},
		{UnreliableAgent, "log_search", "cluster", 1},
		{SpareAgent, "log_search", "cluster", 0},
	} {
		fmt.Fprintf(&registry, `  %[1]s:
    match: { intent: [%[2]s], domains: [%[3]s] }
    endpoint: { protocol: http, url: "%[4]s/%[1]s", timeout_ms: 60000, idempotent: %[5]t }
    max_in_flight: 100000
    priority: %[6]d
`, a.id, a.intent, a.domain, agentsURL, isIdempotent(a.id), a.priority)
	}
	fmt.Fprintf(&registry, `  %s:
    match: { intent: [parcel_tracking], domains: [post] }
    endpoint: { protocol: pull }
    max_in_flight: 100000
`, PullAgent)
	registry.WriteString("routing: { topk: 3 }\n")
	return registry.String()
}

// Grants returns the registry key that permits JoinedAgent to register itself.
func Grants() string {
	return "grants:\n  " + JoinedAgent + ": { intents: [line_counting], domains: [text] }\n"
}

// Registration returns the registration of JoinedAgent at agentsURL.
func Registration(agentsURL string, leaseSeconds int) []byte {
	return fmt.Appendf(nil, `{"match":{"intent":["line_counting"],"domains":["text"]},"lease_ttl_s":%d,"endpoint":{"protocol":"http","url":"%s/%s","idempotent":true}}`,
		leaseSeconds, agentsURL, JoinedAgent)
}

// The prompts are formatted with a number, so that no two requests are equal.
const (
	PlainPrompt = "code review of python module %d"
	AsyncPrompt = "travel booking of flights %d"
	CostPrompt  = "cost analysis of azure bill %d"
	LogPrompt   = "log search on the cluster %d"
	PullPrompt  = "parcel tracking of the post %d"

	JoinedPrompt = "line counting of the text %d" // of JoinedAgent
)

// longPrompt has about 63 KB, twice of which are stored.
func longPrompt(n int) string {
	return fmt.Sprintf(PlainPrompt, n) + strings.Repeat(" of the python module", 3000)
}

func promptTemplates() []string {
	return []string{
		PlainPrompt,
		CostPrompt,
		AsyncPrompt,
		LogPrompt,
		PullPrompt,
		"code review of python module %d. Then do a travel booking of flights. Then do a cost analysis of the azure bill.",
		"cost analysis of the azure bill %d, then travel booking of flights",
	}
}
