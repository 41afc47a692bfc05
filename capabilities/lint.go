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

// Finding is something in a registry that is legal but probably not meant.
type Finding struct {
	Rule     string `json:"rule"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
	// Agents are those it is about, at most ten: the one at fault first, where
	// there is one, the others sorted.
	Agents []string `json:"agents"`
}

// The severities of a Finding. A warning means that requests are refused or go
// astray; info is for whoever tidies up.
const (
	SeverityWarning = "warning"
	SeverityInfo    = "info"
)

// The rules of Lint, in the order of its findings.
const (
	RuleUnreachable       = "agent-unreachable"      // no request can score enough for it
	RuleMissingEndpoint   = "endpoint-missing"       // it can be chosen, and every task fails
	RulePlainHTTP         = "plain-http"             // likewise, unless the configuration allows it
	RuleUnservedProtocol  = "protocol-not-served"    // likewise, for now
	RuleAlwaysTie         = "always-tie"             // only their names tell them apart
	RuleViolationOutranks = "violation-outranks"     // over its limit, it still beats a clean one
	RuleSimilarNames      = "similar-names"          // names that differ by case or punctuation
	RuleExamplesOverlap   = "examples-overlap"       // one utterance, two intents
	RuleMissingExamples   = "intent-without-example" // nothing to learn the intent from
	RuleUnusedDomain      = "domain-unused"          // no reachable agent declares it
	RuleRepeatedExample   = "example-repeated"       // the same intent learns it twice
	RuleRepeatedKeyword   = "keyword-duplicate"      // in one agent, or in several
)

// lintRules returns what Lint runs, in the order it reports.
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
		{RuleUnservedProtocol, SeverityWarning, (*linter).findUnservedProtocols},
		{RuleAlwaysTie, SeverityWarning, (*linter).findTies},
		{RuleViolationOutranks, SeverityWarning, (*linter).findOutranking},
		{RuleSimilarNames, SeverityWarning, (*linter).findSimilarNames},
		{RuleExamplesOverlap, SeverityWarning, (*linter).findOverlaps},
		{RuleMissingExamples, SeverityInfo, (*linter).findMissingExamples},
		{RuleUnusedDomain, SeverityInfo, (*linter).findUnusedDomains},
		{RuleRepeatedExample, SeverityInfo, (*linter).findRepeatedExamples},
		{RuleRepeatedKeyword, SeverityInfo, (*linter).findRepeatedKeywords},
	}
}

// Lint looks for what is legal but probably wrong. The findings are the same,
// and in the same order, for the same content.
func Lint(s *Snapshot) []Finding {
	l := linter{
		Catalogue: s.Catalogue, Agents: s.Entries(), threshold: s.Catalogue.Routing.ThresholdHundredths(),
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

// linter runs the rules over one snapshot.
type linter struct {
	*Catalogue
	Agents     []*contract.RegistryEntry // complete entries, in place of the catalogue's
	threshold  int                       // hundredths
	findings   []Finding
	domainSets map[string]map[string]bool // by agent; see domainsOf
}

// maxNamedAgents bounds the agents one finding names; a registry of thousands that
// are all alike is one finding, not a list of them.
const maxNamedAgents = 10

// report records a finding about the agents.
func (l *linter) report(agents []string, format string, args ...any) {
	l.findings = append(l.findings, Finding{Message: fmt.Sprintf(format, args...), Agents: agents[:min(len(agents), maxNamedAgents)]})
}

// joinNames joins the names of agents for a message.
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

// findPlainHTTP finds agents whose tokens others could read on the way.
func (l *linter) findPlainHTTP() {
	for _, a := range l.Agents {
		if u, err := url.Parse(a.Endpoint.URL); err == nil && u.Scheme == "http" && !egress.IsLoopback(u.Hostname()) {
			l.report([]string{a.ID}, "%s is on another host over plain http, where its token could be read: every task for it fails, unless dispatch.allow_plain_http is true", a.ID)
		}
	}
}

func (l *linter) findUnservedProtocols() {
	for _, a := range l.Agents {
		if p := a.Endpoint.Protocol; p != "" && p != contract.ProtocolHTTP {
			l.report([]string{a.ID}, "%s is reached by protocol %s, which is not served yet: every task for it fails", a.ID, p)
		}
	}
}
