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
	RuleUnreachable    = "agent-unreachable"      // no request can score enough for it
	RuleNoEndpoint     = "endpoint-missing"       // it can be chosen, and every task fails
	RulePlainHTTP      = "plain-http"             // likewise, unless the configuration allows it
	RuleNotServed      = "protocol-not-served"    // likewise, for now
	RuleTie            = "always-tie"             // only their names tell them apart
	RuleOutranks       = "violation-outranks"     // over its limit, it still beats a clean one
	RuleSimilarNames   = "similar-names"          // names that differ by case or punctuation
	RuleOverlap        = "examples-overlap"       // one utterance, two intents
	RuleNoExamples     = "intent-without-example" // nothing to learn the intent from
	RuleUnusedDomain   = "domain-unused"          // no reachable agent declares it
	RuleRepeated       = "example-repeated"       // the same intent learns it twice
	RuleKeywordRepeats = "keyword-duplicate"      // in one agent, or in several
)

// rules returns what Lint runs, in the order it reports.
func rules() []struct {
	name, severity string
	find           func(*linter)
} {
	return []struct {
		name, severity string
		find           func(*linter)
	}{
		{RuleUnreachable, SeverityWarning, (*linter).unreachable},
		{RuleNoEndpoint, SeverityWarning, (*linter).noEndpoint},
		{RulePlainHTTP, SeverityWarning, (*linter).plainHTTP},
		{RuleNotServed, SeverityWarning, (*linter).notServed},
		{RuleTie, SeverityWarning, (*linter).ties},
		{RuleOutranks, SeverityWarning, (*linter).outranks},
		{RuleSimilarNames, SeverityWarning, (*linter).similarNames},
		{RuleOverlap, SeverityWarning, (*linter).overlaps},
		{RuleNoExamples, SeverityInfo, (*linter).noExamples},
		{RuleUnusedDomain, SeverityInfo, (*linter).unusedDomains},
		{RuleRepeated, SeverityInfo, (*linter).repeatedExamples},
		{RuleKeywordRepeats, SeverityInfo, (*linter).keywords},
	}
}

// Lint looks for what is legal but probably wrong. The findings are the same,
// and in the same order, for the same content.
func Lint(s *Snapshot) []Finding {
	l := linter{
		Catalogue: s.Catalogue, Agents: s.Entries(), threshold: s.Catalogue.Routing.ThresholdHundredths(),
		domains: map[string]map[string]bool{},
	}
	var all []Finding
	for _, r := range rules() {
		l.found = nil
		r.find(&l)
		slices.SortStableFunc(l.found, func(a, b Finding) int {
			return cmp.Or(slices.Compare(a.Agents, b.Agents), strings.Compare(a.Message, b.Message))
		})
		for _, f := range l.found {
			f.Rule, f.Severity = r.name, r.severity
			all = append(all, f)
		}
	}
	return all
}

// linter runs the rules over one snapshot.
type linter struct {
	*Catalogue
	Agents    []*contract.RegistryEntry // complete entries, in place of the catalogue's
	threshold int                       // hundredths
	found     []Finding
	domains   map[string]map[string]bool // by agent; see domainsOf
}

// maxNamed bounds the agents one finding names; a registry of thousands that
// are all alike is one finding, not a list of them.
const maxNamed = 10

// report records a finding about the agents.
func (l *linter) report(agents []string, format string, args ...any) {
	l.found = append(l.found, Finding{Message: fmt.Sprintf(format, args...), Agents: agents[:min(len(agents), maxNamed)]})
}

// named joins the names of agents for a message.
func named(agents []string) string {
	if n := len(agents) - maxNamed; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(agents[:maxNamed], ", "), n)
	}
	if len(agents) < 2 {
		return strings.Join(agents, "")
	}
	last := len(agents) - 1
	return strings.Join(agents[:last], ", ") + " and " + agents[last]
}

func decimal(hundredths int) string {
	return strings.TrimSuffix(fmt.Sprintf("%.2f", float64(hundredths)/100), "0")
}

func (l *linter) noEndpoint() {
	for _, a := range l.Agents {
		if a.Endpoint.Protocol == "" {
			l.report([]string{a.ID}, "%s has no endpoint: it can be chosen, but every task for it fails", a.ID)
		}
	}
}

// plainHTTP finds agents whose tokens others could read on the way.
func (l *linter) plainHTTP() {
	for _, a := range l.Agents {
		if u, err := url.Parse(a.Endpoint.URL); err == nil && u.Scheme == "http" && !egress.IsLoopback(u.Hostname()) {
			l.report([]string{a.ID}, "%s is on another host over plain http, where its token could be read: every task for it fails, unless dispatch.allow_plain_http is true", a.ID)
		}
	}
}

func (l *linter) notServed() {
	for _, a := range l.Agents {
		if p := a.Endpoint.Protocol; p != "" && p != contract.ProtocolHTTP {
			l.report([]string{a.ID}, "%s is reached by protocol %s, which is not served yet: every task for it fails", a.ID, p)
		}
	}
}
