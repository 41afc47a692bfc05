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

// entry checks one value under `clients:`.
func (c checker) entry(id string, e *contract.RegistryEntry) {
	c.id(id)
	if e.ID != "" && e.ID != id {
		c.wrong(fmt.Sprintf("must be the key above it, %q, got %q; or leave it out", shorten(id), shorten(e.ID)), "id")
	}
	if e.Description != "" {
		c.text(e.Description, maxDescription, "description")
	}
	if len(e.Match.Intent) == 0 {
		c.wrong("declares no intent; list at least one under match.intent", "match", "intent")
	}
	c.names(e.Match.Intent, intentTrouble, "match", "intent")
	c.names(e.Match.Domains, domainTrouble, "match", "domains")
	c.examples(e)
	for i, k := range e.Keywords {
		c.text(k, maxKeyword, "keywords", i)
	}
	for i, n := range e.NotFor {
		c.text(n, maxUtterance, "not_for", i)
	}
	within(c, e.Constraints.MaxTokens, 0, maxTokens, "constraints", "max_tokens")
	c.in("requires").requires(&e.Requires)
	c.in("endpoint").endpoint(&e.Endpoint)
	c.names(e.MCPCapabilities, nameTrouble, "mcp_capabilities")
	c.restore(e.Restore)
	within(c, e.Health.IntervalS, 0, maxIntervalSec, "health", "interval_s")
	if p := e.Health.Path; p != "" && !strings.HasPrefix(p, "/") {
		c.wrong(fmt.Sprintf("must start with /, got %q", shorten(p)), "health", "path")
	}
	within(c, e.MaxInFlight, 0, maxInFlight, "max_in_flight")
	within(c, e.Priority, -maxPriority, maxPriority, "priority")
}

// examples checks that utterances belong to intents the agent declares.
func (c checker) examples(e *contract.RegistryEntry) {
	declared := make(map[string]bool, len(e.Match.Intent))
	for _, intent := range e.Match.Intent {
		declared[intent] = true
	}
	few := strings.Join(e.Match.Intent[:min(len(e.Match.Intent), 5)], ", ")
	for _, intent := range slices.Sorted(maps.Keys(e.Examples)) {
		if !declared[intent] && few != "" {
			c.doc.KeyErrorf(c.at.At("examples", intent), "examples for %q, which this agent does not declare; it declares %s",
				shorten(intent), shorten(few))
		}
		for i, utterance := range e.Examples[intent] {
			c.text(utterance, maxUtterance, "examples", intent, i)
		}
	}
}

func (c checker) endpoint(e *contract.Endpoint) {
	within(c, e.TimeoutMS, 0, contract.MaxTimeoutMS, "timeout_ms")
	protocols := []string{contract.ProtocolHTTP, contract.ProtocolPull, contract.ProtocolMCP, contract.ProtocolOrchestrator}
	switch {
	case *e == contract.Endpoint{}: // the file names none; Lint says what that means
	case e.Protocol == "":
		c.wrong("names no protocol: "+strings.Join(protocols, ", "), "protocol")
	case !slices.Contains(protocols, e.Protocol):
		c.oneOf(e.Protocol, protocols, "protocol")
	case e.Protocol != contract.ProtocolHTTP:
		if e.URL != "" {
			c.wrong("is for protocol http only; protocol "+e.Protocol+" has none", "url")
		}
	default:
		if t := urlTrouble(e.URL); t != "" {
			c.wrong(t, "url")
		}
	}
}

// urlTrouble says what keeps a text from being the address of an agent.
func urlTrouble(address string) string {
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
		return fmt.Sprintf("must be an absolute http or https URL such as http://127.0.0.1:9101/tasks, got %q", shorten(address))
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

// restore wants one of the words, or kinds of masked text.
func (c checker) restore(r contract.Restore) {
	if r != nil && len(r) == 0 {
		c.wrong("is an empty list; write none", "restore")
	}
	c.names(r, kindTrouble(append(redact.Kinds(), RestoreAll, RestoreNone)), "restore")
	if len(r) > 1 && (slices.Contains(r, RestoreAll) || slices.Contains(r, RestoreNone)) {
		c.wrong("must be all, none or a list of kinds, not several of these", "restore")
	}
}
