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
)

// What a suggested agent declares at most.
const (
	mostSuggestedExamples = 10
	mostSuggestedKeywords = 5
	longestSuggested      = 200 // characters of an example
	longestName           = 40  // bytes of a name made of words
)

// draw decides what the missing agent is called and declares.
func (p *proposal) draw() {
	words := rankWords(p.words)
	p.intent = p.majority(p.ticket.Intents, p.intents)
	if p.intent == "" {
		p.madeUp = true
		p.intent = spelt(intentOf(words), p.intents)
	}
	p.domains = p.frequent(p.ticket.Domains, p.domainsKnown())
	if len(p.domains) == 0 {
		p.domains = []string{spelt(domainOf(words), p.domainsKnown())}
	}
	p.id = p.freeID()
	p.keywords = p.pickKeywords(words)
}

func (p *proposal) domainsKnown() []string { return p.answer.domains }

// majority is the registry's name that at least half of the requests were taken
// for.
func (p *proposal) majority(counts map[string]int, known []string) string {
	for _, name := range byCount(counts) {
		if slices.Contains(known, name) {
			if 2*counts[name] >= p.ticket.Count {
				return name
			}
			return ""
		}
	}
	return ""
}

// frequent are the registry's names that at least a third of the requests were
// about.
func (p *proposal) frequent(counts map[string]int, known []string) []string {
	var list []string
	for _, name := range byCount(counts) {
		if len(list) < contract.MaxDomains && slices.Contains(known, name) && 3*counts[name] >= p.ticket.Count {
			list = append(list, name)
		}
	}
	return list
}

// word is a content word of the examples.
type word struct {
	text string
	in   int // how many examples have it
	at   int // where it first stands
}

// rankWords returns the content words, the most frequent first; of two, the one
// that stands earlier.
func rankWords(examples [][]string) []word {
	var list []word
	index := map[string]int{}
	for _, words := range examples {
		for at, w := range words {
			if !namable(w) {
				continue
			}
			i, ok := index[w]
			if !ok {
				i = len(list)
				index[w] = i
				list = append(list, word{text: w, at: at})
			}
			list[i].in++
			list[i].at = min(list[i].at, at)
		}
	}
	slices.SortStableFunc(list, func(a, b word) int { return cmp.Or(b.in-a.in, a.at-b.at) })
	return list
}

// namable reports whether a word can be part of a name: it has a letter, is not
// one letter, and is no code that is long or has digits.
func namable(w string) bool {
	letters := 0
	for _, r := range w {
		if !unicode.IsPrint(r) {
			return false
		}
		if unicode.IsLetter(r) {
			letters++
		}
	}
	return letters > 1 && len(w) <= longestName/2 && !strings.ContainsAny(w, "0123456789") && w != contract.Unknown
}

// topic are the two most frequent words, in the order people say them.
func topic(words []word) []word {
	two := slices.Clone(words[:min(len(words), 2)])
	slices.SortStableFunc(two, func(a, b word) int { return a.at - b.at })
	return two
}

// nameless is what an intent is called that no word can name.
const nameless = "new_request"

// intentOf is a name made of the topic: book_flight.
func intentOf(words []word) string {
	two := topic(words)
	switch len(two) {
	case 0:
		return nameless
	case 1:
		return two[0].text + "_request"
	}
	return two[0].text + "_" + two[1].text
}

// domainOf is the thing the topic is about: in the languages served here it
// usually stands behind the verb.
func domainOf(words []word) string {
	if two := topic(words); len(two) > 0 {
		return two[len(two)-1].text
	}
	return "general"
}

