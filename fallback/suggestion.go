package fallback

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
)

// Suggestion is what policy C (003 §5) makes of demand that nobody meets: the
// agent that is missing, as a registry would declare it.
type Suggestion struct {
	// SuggestedYAML is a whole registry with that one agent. It loads as it is;
	// where the agent listens is for its makers to fill in.
	SuggestedYAML string
	Requirements  []string // what the agent must do
	Risks         []string // what speaks for looking twice before it is built
	Detail        string   // why nobody serves the request, for its caller
	Nearest       []contract.NearestMiss
}

// Propose makes a suggestion of a request and the ticket it is in, this request
// included. Kinds of personal data are those seen in the ticket's requests. It is
// in English: it is for the people who run the router. Only agents, intents and
// domains that u.Caller may use show in it.
func Propose(u *Unmet, t *contract.Ticket, kinds []string) Suggestion {
	known := *u
	if known.Catalogue == nil {
		known.Catalogue = &capabilities.Catalogue{Routing: capabilities.DefaultRouting(), Fallback: capabilities.DefaultFallback()}
	}
	if known.Decision == nil {
		known.Decision = &contract.Decision{Classification: contract.Classification{Intent: contract.Unknown}}
	}
	p := suggestionBuilder{explainer: newExplainer(&known), ticket: t, dataKinds: slices.Sorted(slices.Values(kinds))}
	p.examples, p.exampleWords = usableExamples(t.Examples)
	p.nameAgent()
	return Suggestion{SuggestedYAML: p.renderYAML(), Requirements: p.listRequirements(), Risks: p.listRisks(), Detail: p.explain(), Nearest: p.nearMisses}
}

// suggestionBuilder is a suggestion in the making.
type suggestionBuilder struct {
	*explainer
	ticket       *contract.Ticket
	dataKinds    []string
	examples     []string   // of the ticket, as they can stand in a registry: newest first
	exampleWords [][]string // that say what each example is about

	// The agent.
	agentID        string
	agentIntent    string
	agentDomains   []string
	keywords       []string
	inventedIntent bool // the intent is made of words
}

func (p *suggestionBuilder) listRequirements() []string {
	list := []string{fmt.Sprintf("serve the intent %s on %s", p.agentIntent, strings.Join(p.agentDomains, ", "))}
	if languages := p.listLanguages(); languages != "" {
		list = append(list, "understand requests in "+languages)
	}
	list = append(list, p.describeVolume())
	if len(p.dataKinds) > 0 {
		list = append(list, fmt.Sprintf("handle personal data in the requests (%s), or declare restore: none to get them masked", strings.Join(p.dataKinds, ", ")))
	}
	return append(list,
		"answer within the time callers wait, or accept a task with 202 and deliver its result later",
		"check the access token of every task, and answer with success, partial or failure")
}

// maxDetectedExamples is how many examples' languages are told from their words.
const maxDetectedExamples = 5

// listLanguages are those the requests name, else those the newest texts are in.
func (p *suggestionBuilder) listLanguages() string {
	counts := p.ticket.Locales
	if len(counts) == 0 {
		counts = map[string]int{}
		for _, text := range p.examples[:min(len(p.examples), maxDetectedExamples)] {
			if tag := detectLanguage(text); tag != "" {
				counts[tag]++
			}
		}
	}
	return formatCounts(counts)
}

// describeVolume says how often the agent is asked for.
func (p *suggestionBuilder) describeVolume() string {
	t := p.ticket
	text := "take " + pluralize(t.Count, "request") + " so far, from " + pluralize(t.Callers, "caller")
	most := 0
	for _, day := range t.PerDay {
		most = max(most, day.Count)
	}
	if most > 0 {
		text += fmt.Sprintf(", at most %d a day", most)
	}
	return text
}

func (p *suggestionBuilder) listRisks() []string {
	list := []string{}
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if len(p.dataKinds) > 0 {
		add("personal data was seen in the requests (%s): agree on what may be kept before the agent gets any", strings.Join(p.dataKinds, ", "))
	}
	for i := range p.nearMisses {
		add("%s", p.describeOverlap(&p.nearMisses[i]))
	}
	access := p.ticket.Reasons[ReasonGated] + p.ticket.Reasons[ReasonNotEntitled]
	if access > 0 {
		add("%s of %d met an agent that fits but may not serve them: granting access may be all that is missing", pluralize(access, "request"), p.ticket.Count)
	}
	if n := p.ticket.Reasons[ReasonLowConfidence]; n > 0 {
		add("%s of %d were not understood surely enough: an existing intent with more examples may do", pluralize(n, "request"), p.ticket.Count)
	}
	if n := p.ticket.Reasons[ReasonAmbiguous] + p.ticket.Reasons[ReasonDivergent]; n > 0 {
		add("%s of %d had several readings: they may belong to more than one agent", pluralize(n, "request"), p.ticket.Count)
	}
	if n := len(p.examples); n < minLexicalExamples {
		add("%s only: without a model, an intent is measured from %d on", pluralize(n, "distinct example"), minLexicalExamples)
	}
	if p.ticket.Callers == 1 && p.ticket.Count > 1 {
		add("all requests are from one caller")
	}
	if p.agentIntent == unnamedIntent {
		add("no word of the requests can be a name, as in scripts without spaces: choose better ones than %s and %s", p.agentIntent, strings.Join(p.agentDomains, ", "))
	} else if p.inventedIntent {
		add("the names %s and %s are made of frequent words: choose better ones", p.agentIntent, strings.Join(p.agentDomains, ", "))
	}
	return list
}

// minLexicalExamples is from how many on the lexical classifier is learned and measured
// (see package lexical).
const minLexicalExamples = 5

// describeOverlap says how near an agent came and what kept it out.
func (p *suggestionBuilder) describeOverlap(n *contract.NearestMiss) string {
	text := fmt.Sprintf("overlap with %s, which scored %.2f", n.AgentID, n.Score)
	if n.MissingScore > 0 {
		return text + fmt.Sprintf(" and lacks %.2f: widen it instead, or list these requests in its not_for", n.MissingScore)
	}
	if len(n.Gates) > 0 {
		return text + " and may not take the request: " + n.Gates[0].Reason
	}
	return text
}

// formatCounts lists names with their counts, most first: "pt-BR (12), en (3)".
func formatCounts(counts map[string]int) string {
	var list []string
	for _, name := range sortByCount(counts) {
		list = append(list, fmt.Sprintf("%s (%d)", name, counts[name]))
	}
	return joinNames(list)
}

// sortByCount returns the names with the greatest count first; of two, by name.
func sortByCount(counts map[string]int) []string {
	names := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(names, func(a, b string) int { return counts[b] - counts[a] })
	return names
}

func pluralize(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
