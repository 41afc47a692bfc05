package capabilities

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/redact"
)

// checkEntry checks one value under `clients:`.
func (c checker) checkEntry(id string, e *contract.RegistryEntry) {
	c.checkID(id)
	if e.ID != "" && e.ID != id {
		c.report(fmt.Sprintf("must be the key above it, %q, got %q; or leave it out", truncateText(id), truncateText(e.ID)), "id")
	}
	if e.Description != "" {
		c.checkText(e.Description, maxDescriptionLength, "description")
	}
	if len(e.Match.Intent) == 0 {
		c.report("declares no intent; list at least one under match.intent", "match", "intent")
	}
	c.checkNames(e.Match.Intent, intentProblem, "match", "intent")
	c.checkNames(e.Match.Domains, domainProblem, "match", "domains")
	c.checkExamples(e)
	for i, k := range e.Keywords {
		c.checkText(k, maxKeywordLength, "keywords", i)
	}
	for i, n := range e.NotFor {
		c.checkText(n, maxUtteranceLength, "not_for", i)
	}
	checkRange(c, e.Constraints.MaxTokens, 0, maxTokens, "constraints", "max_tokens")
	c.below("requires").checkRequires(&e.Requires)
	c.below("endpoint").checkEndpoint(&e.Endpoint)
	c.checkNames(e.MCPCapabilities, nameProblem, "mcp_capabilities")
	c.checkRestore(e.Restore)
	checkRange(c, e.Health.IntervalS, 0, maxHealthInterval, "health", "interval_s")
	if p := e.Health.Path; p != "" && !strings.HasPrefix(p, "/") {
		c.report(fmt.Sprintf("must start with /, got %q", truncateText(p)), "health", "path")
	}
	checkRange(c, e.MaxInFlight, 0, maxInFlight, "max_in_flight")
	checkRange(c, e.Priority, -maxPriority, maxPriority, "priority")
}

// checkExamples checks that utterances belong to intents the agent declares.
func (c checker) checkExamples(e *contract.RegistryEntry) {
	declared := make(map[string]bool, len(e.Match.Intent))
	for _, intent := range e.Match.Intent {
		declared[intent] = true
	}
	few := strings.Join(e.Match.Intent[:min(len(e.Match.Intent), 5)], ", ")
	for _, intent := range slices.Sorted(maps.Keys(e.Examples)) {
		if !declared[intent] && few != "" {
			c.doc.KeyErrorf(c.at.At("examples", intent), "examples for %q, which this agent does not declare; it declares %s",
				truncateText(intent), truncateText(few))
		}
		for i, utterance := range e.Examples[intent] {
			c.checkText(utterance, maxUtteranceLength, "examples", intent, i)
		}
	}
}

func (c checker) checkEndpoint(e *contract.Endpoint) {
	checkRange(c, e.TimeoutMS, 0, contract.MaxTimeoutMS, "timeout_ms")
	protocols := []string{contract.ProtocolHTTP, contract.ProtocolPull, contract.ProtocolMCP, contract.ProtocolOrchestrator}
	switch {
	case *e == contract.Endpoint{}: // the file names none; Lint says what that means
	case e.Protocol == "":
		c.report("names no protocol: "+strings.Join(protocols, ", "), "protocol")
	case !slices.Contains(protocols, e.Protocol):
		c.checkOneOf(e.Protocol, protocols, "protocol")
	case e.Protocol != contract.ProtocolHTTP:
		if e.URL != "" {
			c.report("is for protocol http only; protocol "+e.Protocol+" has none", "url")
		}
	default:
		if t := urlProblem(e.URL); t != "" {
			c.report(t, "url")
		}
	}
}

// urlProblem says what keeps a text from being the address of an agent.
func urlProblem(address string) string {
	if address == "" {
		return "protocol http needs a url"
	}
	u, err := url.Parse(address)
	port := 1
	if err == nil && u.Port() != "" {
		port, err = strconv.Atoi(u.Port())
	}
	switch {
	case strings.Contains(address, "@") && (err != nil || u.User != nil): // the password must not show in a log
		return "must not hold a user name or password; tasks carry a token instead"
	case err != nil, u.Hostname() == "", port < 1, port > 65535, u.Scheme != "http" && u.Scheme != "https":
		return fmt.Sprintf("must be an absolute http or https URL such as http://127.0.0.1:9101/tasks, got %q", truncateText(address))
	case u.Fragment != "" || strings.HasSuffix(address, "#"):
		return "must not hold a fragment (#…)"
	}
	return ""
}

// The words of `restore:` that are not kinds.
const (
	RestoreAll  = "all"
	RestoreNone = "none"
)

// checkRestore wants one of the words, or kinds of masked text.
func (c checker) checkRestore(r contract.Restore) {
	if r != nil && len(r) == 0 {
		c.report("is an empty list; write none", "restore")
	}
	c.checkNames(r, kindProblem(append(redact.Kinds(), RestoreAll, RestoreNone)), "restore")
	if len(r) > 1 && (slices.Contains(r, RestoreAll) || slices.Contains(r, RestoreNone)) {
		c.report("must be all, none or a list of kinds, not several of these", "restore")
	}
}
