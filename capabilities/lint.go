package capabilities

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/egress"
)

// Finding is a part of a registry that is legal but probably a mistake.
type Finding struct {
	Rule     string `json:"rule"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
	// Agents are the ids of at most ten affected agents. If one of them causes the
	// finding, it is the first; the others are sorted.
	Agents []string `json:"agents"`
	// Examples are those that the finding is about, at most 20 of them.
	Examples []FailedExample `json:"examples,omitempty"`
}

// FailedExample is an example that does not reach its agent.
type FailedExample struct {
	Intent  string `json:"intent"`
	Text    string `json:"text"`
	Because string `json:"because"`
}

// The severities of a Finding. A warning affects requests; an info finding affects
// only the quality of the registry.
const (
	SeverityWarning = "warning"
	SeverityInfo    = "info"
)

// The rules of Lint, in the order of its findings.
const (
	RuleUnreachable       = "agent-unreachable"      // no request can score enough for it
	RuleMissingEndpoint   = "endpoint-missing"       // every task of the agent fails
	RulePlainHTTP         = "plain-http"             // likewise, unless the configuration allows it
	RuleASCIIMatch        = "match-ascii-only"       // a pattern of an argument cuts words such as Málaga
	RuleAlwaysTie         = "always-tie"             // only the ids decide between the agents
	RuleViolationOutranks = "violation-outranks"     // an agent over its limit precedes one within its limits
	RuleSimilarNames      = "similar-names"          // names that differ by case or punctuation
	RuleExamplesOverlap   = "examples-overlap"       // one utterance, two intents
	RuleMissingExamples   = "intent-without-example" // only the names of the intents are known
	RuleUnusedDomain      = "domain-unused"          // no reachable agent declares it
	RuleRepeatedExample   = "example-repeated"       // an utterance is listed twice for an intent
	RuleRepeatedKeyword   = "keyword-duplicate"      // in one agent, or in several
	RuleSharedAlias       = "alias-shared"           // one alias, two domains
)

// lintRules returns the rules in the order of their findings.
func lintRules() []struct {
	name, severity string
	find           func(*linter)
} {
	return []struct {
		name, severity string
		find           func(*linter)
	}{
		{RuleUnreachable, SeverityWarning, (*linter).findUnreachable},
		{RuleMissingEndpoint, SeverityWarning, (*linter).findMissingEndpoints},
		{RulePlainHTTP, SeverityWarning, (*linter).findPlainHTTP},
		{RuleASCIIMatch, SeverityWarning, (*linter).findASCIIMatches},
		{RuleAlwaysTie, SeverityWarning, (*linter).findTies},
		{RuleViolationOutranks, SeverityWarning, (*linter).findOutranking},
		{RuleSimilarNames, SeverityWarning, (*linter).findSimilarNames},
		{RuleExamplesOverlap, SeverityWarning, (*linter).findOverlaps},
		{RuleSharedAlias, SeverityWarning, (*linter).findSharedAliases},
		{RuleMissingExamples, SeverityInfo, (*linter).findMissingExamples},
		{RuleUnusedDomain, SeverityInfo, (*linter).findUnusedDomains},
		{RuleRepeatedExample, SeverityInfo, (*linter).findRepeatedExamples},
		{RuleRepeatedKeyword, SeverityInfo, (*linter).findRepeatedKeywords},
	}
}

// Lint finds declarations that are legal but probably wrong. The same content has
// the same findings in the same order.
func Lint(s *Snapshot) []Finding {
	l := linter{
		Catalogue: s.Catalogue, Agents: s.Entries(), grants: s.Fleet.Grants, threshold: s.Catalogue.Routing.ThresholdHundredths(),
		domainSets: map[string]map[string]bool{},
	}
	var all []Finding
	for _, r := range lintRules() {
		l.findings = nil
		r.find(&l)
		slices.SortStableFunc(l.findings, func(a, b Finding) int {
			return cmp.Or(slices.Compare(a.Agents, b.Agents), strings.Compare(a.Message, b.Message))
		})
		for _, f := range l.findings {
			f.Rule, f.Severity = r.name, r.severity
			all = append(all, f)
		}
	}
	return all
}

// linter runs the rules on one snapshot.
type linter struct {
	*Catalogue
	Agents     []*contract.RegistryEntry // complete entries, in place of the catalogue's
	grants     map[string]contract.Grant // by the id of the agent
	threshold  int                       // hundredths
	findings   []Finding
	domainSets map[string]map[string]bool // by agent; see domainsOf
}

// maxNamedAgents bounds the agents that a finding lists, because a finding may
// affect thousands of them.
const maxNamedAgents = 10

// report adds a finding about the agents.
func (l *linter) report(agents []string, format string, args ...any) {
	l.findings = append(l.findings, Finding{Message: fmt.Sprintf(format, args...), Agents: agents[:min(len(agents), maxNamedAgents)]})
}

// joinNames joins ids for a message.
func joinNames(agents []string) string {
	if n := len(agents) - maxNamedAgents; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(agents[:maxNamedAgents], ", "), n)
	}
	if len(agents) < 2 {
		return strings.Join(agents, "")
	}
	last := len(agents) - 1
	return strings.Join(agents[:last], ", ") + " and " + agents[last]
}

func formatScore(hundredths int) string {
	return strings.TrimSuffix(fmt.Sprintf("%.2f", float64(hundredths)/100), "0")
}

func (l *linter) findMissingEndpoints() {
	for _, a := range l.Agents {
		if a.Endpoint.Protocol == "" {
			l.report([]string{a.ID}, "%s has no endpoint: it can be chosen, but every task for it fails", a.ID)
		}
	}
}

// findPlainHTTP finds agents whose tokens are sent over the network in clear text.
func (l *linter) findPlainHTTP() {
	for _, a := range l.Agents {
		if u, err := url.Parse(a.Endpoint.URL); err == nil && u.Scheme == "http" && !egress.IsLoopback(u.Hostname()) {
			l.report([]string{a.ID}, "%s is on another host over plain http, where its token could be read: every task for it fails, unless dispatch.allow_plain_http is true", a.ID)
		}
	}
}