// spelt is the name in the spelling that is known already, if it is.
func spelt(name string, known []string) string {
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

// freeID is an agent id made of the intent that no agent the caller knows has.
func (p *proposal) freeID() string {
	base := strings.Map(func(r rune) rune {
		switch {
		case r == ' ', r == '-', r == '.':
			return '_'
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '_':
			return r
		}
		return -1
	}, strings.ToLower(p.intent))
	base = strings.Trim(base[:min(len(base), longestName)], "_0123456789")
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

// pickKeywords are words that many of the examples have and no agent has as its
// own. What is in a name speaks for the agent anyway.
func (p *proposal) pickKeywords(words []word) []string {
	var list []string
	named := strings.FieldsFunc(p.intent+" "+strings.Join(p.domains, " "), func(r rune) bool { return strings.ContainsRune("_-. ", r) })
	for _, w := range words {
		if len(list) == mostSuggestedKeywords || w.in < 2 || 3*w.in < len(p.examples) {
			break
		}
		if !slices.Contains(named, w.text) && !p.keywordOfOthers(w.text) {
			list = append(list, w.text)
		}
	}
	return list
}

func (p *proposal) keywordOfOthers(text string) bool {
	return slices.ContainsFunc(p.usable.List(), func(a *contract.RegistryEntry) bool {
		return slices.ContainsFunc(a.Keywords, func(k string) bool { return strings.EqualFold(k, text) })
	})
}

// usable are a ticket's prompts as examples of a registry, with their content
// words: on one line, without what masking left in place of a value, none twice.
func usable(examples []contract.TicketExample) (texts []string, words [][]string) {
	all := make([]string, len(examples))
	for i := range examples {
		all[i] = utterance(examples[i].Prompt)
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

// Line is a text on one line, without characters that steer a terminal, turn the
// direction of writing or have no width.
func Line(text string) string { return strings.Join(strings.Fields(legible(text)), " ") }

// utterance is a masked prompt as an example: "mail [EMAIL_1] the bill" becomes
// "mail … the bill".
func utterance(prompt string) string {
	var b strings.Builder
	for text := legible(prompt); text != ""; {
		piece, bracketed := firstPiece(text)
		text = text[len(piece):]
		if bracketed && placeholder(piece) {
			piece = ellipsis
		}
		b.WriteString(piece)
	}
	text := Line(b.String())
	for strings.Contains(text, ellipsis+" "+ellipsis) {
		text = strings.ReplaceAll(text, ellipsis+" "+ellipsis, ellipsis)
	}
	if runes := []rune(text); len(runes) > longestSuggested {
		text = string(runes[:longestSuggested])
		if end := strings.LastIndexByte(text, ' '); end > len(text)/2 {
			text = text[:end]
		}
	}
	return strings.TrimSpace(text)
}

// placeholder reports whether a bracketed word stands for a masked value, as
// [EMAIL_1] does.
func placeholder(piece string) bool {
	kind, number, ok := strings.Cut(strings.Trim(piece, "[]"), "_")
	return ok && kind != "" && number != "" && strings.Trim(kind, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" && strings.Trim(number, "0123456789") == ""
}

// yaml writes the registry. It is written by hand for the sake of the comments;
// every text from outside is quoted, which YAML and Go do alike.
func (p *proposal) yaml() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# A suggestion made of %s that nobody serves yet. It loads as it is.", plural(p.ticket.Count, "request"))
	line("# Fill in where the agent listens, look over names and examples, then add the")
	line("# agent to your registry.")
	line("version: 1")
	line("clients:")
	line("  %s:", p.id)
	line("    description: %s # say what it does: models read this", strconv.Quote("Serves requests such as: "+p.first()))
	line("    match:")
	line("      intent: [%s]", strconv.Quote(p.intent))
	line("      domains: [%s]", quoted(p.domains))
	if texts := p.examples[:min(len(p.examples), mostSuggestedExamples)]; len(texts) > 0 {
		line("    examples:")
		line("      %s:", strconv.Quote(p.intent))
		for _, text := range texts {
			line("        - %s", strconv.Quote(text))
		}
	}
	if len(p.keywords) > 0 {
		line("    keywords: [%s]", quoted(p.keywords))
	}
	if len(p.kinds) > 0 {
		line("    restore: none # seen: %s; name the kinds that it needs in clear text", strings.Join(p.kinds, ", "))
	}
	line("    endpoint:")
	line("      protocol: http")
	line("      url: http://127.0.0.1:9101/tasks # fill in: where the agent listens")
	return b.String()
}

func (p *proposal) first() string {
	if len(p.examples) == 0 {
		return p.intent
	}
	return p.examples[0]
}

func quoted(names []string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = strconv.Quote(name)
	}
	return strings.Join(list, ", ")
}
