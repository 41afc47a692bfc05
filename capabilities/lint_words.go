package capabilities

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/caprouter/caprouter/contract"
)

// normalizeUtterance returns the words in lower case, without the punctuation around
// them. Symbols inside a term, as in "c++" and "c#", remain.
func normalizeUtterance(utterance string) string {
	words := strings.Fields(strings.ToLower(utterance))
	for i, w := range words {
		words[i] = strings.Trim(w, ".,;:!?¿¡…\"'“”‘’()[]")
	}
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}

// normalizeName removes case and separators, which models and people often confuse.
func normalizeName(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("_-. ", r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// findSimilarNames finds names of agents and grants that differ only by case or separators.
func (l *linter) findSimilarNames() {
	l.compareNames("intents", func(m contract.Match) []string { return m.Intent })
	l.compareNames("domains", func(m contract.Match) []string { return m.Domains })
}

func (l *linter) compareNames(kind string, names func(contract.Match) []string) {
	declared, alike := map[string][]string{}, map[string]map[string]bool{}
	collect := func(id string, m contract.Match) {
		for _, name := range names(m) {
			declared[name] = append(declared[name], id)
			group := normalizeName(name)
			if alike[group] == nil {
				alike[group] = map[string]bool{}
			}
			alike[group][name] = true
		}
	}
	for _, a := range l.Agents {
		collect(a.ID, a.Match)
	}
	for id, g := range l.grants {
		collect(id, contract.Match{Intent: g.Intents, Domains: g.Domains})
	}
	for _, group := range alike {
		if len(group) < 2 {
			continue
		}
		agents := map[string]bool{}
		var quoted []string
		for _, name := range slices.Sorted(maps.Keys(group)) {
			quoted = append(quoted, strconv.Quote(name))
			for _, id := range declared[name] {
				agents[id] = true
			}
		}
		l.report(slices.Sorted(maps.Keys(agents)), "the %s %s look alike, but are different names to every rule", kind, joinNames(quoted))
	}
}

// occurrence is an example of an intent of an agent.
type occurrence struct{ agent, intent string }

// collectUtterances returns the occurrences of each example by its normalized form.
func (l *linter) collectUtterances() map[string][]occurrence {
	uses := map[string][]occurrence{}
	for _, a := range l.Agents {
		for _, intent := range slices.Sorted(maps.Keys(a.Examples)) {
			for _, utterance := range a.Examples[intent] {
				if folded := normalizeUtterance(utterance); folded != "" {
					uses[folded] = append(uses[folded], occurrence{a.ID, intent})
				}
			}
		}
	}
	return uses
}

func (l *linter) findOverlaps() {
	for utterance, uses := range l.collectUtterances() {
		intents, agents := distinctLabels(uses)
		if len(intents) > 1 {
			l.report(agents, "%q is an example of %s: requests like it are ambiguous", truncateText(utterance), joinNames(intents))
		}
	}
}

func (l *linter) findRepeatedExamples() {
	for utterance, uses := range l.collectUtterances() {
		intents, agents := distinctLabels(uses)
		if len(intents) == 1 && len(uses) > 1 {
			l.report(agents, "%q is given %d times as an example of %s", truncateText(utterance), len(uses), intents[0])
		}
	}
}

func distinctLabels(uses []occurrence) (intents, agents []string) {
	i, a := map[string]bool{}, map[string]bool{}
	for _, u := range uses {
		i[u.intent], a[u.agent] = true, true
	}
	return slices.Sorted(maps.Keys(i)), slices.Sorted(maps.Keys(a))
}

// findMissingExamples finds intents without an example, which the lexical classifier
// recognizes only by their names, by the keywords of their agents, and by the description of
// an agent with a single intent. One finding lists all of them.
func (l *linter) findMissingExamples() {
	has, agents := map[string]bool{}, map[string]bool{}
	for _, a := range l.Agents {
		for _, intent := range a.Match.Intent {
			has[intent] = has[intent] || len(a.Examples[intent]) > 0
		}
	}
	missing := slices.DeleteFunc(slices.Clone(l.Intents), func(intent string) bool { return has[intent] })
	if len(missing) == 0 {
		return
	}
	hasKeywords, learned, ignored := false, false, false
	for _, a := range l.Agents {
		if slices.ContainsFunc(a.Match.Intent, func(intent string) bool { return !has[intent] }) {
			agents[a.ID] = true
			hasKeywords = hasKeywords || len(a.Keywords) > 0
			learned = learned || a.Description != "" && len(a.Match.Intent) == 1
			ignored = ignored || a.Description != "" && len(a.Match.Intent) > 1
		}
	}
	ids := slices.Sorted(maps.Keys(agents))
	subject, by := fmt.Sprintf("intent %q has no examples: without a model it is recognised by its name", missing[0]), "its agent"
	if len(missing) > 1 {
		subject = fmt.Sprintf("%d of %d intents have no examples, %s: without a model they are recognised by their names", len(missing), len(l.Intents), joinNames(missing))
		by = "their agents"
	}
	evidence := " alone"
	switch {
	case hasKeywords && learned:
		evidence = ", and the keywords and descriptions of " + by
	case hasKeywords:
		evidence = " and the keywords of " + by
	case learned:
		evidence = " and the descriptions of " + by
	}
	if ignored {
		evidence += "; the description of an agent with several intents is not learned"
	}
	l.report(ids, "%s%s", subject, evidence)
}

func (l *linter) findRepeatedKeywords() {
	holders := map[string][]string{}
	for _, a := range l.Agents {
		seen := map[string]bool{}
		for _, k := range a.Keywords {
			folded := strings.Join(strings.Fields(strings.ToLower(k)), " ")
			if seen[folded] {
				l.report([]string{a.ID}, "%s lists the keyword %q more than once", a.ID, truncateText(folded))
				continue
			}
			seen[folded] = true
			holders[folded] = append(holders[folded], a.ID)
		}
	}
	for keyword, agents := range holders {
		if len(agents) > 1 {
			l.report(agents, "the keyword %q is listed by %s, so it does not distinguish them", truncateText(keyword), joinNames(agents))
		}
	}
}

// findSharedAliases finds aliases of several domains: a text with such an alias
// proposes all of them.
func (l *linter) findSharedAliases() {
	domains := map[string][]string{}
	for _, domain := range slices.Sorted(maps.Keys(l.DomainAliases)) {
		seen := map[string]bool{}
		for _, alias := range l.DomainAliases[domain] {
			if form := normalizeName(alias); !seen[form] {
				seen[form] = true
				domains[form] = append(domains[form], domain)
			}
		}
	}
	for alias, names := range domains {
		if len(names) > 1 {
			l.report(l.agentsWithDomain(names), "%q is an alias of the domains %s, so it does not distinguish them", alias, joinNames(names))
		}
	}
}

// agentsWithDomain returns the ids of the agents that declare one of the domains.
func (l *linter) agentsWithDomain(domains []string) []string {
	ids := []string{}
	for _, a := range l.Agents {
		if slices.ContainsFunc(a.Match.Domains, func(d string) bool { return slices.Contains(domains, d) }) {
			ids = append(ids, a.ID)
		}
	}
	return ids
}
