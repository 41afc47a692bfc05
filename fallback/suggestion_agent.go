package fallback

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/internal/plaintext"
)

// Limits of a suggested agent.
const (
	maxSuggestedExamples = 10
	maxSuggestedKeywords = 5
	maxExampleLength     = 200 // characters of an example
	maxNameLength        = 40  // bytes of a name made of words
)

// nameAgent decides the id, intent, domains and keywords of the missing agent.
func (p *suggestionBuilder) nameAgent() {
	words := rankWords(p.exampleWords)
	p.agentIntent = p.majorityIntent(p.ticket.Intents, p.intents)
	if p.agentIntent == "" {
		p.inventedIntent = true
		p.agentIntent = matchSpelling(makeIntent(words), p.intents)
	}
	p.agentDomains = p.frequentDomains(p.ticket.Domains, p.domains)
	if len(p.agentDomains) == 0 {
		p.agentDomains = []string{matchSpelling(makeDomain(words), p.domains)}
	}
	p.agentID = p.unusedID()
	p.keywords = p.pickKeywords(words)
}

// majorityIntent returns the known intent of at least half of the requests, or "".
func (p *suggestionBuilder) majorityIntent(counts map[string]int, known []string) string {
	for _, name := range sortByCount(counts) {
		if slices.Contains(known, name) {
			if 2*counts[name] >= p.ticket.Count {
				return name
			}
			return ""
		}
	}
	return ""
}

// frequentDomains returns the known domains of at least a third of the requests.
func (p *suggestionBuilder) frequentDomains(counts map[string]int, known []string) []string {
	var list []string
	for _, name := range sortByCount(counts) {
		if len(list) < contract.MaxDomains && slices.Contains(known, name) && 3*counts[name] >= p.ticket.Count {
			list = append(list, name)
		}
	}
	return list
}

// contentWord is a word of the examples that is not a stop word.
type contentWord struct {
	text     string
	examples int // how many examples contain it
	position int // its first position in any of them
}

// rankWords returns the content words that can be part of a name, by descending
// frequency, then by position.
func rankWords(examples [][]string) []contentWord {
	var list []contentWord
	index := map[string]int{}
	for _, words := range examples {
		for at, w := range words {
			if !isNameWord(w) {
				continue
			}
			i, ok := index[w]
			if !ok {
				i = len(list)
				index[w] = i
				list = append(list, contentWord{text: w, position: at})
			}
			list[i].examples++
			list[i].position = min(list[i].position, at)
		}
	}
	slices.SortStableFunc(list, func(a, b contentWord) int { return cmp.Or(b.examples-a.examples, a.position-b.position) })
	return list
}

// isNameWord reports whether a word can be part of a name: it has at least two letters,
// no digits, and is short.
func isNameWord(w string) bool {
	letters := 0
	for _, r := range w {
		if !unicode.IsPrint(r) {
			return false
		}
		if unicode.IsLetter(r) {
			letters++
		}
	}
	return letters > 1 && len(w) <= maxNameLength/2 && !strings.ContainsAny(w, "0123456789") && w != contract.Unknown
}

// topicWords returns the two most frequent words in the order of their positions.
func topicWords(words []contentWord) []contentWord {
	two := slices.Clone(words[:min(len(words), 2)])
	slices.SortStableFunc(two, func(a, b contentWord) int { return a.position - b.position })
	return two
}

// unnamedIntent is the intent if no word can be part of a name.
const unnamedIntent = "new_request"

// makeIntent makes an intent of the topic words, for example book_flight.
func makeIntent(words []contentWord) string {
	two := topicWords(words)
	switch len(two) {
	case 0:
		return unnamedIntent
	case 1:
		return two[0].text + "_request"
	}
	return two[0].text + "_" + two[1].text
}

// makeDomain returns the last topic word: in the supported languages the object usually
// follows the verb.
func makeDomain(words []contentWord) string {
	if two := topicWords(words); len(two) > 0 {
		return two[len(two)-1].text
	}
	return "general"
}

// matchSpelling returns the known name that differs from the name in case or separators
// only, or else the name.
func matchSpelling(name string, known []string) string {
	plain := func(s string) string {
		return strings.Map(func(r rune) rune {
			if strings.ContainsRune("_-. ", r) {
				return -1
			}
			return unicode.ToLower(r)
		}, s)
	}
	for _, k := range known {
		if plain(k) == plain(name) {
			return k
		}
	}
	return name
}

// unusedID makes an agent id of the intent that no agent of the caller has.
func (p *suggestionBuilder) unusedID() string {
	base := strings.Map(func(r rune) rune {
		switch {
		case r == ' ', r == '-', r == '.':
			return '_'
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '_':
			return r
		}
		return -1
	}, strings.ToLower(p.agentIntent))
	base = strings.Trim(base[:min(len(base), maxNameLength)], "_0123456789")
	base = strings.TrimSuffix(base, "_agent")
	if len(base) < 2 {
		base = "proposed"
	}
	base += "_agent"
	id := base
	for n := 2; p.usable.Has(id); n++ {
		id = base + "_" + strconv.Itoa(n)
	}
	return id
}

