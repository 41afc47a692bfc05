package capabilities

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

func (c checker) checkEndpoint(e *contract.Endpoint) {
	protocols := []string{contract.ProtocolHTTP, contract.ProtocolPull, contract.ProtocolMCP, contract.ProtocolOrchestrator}
	switch {
	case e.IsZero(): // Lint reports a missing endpoint
	case e.Protocol == "":
		c.report("has no protocol: write "+strings.Join(protocols, ", "), "protocol")
	case !slices.Contains(protocols, e.Protocol): // checkShape reports it
	case e.Protocol == contract.ProtocolHTTP:
		if t := urlProblem(e.URL); t != "" {
			c.report(t, "url")
		}
	case e.URL != "":
		c.report("is for protocol http only; protocol "+e.Protocol+" has none", "url")
	}
	if e.Protocol == contract.ProtocolMCP {
		c.checkAction(e)
		return
	}
	if e.Action != "" {
		c.report("is for protocol mcp only", "action")
	}
	if e.Arguments != nil {
		c.report("is for protocol mcp only", "arguments")
	}
}

// checkAction validates the tool of an endpoint of protocol mcp, and its arguments. Whether
// there is such a tool is known when the servers are connected.
func (c checker) checkAction(e *contract.Endpoint) {
	server, tool, _ := strings.Cut(e.Action, ".")
	if server == "" || tool == "" {
		c.report(fmt.Sprintf("protocol mcp needs an action: the name of an MCP server and that of its tool, such as weather.query, got %q", truncateText(e.Action)), "action")
	}
	for _, name := range slices.Sorted(maps.Keys(e.Arguments)) {
		a := e.Arguments[name]
		at := c.below("arguments", name)
		if t := nameProblem(name); t != "" {
			c.mistakes.KeyErrorf(at.at, "%s", t)
		}
		if t := sourceProblem(&a); t != "" {
			at.report(t, "from")
		}
		if a.Match != "" {
			at.checkMatch(&a)
		}
		at.checkShape(&a)
		if _, err := a.Convert(a.Default); a.Default != "" && err != nil {
			at.report(err.Error(), "default")
		}
	}
}

// sourceProblem returns why the source of an argument is not valid; "" if it is.
func sourceProblem(a *contract.Argument) string {
	sources := contract.ArgumentSources()
	input, isInput := strings.CutPrefix(a.From, contract.FromInputPrefix)
	switch {
	case a.From == "" && a.Default == "":
		return "the argument has no value: write from or default"
	case a.From == "", slices.Contains(sources, a.From), isInput && input != "":
		return ""
	}
	if near := strictyaml.Nearest(a.From, sources); near != "" {
		return fmt.Sprintf("%q is no part of a task; did you mean %q?", truncateText(a.From), near)
	}
	return fmt.Sprintf("%q is no part of a task; write %s or inputs.NAME", truncateText(a.From), strings.Join(sources, ", "))
}

func (c checker) checkMatch(a *contract.Argument) {
	switch expression, err := regexp.Compile(a.Match); {
	case a.From == "":
		c.report("needs from", "match")
	case err != nil:
		c.report(fmt.Sprintf("is no regular expression: %v", err), "match")
	case expression.NumSubexp() > 1:
		c.report("has several groups; write (?:…) for those that are not the value", "match")
	}
}

// urlProblem returns why a text cannot be the address of an agent; "" if it can.
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
	case strings.Contains(address, "@") && (err != nil || u.User != nil): // the error text must not repeat a password
		return "must not contain a user name or password; tasks carry a token instead"
	case err != nil, u.Hostname() == "", port < 1, port > 65535, u.Scheme != "http" && u.Scheme != "https":
		return fmt.Sprintf("must be an absolute http or https URL such as http://127.0.0.1:9101/tasks, got %q", truncateText(address))
	case u.Fragment != "" || strings.HasSuffix(address, "#"):
		return "must not contain a fragment (#…)"
	}
	return ""
}
