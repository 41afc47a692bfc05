package goldenreport

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/cli/terminal"
)

// PrintOutcome prints whether a case that was just written passes, and if not, what corrects the
// reading.
func PrintOutcome(p *terminal.Printer, name string, c *golden.CaseResult) {
	if !c.Failed() {
		fmt.Fprintf(p, "%s passes now, without a model\n", name)
		return
	}
	fmt.Fprintf(p, "%s fails now, without a model: %s\n", name, terminal.OneLine(suggestCorrection(c)))
}

// suggestCorrection returns what to do about a case that fails.
func suggestCorrection(c *golden.CaseResult) string {
	expected, actual := c.Expect.Agents, c.Actual.Agents
	without := func(list, other []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(id string) bool { return slices.Contains(other, id) })
	}
	missing, wrong := without(expected, actual), without(actual, expected)
	refused := slices.Contains([]golden.Outcome{golden.AnyFallback, golden.FallbackA, golden.FallbackB, golden.FallbackC}, c.Expect.Outcome) ||
		c.Expect.Outcome == "" && expected != nil && len(expected) == 0
	names, others := strings.Join(missing, ", "), strings.Join(wrong, ", ")
	switch excluded, why := findExcluded(c, missing); {
	case excluded != "":
		return fmt.Sprintf("no example changes that %s is excluded: %s", excluded, why)
	case refused && len(actual) > 0:
		return fmt.Sprintf("%s gets the request, and no agent should: list the request in its not_for, or give its intents more examples", others)
	case refused && c.Actual.Outcome == golden.Clarify:
		return "the caller is asked which agent is meant, and no agent should get the request: list it in the not_for of the agents that the question offers"
	case len(expected) > 1 && len(missing) > 0:
		return fmt.Sprintf("no part of the request goes to %s: word it as one request for each agent, with \"and\" or a full stop "+
			"between them, or give %s more examples", names, names)
	case len(missing) > 0 && len(wrong) > 0:
		return fmt.Sprintf("%s gets the request: give %s more examples like it, or list it in the not_for of %s", others, names, others)
	case len(missing) > 0:
		return fmt.Sprintf("give %s more examples like it", names)
	}
	return "to correct the reading, give the right agent more examples"
}

// findExcluded returns the first of the agents that fits the request and is excluded by a
// condition that no reading changes, and why. It is "" if there is none.
func findExcluded(c *golden.CaseResult, agents []string) (id, why string) {
	if c.Decision == nil {
		return "", ""
	}
	for i := range c.Decision.Candidates {
		candidate := &c.Decision.Candidates[i]
		if !slices.Contains(agents, candidate.AgentID) || len(candidate.Gates) == 0 {
			continue
		}
		var reasons []string
		for _, g := range candidate.Gates {
			if g.Gate == "threshold" || g.Gate == "confidence" {
				reasons = nil
				break
			}
			reasons = append(reasons, g.Reason)
		}
		if len(reasons) > 0 {
			return candidate.AgentID, strings.Join(reasons, " and ")
		}
	}
	return "", ""
}