// pickKeywords returns words of many examples that are no keyword of another agent. Words
// of the names are left out, because they are matched anyway.
func (p *suggestionBuilder) pickKeywords(words []contentWord) []string {
	var list []string
	named := strings.FieldsFunc(p.agentIntent+" "+strings.Join(p.agentDomains, " "), func(r rune) bool { return strings.ContainsRune("_-. ", r) })
	for _, w := range words {
		if len(list) == maxSuggestedKeywords || w.examples < 2 || 3*w.examples < len(p.examples) {
			break
		}
		if !slices.Contains(named, w.text) && !p.isDeclaredKeyword(w.text) {
			list = append(list, w.text)
		}
	}
	return list
}

func (p *suggestionBuilder) isDeclaredKeyword(text string) bool {
	return slices.ContainsFunc(p.usable.List(), func(a *contract.RegistryEntry) bool {
		return slices.ContainsFunc(a.Keywords, func(k string) bool { return strings.EqualFold(k, text) })
	})
}

// usableExamples returns the ticket's prompts in the form of a registry's examples, without
// duplicates, and their content words.
func usableExamples(examples []contract.TicketExample) (texts []string, words [][]string) {
	all := make([]string, len(examples))
	for i := range examples {
		all[i] = formatExample(examples[i].Prompt)
	}
	seen := map[string]bool{}
	for i, list := range lexical.ContentWords(all...) {
		same := strings.Join(list, " ")
		if same == "" || seen[same] {
			continue
		}
		seen[same] = true
		texts, words = append(texts, all[i]), append(words, list)
	}
	return texts, words
}

// formatExample turns a masked prompt into an example: "mail [EMAIL_1] the bill" becomes
// "mail … the bill".
func formatExample(prompt string) string {
	var b strings.Builder
	for text := plaintext.Clean(prompt); text != ""; {
		piece, bracketed := plaintext.CutBracketed(text)
		text = text[len(piece):]
		if bracketed && isPlaceholder(piece) {
			piece = plaintext.Ellipsis
		}
		b.WriteString(piece)
	}
	text := plaintext.SingleLine(b.String())
	for strings.Contains(text, plaintext.Ellipsis+" "+plaintext.Ellipsis) {
		text = strings.ReplaceAll(text, plaintext.Ellipsis+" "+plaintext.Ellipsis, plaintext.Ellipsis)
	}
	if runes := []rune(text); len(runes) > maxExampleLength {
		text = string(runes[:maxExampleLength])
		if end := strings.LastIndexByte(text, ' '); end > len(text)/2 {
			text = text[:end]
		}
	}
	return strings.TrimSpace(text)
}

// isPlaceholder reports whether a bracketed word is a placeholder like [EMAIL_1].
func isPlaceholder(piece string) bool {
	kind, number, ok := strings.Cut(strings.Trim(piece, "[]"), "_")
	return ok && kind != "" && number != "" && strings.Trim(kind, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" && strings.Trim(number, "0123456789") == ""
}

// renderYAML formats the registry itself, because an encoder writes no comments. Every
// text from outside is quoted; Go's quoting is valid YAML.
func (p *suggestionBuilder) renderYAML() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# A suggestion made from %s that no agent serves yet. It loads as it is.", plaintext.CountNoun(p.ticket.Count, "request"))
	line("# Fill in the url of the agent, check names and examples, then add the")
	line("# agent to your registry.")
	line("version: 1")
	line("clients:")
	line("  %s:", p.agentID)
	line("    description: %s # describe what it does: models read this", strconv.Quote("Serves requests such as: "+p.firstExample()))
	line("    match:")
	line("      intent: [%s]", strconv.Quote(p.agentIntent))
	line("      domains: [%s]", quoteNames(p.agentDomains))
	if texts := p.examples[:min(len(p.examples), maxSuggestedExamples)]; len(texts) > 0 {
		line("    examples:")
		line("      %s:", strconv.Quote(p.agentIntent))
		for _, text := range texts {
			line("        - %s", strconv.Quote(text))
		}
	}
	if len(p.keywords) > 0 {
		line("    keywords: [%s]", quoteNames(p.keywords))
	}
	if len(p.dataKinds) > 0 {
		line("    restore: none # the requests contain %s; list the kinds that it needs in clear text", strings.Join(p.dataKinds, ", "))
	}
	line("    endpoint:")
	line("      protocol: http")
	line("      url: http://127.0.0.1:9101/tasks # fill in the url of the agent")
	return b.String()
}

func (p *suggestionBuilder) firstExample() string {
	if len(p.examples) == 0 {
		return p.agentIntent
	}
	return p.examples[0]
}

func quoteNames(names []string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = strconv.Quote(name)
	}
	return strings.Join(list, ", ")
}
