package fallback

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/plaintext"
)

// Suggestion is the result of policy C: the missing agent, as a registry would
// declare it.
type Suggestion struct {
	// SuggestedYAML is a complete registry with that one agent. It loads as it is; the
	// url of the agent is to be filled in.
	SuggestedYAML string
	Requirements  []string // what the agent must do
	Risks         []string // what to check before it is built
	Detail        string   // why no agent serves the request, for its caller
	Nearest       []contract.NearestMiss
	// NearestReading is the agent that may serve the request already; nil if none is near.
	NearestReading *contract.NearestReading
}

// Propose makes a suggestion from a request and its ticket, which includes the
// request. Kinds are the kinds of personal data in the requests of the ticket. The
// texts are in English, because they are for operators. They contain only agents,
// intents and domains that u.Caller may use.
func Propose(u *Unmet, t *contract.Ticket, kinds []string) Suggestion {
	known := *u
	if known.Catalogue == nil {
		known.Catalogue = &capabilities.Catalogue{Routing: capabilities.DefaultRouting(), Fallback: capabilities.DefaultFallback()}
	}
	if known.Decision == nil {
		known.Decision = &contract.Decision{Classification: contract.Classification{Intent: contract.Unknown}}
	}
	p := suggestionBuilder{explainer: newExplainer(&known, refusalTexts()["en"]), ticket: t, dataKinds: slices.Sorted(slices.Values(kinds))}
	p.examples, p.exampleWords = usableExamples(t.Examples)
	p.nameAgent()
	p.findReading()
	return Suggestion{
		SuggestedYAML: p.renderYAML(), Requirements: p.listRequirements(), Risks: p.listRisks(), Detail: p.explain(),
		Nearest: p.nearMisses, NearestReading: p.reading,
	}
}

// suggestionBuilder builds one Suggestion.
type suggestionBuilder struct {
	*explainer
	ticket       *contract.Ticket
	dataKinds    []string
	examples     []string   // of the ticket, in the form of a registry's examples: newest first
	exampleWords [][]string // content words of each example

	// The suggested agent.
	agentID        string
	agentIntent    string
	agentDomains   []string
	keywords       []string
	inventedIntent bool // the intent is made of frequent words

	reading *contract.NearestReading // of the request, else of the ticket
}

// findReading decides which existing agent may serve the requests already. A suggestion that
// is made without a request has that of the ticket.
func (p *suggestionBuilder) findReading() {
	p.reading = p.nearestReading()
	if p.reading == nil && p.hasReading(p.ticket.NearestReading) {
		p.reading = p.ticket.NearestReading
	}
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

// maxDetectedExamples is how many examples are used to detect languages.
const maxDetectedExamples = 5

// listLanguages returns the locales of the requests, or else the languages of the newest
// examples.
func (p *suggestionBuilder) listLanguages() string {
	counts := p.ticket.Locales
	if len(counts) == 0 {
		counts = map[string]int{}
		for _, text := range p.examples[:min(len(p.examples), maxDetectedExamples)] {
			if tag := DetectLanguage(text); tag != "" {
				counts[tag]++
			}
		}
	}
	return p.formatCounts(counts)
}

// describeVolume states how often the agent would be used.
func (p *suggestionBuilder) describeVolume() string {
	t := p.ticket
	text := "take " + plaintext.CountNoun(t.Count, "request") + " so far, from " + plaintext.CountNoun(t.Callers, "caller")
	busiest := 0
	for _, day := range t.PerDay {
		busiest = max(busiest, day.Count)
	}
	if busiest > 0 {
		text += fmt.Sprintf(", at most %d a day", busiest)
	}
	return text
}

func (p *suggestionBuilder) listRisks() []string {
	list := []string{}
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if len(p.dataKinds) > 0 {
		add("the requests contain personal data (%s): agree on what may be stored before the agent gets any", strings.Join(p.dataKinds, ", "))
	}
	if r := p.reading; r != nil {
		add("%s may serve these requests already, as %s: if so, add them to its examples (caprouter teach) in place of a new agent", r.AgentID, r.Intent)
	}
	for i := range p.nearMisses {
		add("%s", p.describeOverlap(&p.nearMisses[i]))
	}
	access := p.ticket.Reasons[ReasonGated] + p.ticket.Reasons[ReasonNotEntitled]
	if access > 0 {
		add("%s of %d fit an agent that may not serve them: granting access may be sufficient", plaintext.CountNoun(access, "request"), p.ticket.Count)
	}
	if n := p.ticket.Reasons[ReasonLowConfidence]; n > 0 {
		add("%s of %d were understood with too little confidence: more examples for an existing intent may be sufficient", plaintext.CountNoun(n, "request"), p.ticket.Count)
	}
	if n := p.ticket.Reasons[ReasonAmbiguous] + p.ticket.Reasons[ReasonDivergent]; n > 0 {
		add("%s of %d had several readings: they may belong to more than one agent", plaintext.CountNoun(n, "request"), p.ticket.Count)
	}
	if n := len(p.examples); n < minLexicalExamples {
		add("%s only: without a model, the confidence of an intent is calibrated if it has at least %d", plaintext.CountNoun(n, "distinct example"), minLexicalExamples)
	}
	if p.ticket.Callers == 1 && p.ticket.Count > 1 {
		add("all requests are from one caller")
	}
	if p.agentIntent == unnamedIntent {
		add("no word of the requests can be used as a name, for example because the script has no spaces: choose better names than %s and %s", p.agentIntent, strings.Join(p.agentDomains, ", "))
	} else if p.inventedIntent {
		add("the names %s and %s are made of frequent words: choose better ones", p.agentIntent, strings.Join(p.agentDomains, ", "))
	}
	return list
}

// minLexicalExamples is how many examples of an intent the lexical classifier needs to
// be calibrated.
const minLexicalExamples = 5

// describeOverlap states how near an agent is, and which gate it fails.
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

// formatCounts lists names with their counts, highest count first: "pt-BR (12), en (3)".
func (p *suggestionBuilder) formatCounts(counts map[string]int) string {
	var list []string
	for _, name := range sortByCount(counts) {
		list = append(list, fmt.Sprintf("%s (%d)", name, counts[name]))
	}
	return p.texts.joinNames(list)
}

// sortByCount returns the names, highest count first, then by name.
func sortByCount(counts map[string]int) []string {
	names := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(names, func(a, b string) int { return counts[b] - counts[a] })
	return names
}
